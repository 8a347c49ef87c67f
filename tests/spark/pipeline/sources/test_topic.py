"""What Spark makes of the records of topics: decoded rows, and bad ones set aside with their reason."""

import datetime
import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

from mainstem.spark.pipeline import Decode, TopicSource, Watermark
from mainstem.spark.pipeline.sources.topic import Rows
from tests.spark.pipeline.mistakes import base_with, mistakes

RAW = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, "
    "timestampType INT, headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
AT = datetime.datetime(2026, 1, 31, 12, 0, 0)


def record_rows(spark: SparkSession, values: list[bytes | None]) -> DataFrame:
    rows = [(b"k", value, "orders", 0, offset, AT, 0, None) for offset, value in enumerate(values)]
    return spark.createDataFrame(rows, RAW)


def staged(spark: SparkSession, values: list[bytes | None], source: TopicSource) -> Rows:
    found = source.decode.definition(Path())
    assert found is not None
    return Rows.staged(record_rows(spark, values), "orders", source, found)


def source_of(schema: str, format_name: Any = "json", **more: Any) -> TopicSource:
    return TopicSource(topic="orders", decode=Decode(format=format_name, schema=schema), **more)


@pytest.mark.peer
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
    source = source_of("id BIGINT NOT NULL, name STRING", require={"positive": "id > 0"}, tombstones="drop")
    frame = staged(spark, values, source)
    assert frame.good(fail=False).collect() == [Row(id=1, name="a"), Row(id=2, name=None)]
    bad = {row.offset: (row.failed, row.reason) for row in frame.bad().collect()}
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


@pytest.mark.peer
@pytest.mark.parametrize(
    "more",
    ['{"id": 6}', " trailing garbage", "}", "]", "]}", ',{"id": 6}', ',"x":{"id": 6}', ",", "\n{}", "// x\n"],
)
def test_what_follows_a_json_object_is_not_passed_over(spark: SparkSession, more: str) -> None:
    frame = staged(spark, [b'{"id": 5}' + more.encode(), b' {"id": 7}\n'], source_of("id BIGINT"))
    assert frame.good(fail=False).collect() == [Row(id=7)]
    (bad,) = frame.bad().collect()
    assert bad.reason.startswith("more than one JSON value: after the first comes ")


@pytest.mark.peer
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
    frame = staged(spark, values, source_of(schema, metadata=["offset"]))
    assert [row._offset for row in frame.good(fail=False).collect()] == [0, 1]
    assert {row.offset: row.reason for row in frame.bad().collect()} == {
        offset: f"field {name} is missing, and the schema says NOT NULL"
        for offset, name in enumerate(["o.a", "list[1].x", "m.k.x", "deep.list[0][0].o.a"], 2)
    }


@pytest.mark.peer
def test_a_bad_record_may_stop_the_pipeline(spark: SparkSession) -> None:
    frame = staged(spark, [b'{"id": 1}', b"{bad"], source_of("id BIGINT"))
    with pytest.raises(PySparkException, match=r"a record for orders cannot be used: not JSON.*offset 1"):
        frame.good(fail=True).collect()


@pytest.mark.peer
def test_csv_avro_and_raw(spark: SparkSession) -> None:
    csv = staged(spark, [b"1,a", b"x,a", b"1,2,3"], source_of("id INT, name STRING", "csv"))
    assert csv.good(fail=False).collect() == [Row(id=1, name="a")]
    assert {row.reason for row in csv.bad().collect()} == {
        "column id: x is not INT",
        "3 columns instead of 2",
    }
    schema = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), {"id": 9})
    avro = staged(spark, [stream.getvalue(), b"\xff"], source_of(json.dumps(schema), "avro"))
    assert avro.good(fail=False).collect() == [Row(id=9)]
    assert [row.reason[:23] for row in avro.bad().collect()] == ["not Avro of this schema"]
    raw = staged(spark, [b"x"], TopicSource(topic="orders"))
    assert raw.good(fail=False).columns == [
        "key",
        "value",
        "topic",
        "partition",
        "offset",
        "timestamp",
        "headers",
    ]


@pytest.mark.peer
def test_doubled_quotes_in_csv(spark: SparkSession) -> None:
    def names(value: bytes, **options: str) -> list[str]:
        decode = Decode(format="csv", schema="id INT, name STRING", options=dict(options))
        frame = staged(spark, [value], TopicSource(topic="orders", decode=decode))
        return [row.name for row in frame.good(fail=False).collect()]

    assert names(b'1,"q""q, r"') == ['q"q, r']
    assert names(b"1,'q''q, r'", quote="'") == ["q'q, r"]
    assert names(b'1,"q\\"q, r"', escape="\\") == ['q"q, r']


@pytest.mark.peer
def test_facts_of_the_record_and_a_watermark(spark: SparkSession) -> None:
    source = source_of(
        "at TIMESTAMP",
        metadata=["key", "offset"],
        watermark=Watermark(column="at", delay="5m"),
    )
    frame = staged(spark, [b'{"at": "2026-01-31T12:00:00Z"}'], source).good(fail=False)
    assert frame.collect() == [Row(at=AT, _key=bytearray(b"k"), _offset=0)]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{topic: 'bad topic'}", "'bad topic' is no name for a topic"),
        ("{topics: []}", "the list is empty"),
        ("{pattern: 'a('}", "this is no regular expression"),
        ("{topic: a, topics: [b]}", "topic and topics exclude each other"),
        ("{topic: a, from: soon}", "'soon' is no place to start -> use earliest, latest or a time"),
        ("{topic: a, rate: 0}", "at least one record must be read in a batch"),
        ("{topic: a, decode: json}", "the schema of json is missing -> give schema:"),
        ("{topic: a, decode: {format: avro, infer: 10}}", "avro needs its schema"),
        ("{topic: a, decode: {format: avro, schema: '{'}}", "the Avro schema is not JSON"),
        ("{topic: a, decode: {format: avro, schema: '\"int\"'}}", "the Avro schema must describe a record"),
        ("{topic: a, decode: protobuf}", "protobuf needs schema_file, a descriptor set"),
        ("{topic: a, decode: {schema: a INT, schema_file: b}}", "schema and schema_file exclude each other"),
        ("{topic: a, decode: {format: raw, schema: a INT}}", "raw values have no schema"),
        ("{topic: a, decode: {schema: a INT, message: M}}", "only protobuf has messages"),
        ("{topic: a, watermark: {column: timestamp, delay: soon}}", "'soon' is no span of time"),
        ("{topic: a, metadata: [key, key]}", "key is there twice"),
        ("{topic: a, decode: {schema: a INT}, require: {r: 'a > ('}}", "this is no SQL: '(' is not closed"),
        ("{topic: a, require: {r: a > 1}}", "rules need decoded values"),
        (
            "{topic: a, options: {maxOffsetsPerTrigger: 5}}",
            "has a key of its own in a pipeline -> write rate",
        ),
        ("{topic: a, bootstrap: somewhere}", "'somewhere' is not HOST:PORT"),
        ("{topic: p.dead}", "p.dead is this pipeline's topic of dead letters"),
    ],
)
def test_mistakes(source: str, message: str) -> None:
    (line,) = mistakes(base_with(source=source))
    assert message in line
