"""What Spark makes of sources and steps: decoded rows, bad ones set aside with their reason, each kind of
step."""

import datetime
import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

from mainstem.spark.pipeline import Decode, TopicSink, TopicSource, Watermark, model, topic_output
from mainstem.spark.pipeline.problems import PipelineError
from mainstem.spark.pipeline.schemas.definitions import definition
from mainstem.spark.pipeline.source_views import SourceFrame, bad_rows, good_rows, stage
from mainstem.spark.pipeline.step_views import make

pytestmark = pytest.mark.peer

RAW = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, "
    "timestampType INT, headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
AT = datetime.datetime(2026, 1, 31, 12, 0, 0)


def _records(spark: SparkSession, values: list[bytes | None]) -> DataFrame:
    rows = [(b"k", value, "orders", 0, offset, AT, 0, None) for offset, value in enumerate(values)]
    return spark.createDataFrame(rows, RAW)


def _staged(spark: SparkSession, values: list[bytes | None], source: TopicSource) -> SourceFrame:
    found = definition(source.decode, Path())
    assert found is not None
    return stage(_records(spark, values), "orders", source, found)


def _source(schema: str, format_name: Any = "json", **more: Any) -> TopicSource:
    return TopicSource(topic="orders", decode=Decode(format=format_name, schema=schema), **more)


def test_json_good_and_bad(spark: SparkSession) -> None:
    values = [
        b'{"id": 1, "name": "a", "extra": true}',
        b'{"id": 2}',
        b"{bad",
        b'{"id": "x"}',
        b'{"name": "no id"}',
        b"\xff\xfe",
        b"[1, 2]",
        b"",
        b"null",
        b'{"id": -5}',
        None,
    ]
    source = _source("id BIGINT NOT NULL, name STRING", require={"positive": "id > 0"}, tombstones="drop")
    frame = _staged(spark, values, source)
    assert good_rows(frame, fail=False).collect() == [Row(id=1, name="a"), Row(id=2, name=None)]
    bad = {row.offset: (row.failed, row.reason) for row in bad_rows(frame).collect()}
    assert bad[2] == (
        "decode",
        "not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
    )
    assert bad[3] == ("decode", 'field id is "x", not BIGINT')
    assert bad[4] == ("decode", "field id is missing, and the schema says NOT NULL")
    assert bad[5] == ("decode", "not text: byte 0 is not UTF-8")
    assert bad[6] == ("decode", "not a JSON object but an array")
    assert bad[7][0] == bad[8][0] == "decode"
    assert bad[9] == ("require.positive", "the rule positive does not hold: id > 0")
    assert set(bad) == set(range(2, 10))


@pytest.mark.parametrize(
    "more",
    ['{"id": 6}', " trailing garbage", "}", "]", "]}", ',{"id": 6}', ',"x":{"id": 6}', ",", "\n{}", "// x\n"],
)
def test_what_follows_a_json_object_is_not_passed_over(spark: SparkSession, more: str) -> None:
    frame = _staged(spark, [b'{"id": 5}' + more.encode(), b' {"id": 7}\n'], _source("id BIGINT"))
    assert good_rows(frame, fail=False).collect() == [Row(id=7)]
    (bad,) = bad_rows(frame).collect()
    assert bad.reason.startswith("more than one JSON value: after the first comes ")


def test_not_null_counts_at_any_depth(spark: SparkSession) -> None:
    values: list[bytes | None] = [
        b'{"o": {"a": 1}, "list": [{"x": 1}, null], "m": {"k": {"x": 1}}}',
        b"{}",
        b'{"o": {}}',
        b'{"list": [{"x": 1}, {}]}',
        b'{"m": {"k": {"x": null}}}',
        b'{"deep": {"list": [[{"o": {}}]]}}',
    ]
    inner = "STRUCT<x: INT NOT NULL>"
    schema = f"o STRUCT<a: INT NOT NULL>, list ARRAY<{inner}>, m MAP<STRING, {inner}>, "
    schema += "deep STRUCT<list: ARRAY<ARRAY<STRUCT<o: STRUCT<a: INT NOT NULL>>>>>"
    frame = _staged(spark, values, _source(schema, metadata=["offset"]))
    assert [row._offset for row in good_rows(frame, fail=False).collect()] == [0, 1]
    assert {row.offset: row.reason for row in bad_rows(frame).collect()} == {
        offset: f"field {name} is missing, and the schema says NOT NULL"
        for offset, name in enumerate(["o.a", "list[1].x", "m.k.x", "deep.list[0][0].o.a"], 2)
    }


def test_a_bad_record_may_stop_the_pipeline(spark: SparkSession) -> None:
    frame = _staged(spark, [b'{"id": 1}', b"{bad"], _source("id BIGINT"))
    with pytest.raises(PySparkException, match=r"a record for orders cannot be used: not JSON.*offset 1"):
        good_rows(frame, fail=True).collect()


def test_csv_avro_and_raw(spark: SparkSession) -> None:
    csv = _staged(spark, [b"1,a", b"x,a", b"1,2,3"], _source("id INT, name STRING", "csv"))
    assert good_rows(csv, fail=False).collect() == [Row(id=1, name="a")]
    assert {row.reason for row in bad_rows(csv).collect()} == {
        "column id: x is not INT",
        "3 columns instead of 2",
    }
    schema = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), {"id": 9})
    avro = _staged(spark, [stream.getvalue(), b"\xff"], _source(json.dumps(schema), "avro"))
    assert good_rows(avro, fail=False).collect() == [Row(id=9)]
    assert [row.reason[:23] for row in bad_rows(avro).collect()] == ["not Avro of this schema"]
    raw = _staged(spark, [b"x"], TopicSource(topic="orders"))
    assert good_rows(raw, fail=False).columns == [
        "key",
        "value",
        "topic",
        "partition",
        "offset",
        "timestamp",
        "headers",
    ]


def test_doubled_quotes_in_csv(spark: SparkSession) -> None:
    def names(value: bytes, **options: str) -> list[str]:
        decode = Decode(format="csv", schema="id INT, name STRING", options=dict(options))
        frame = _staged(spark, [value], TopicSource(topic="orders", decode=decode))
        return [row.name for row in good_rows(frame, fail=False).collect()]

    assert names(b'1,"q""q, r"') == ['q"q, r']
    assert names(b"1,'q''q, r'", quote="'") == ["q'q, r"]
    assert names(b'1,"q\\"q, r"', escape="\\") == ['q"q, r']


def test_facts_of_the_record_and_a_watermark(spark: SparkSession) -> None:
    source = _source(
        "at TIMESTAMP",
        metadata=["key", "offset"],
        watermark=Watermark(column="at", delay="5m"),
    )
    frame = good_rows(_staged(spark, [b'{"at": "2026-01-31T12:00:00Z"}'], source), fail=False)
    assert frame.collect() == [Row(at=AT, _key=bytearray(b"k"), _offset=0)]


def test_a_dead_letter_is_the_record_with_headers_that_say_why(spark: SparkSession) -> None:
    bad = bad_rows(_staged(spark, [b"{bad"], _source("id BIGINT")))
    (letter,) = topic_output.dead_letters(bad, "shop", "orders").collect()
    assert (letter.key, letter.value) == (b"k", b"{bad")
    headers = {header.key: bytes(header.value).decode() for header in letter.headers}
    assert headers["mainstem.dead-letter.step"] == "orders.decode"
    assert headers["mainstem.dead-letter.reason"].startswith("not JSON")
    assert (headers["mainstem.dead-letter.topic"], headers["mainstem.dead-letter.offset"]) == ("orders", "0")
    assert headers["mainstem.dead-letter.timestamp"] == "1769860800000"


def test_steps(spark: SparkSession) -> None:
    rows = [(1, "a", 10.0, AT), (2, "a", 20.0, AT), (3, "b", 5.0, AT + datetime.timedelta(minutes=2))]
    orders = spark.createDataFrame(rows, "id INT, product STRING, amount DOUBLE, at TIMESTAMP")
    orders.createOrReplaceTempView("orders")
    paid = spark.createDataFrame([(1, 9.5)], "order_id INT, paid DOUBLE")
    views = {"orders": orders, "payments": paid}

    def made(step: model.Step) -> list[Any]:
        return [tuple(row) for row in make(spark, "step", step, views, Path()).collect()]

    assert made(model.SqlStep(sql="SELECT id FROM orders WHERE amount > 15;")) == [(2,)]
    assert made(
        model.PythonStep(
            python=lambda frame, n: frame.limit(n).select("id"), inputs="orders", arguments={"n": 1}
        )
    ) == [(1,)]
    totals = model.AggregateStep(
        source="orders",
        by=["product"],
        window=model.Window(column="at", size="1 minute"),
        aggregate={"n": "count(*)", "total": "sum(amount)"},
    )
    minute = datetime.timedelta(minutes=1)
    assert sorted(made(totals)) == [
        (AT, AT + minute, "a", 2, 30.0),
        (AT + 2 * minute, AT + 3 * minute, "b", 1, 5.0),
    ]
    session = model.AggregateStep(
        source="orders", window=model.Window(column="at", gap="5m"), aggregate={"n": "count(*)"}
    )
    assert made(session) == [(AT, AT + 7 * minute, 3)]
    join = model.JoinStep(
        join=["orders", "payments"], on="orders.id = payments.order_id", select=["id", "paid"]
    )
    assert made(join) == [(1, 9.5)]
    assert (
        len(made(model.DeduplicateStep(source="orders", deduplicate=["product"], within_watermark=False)))
        == 2
    )


def test_a_join_with_the_same_column_on_both_sides_is_refused(spark: SparkSession) -> None:
    one = spark.createDataFrame([(1, 2)], "id INT, at INT")
    step = model.JoinStep(join=["a", "b"], on="a.id = b.id")
    with pytest.raises(PipelineError, match="a and b both have at, id"):
        make(spark, "step", step, {"a": one, "b": one.select("*")}, Path())


def test_rows_become_records(spark: SparkSession) -> None:
    view = spark.createDataFrame([(1, "a")], "id INT, name STRING")
    sink = TopicSink(source="v", topic="t", key="id", headers={"kind": "name"}, partition="id % 2")
    (record,) = topic_output.records(view, sink, Path()).collect()
    assert (record.key, record.value, record.partition) == ("1", '{"id":1,"name":"a"}', 1)
    assert [(header.key, bytes(header.value)) for header in record.headers] == [("kind", b"a")]
