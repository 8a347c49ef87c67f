"""What can be said without Java of readers' options, windows and output modes."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from mainstem.spark.pipeline.checking.validate import checked
from mainstem.spark.pipeline.checks_decode import OPTIONS
from mainstem.spark.pipeline.file.reader import parse
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
steps:
  one: SELECT id, at FROM orders WHERE id > 1
  counted: {from: one, aggregate: {n: count(*)}, window: {column: at, size: 1 minuteSLIDE}}
sinks:
  out: {from: FROM, topic: out, mode: MODE}
"""


def _problems(
    format_name: str = "json", options: str = "", slide: str = "", sink: str = "one append"
) -> list[str]:
    view, mode = sink.split(" ")
    text = BASE.replace("json", format_name).replace("OPTIONS", options).replace("SLIDE", slide)
    document = checked(parse(text.replace("FROM,", f"{view},").replace("MODE", mode), "p.yaml"))
    return told(document)


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


def test_windows_further_apart_than_they_are_long() -> None:
    (problem,) = _problems(slide=", slide: 5 minutes")
    assert problem.startswith("p.yaml:12:")
    assert "windows of 1 minute that are 5 minutes apart" in problem
    assert _problems(slide=", slide: 30 s") == []


def test_complete_needs_an_aggregate() -> None:
    (problem,) = _problems(sink="one complete")
    assert problem.startswith("p.yaml:14:38: sinks.out: complete writes all rows of an aggregate again")
    assert _problems(sink="counted complete") == []


@pytest.mark.peer
def test_the_names_are_those_of_spark(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    catalyst = jvm.org.apache.spark.sql.catalyst
    for name, found in (("json", catalyst.json.JSONOptions), ("csv", catalyst.csv.CSVOptions)):
        assert set(found.getAllOptions().mkString(",").split(",")) == set(OPTIONS[name])
