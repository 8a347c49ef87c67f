"""What can be said without Java of the options of Spark's readers."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from mainstem.spark.pipeline.checking.validate import checked
from mainstem.spark.pipeline.file.reader import parse
from mainstem.spark.pipeline.formats.csv import Csv
from mainstem.spark.pipeline.formats.json import Json
from tests.spark.pipeline.told import told

BASE = """\
pipeline: p
sources:
  orders:
    topic: orders
    decode:
      format: json
      schema: id BIGINT, at TIMESTAMP
      options: {OPTIONS}
    watermark: {column: at, delay: 1 minute}
sinks:
  out: {from: orders, topic: out}
"""


def _problems(format_name: str = "json", options: str = "") -> list[str]:
    text = BASE.replace("json", format_name).replace("OPTIONS", options)
    return told(checked(parse(text, "p.yaml")))


def test_the_base_is_fine() -> None:
    assert _problems() == []


@pytest.mark.parametrize(
    ("format_name", "options", "message"),
    [
        (
            "csv",
            "delimeter: ';'",
            ":8:17: sources.orders: Spark's reader of CSV has no option 'delimeter' "
            "-> did you mean delimiter?",
        ),
        ("json", "timestampFormt: x", "has no option 'timestampFormt' -> did you mean timestampFormat?"),
        ("json", "sep: ';'", "Spark's reader of JSON has no option 'sep'"),
        (
            "json",
            "timestampFormat: 'YYYY-MM-dd'",
            ":8:35: sources.orders: 'Y' in 'YYYY-MM-dd' is no part of a time -> the year is y",
        ),
        ("json", "timestampFormat: 'yyyy-bbb'", ":8:40: sources.orders: 'b' in"),
        ("json", 'dateFormat: "yyyy\'MM"', "a quote of"),
    ],
)
def test_an_option_that_spark_does_not_have(format_name: str, options: str, message: str) -> None:
    (problem,) = _problems(format_name, options)
    assert message in problem


@pytest.mark.parametrize(
    "options",
    [
        "timestampFormat: \"yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]\"",
        "TIMESTAMPFORMAT: dd/MM/yyyy hh:mm a",
        "locale: de",
    ],
)
def test_options_that_spark_has(options: str) -> None:
    assert _problems(options=options) == []


@pytest.mark.peer
def test_the_names_are_those_of_spark(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    catalyst = jvm.org.apache.spark.sql.catalyst
    for options, found in ((Json.OPTIONS, catalyst.json.JSONOptions), (Csv.OPTIONS, catalyst.csv.CSVOptions)):
        assert set(found.getAllOptions().mkString(",").split(",")) == set(options)
