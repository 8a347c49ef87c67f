"""Rows become records."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mainstem.spark.pipeline import TopicSink

pytestmark = pytest.mark.peer


def test_rows_become_records(spark: SparkSession) -> None:
    view = spark.createDataFrame([(1, "a")], "id INT, name STRING")
    sink = TopicSink(source="v", topic="t", key="id", headers={"kind": "name"}, partition="id % 2")
    (record,) = sink.records(view, Path()).collect()
    assert (record.key, record.value, record.partition) == ("1", '{"id":1,"name":"a"}', 1)
    assert [(header.key, bytes(header.value)) for header in record.headers] == [("kind", b"a")]
