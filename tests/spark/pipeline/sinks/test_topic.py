"""Rows become records."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mainstem.spark.pipeline import TopicSink
from tests.spark.pipeline.mistakes import base_with, mistakes


@pytest.mark.peer
def test_rows_become_records(spark: SparkSession) -> None:
    view = spark.createDataFrame([(1, "a")], "id INT, name STRING")
    sink = TopicSink(source="v", topic="t", key="id", headers={"kind": "name"}, partition="id % 2")
    (record,) = sink.records(view, Path()).collect()
    assert (record.key, record.value, record.partition) == ("1", '{"id":1,"name":"a"}', 1)
    assert [(header.key, bytes(header.value)) for header in record.headers] == [("kind", b"a")]


@pytest.mark.parametrize(
    ("sink", "message"),
    [
        ("{from: onne, topic: o}", "there is no view 'onne' -> did you mean one?"),
        (
            "{from: one, topic: orders}",
            "orders reads orders: the pipeline would read what it writes for ever",
        ),
        ("{from: one, topic: p.dead}", "p.dead is the topic of the dead letters"),
        ("{from: one, topic: o, trigger: often}", "'often' is no trigger"),
        ("{from: one, topic: o, key: 'f('}", "this is no SQL"),
        ("{from: one, topic: o, encode: avro}", "avro needs schema_file"),
    ],
)
def test_mistakes(sink: str, message: str) -> None:
    (line,) = mistakes(base_with(sink=sink))
    assert message in line
