"""Real Spark writes with `format("mainstem")`, and Spark's own connector reads the same rows back."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tests.spark.sink.support import read_values
from tests.support.spark import completed, ended
from tests.support.target import Target
from tests.wire.secured_kafka import secured_ports
from tests.wire.token_logins import TOKEN

pytestmark = [pytest.mark.peer, pytest.mark.timeout(600)]

COLUMNS = ["key", "value", "topic", "partition", "headers"]


def read_with_connector(spark: SparkSession, target: Target, *topics: str) -> list[Any]:
    """All rows of the topics, committed ones only, as Spark's own connector reads them."""
    return sorted(
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", target.bootstrap_servers)
        .option("kafka.isolation.level", "read_committed")
        .option("includeHeaders", "true")
        .option("subscribe", ",".join(topics))
        .load()
        .select(*COLUMNS)
        .collect(),
        key=repr,
    )


def rows_with_everything(spark: SparkSession, topics: list[str]) -> DataFrame:
    """Rows with and without keys, values, headers and partitions, for two topics."""
    first, second = topics
    return spark.range(600).selectExpr(
        "if(id % 7 = 0, null, cast(id % 50 as string)) as key",
        "if(id % 11 = 0, null, encode(repeat(cast(id as string), cast(id % 40 as int)), 'UTF-8')) as value",
        f"if(id % 2 = 0, '{first}', '{second}') as topic",
        "if(id % 3 = 0, cast(id % 2 as int), null) as partition",
        "if(id % 5 = 0, array(struct('h' as key, cast('x' as binary) as value),"
        " struct('n' as key, cast(null as binary) as value)), null) as headers",
    )


def expected_rows(rows: DataFrame) -> list[tuple[Any, ...]]:
    """What is known of the rows before they are written; a partition only where the column names one."""
    return sorted(
        (
            (
                row.topic,
                None if row.key is None else bytes(row.key.encode()),
                row.value,
                row.headers,
            )
            for row in rows.collect()
        ),
        key=repr,
    )


def _run(writer: DataStreamWriter) -> StreamingQuery:
    return ended(writer.start())


@pytest.mark.parametrize("guarantee", ["at least once", "exactly once"])
def test_a_batch_write_is_what_the_connector_reads(
    spark: SparkSession, target: Target, tmp_path: Path, guarantee: str
) -> None:
    topics = [target.create_topic(partitions=4) for _ in range(2)]
    rows = rows_with_everything(spark, topics)
    write = rows.write.format("mainstem").mode("append")
    if guarantee == "exactly once":
        write = write.option("exactlyOnce", "true").option("stagingLocation", str(tmp_path))
    write.option("kafka.bootstrap.servers", target.bootstrap_servers).save()
    found = read_with_connector(spark, target, *topics)
    assert sorted(((row.topic, row.key, row.value, row.headers) for row in found), key=repr) == expected_rows(
        rows
    )
    assert not list(tmp_path.glob("*/*"))


@pytest.mark.parametrize(
    "codec",
    ["none", "zstd", *(pytest.param(name, marks=pytest.mark.soak) for name in ("gzip", "snappy", "lz4"))],
)
def test_both_connectors_put_rows_on_the_same_partitions(
    spark: SparkSession, mainstem: Target, codec: str
) -> None:
    topics = {connector: mainstem.create_topic(partitions=5) for connector in ("kafka", "mainstem")}
    rows = spark.range(500).selectExpr(
        "cast(id as string) as key", "cast(id as string) as value", "if(id % 9 = 0, 3, null) as partition"
    )
    for connector, topic in topics.items():
        (
            rows.write.format(connector)
            .mode("append")
            .option("kafka.bootstrap.servers", mainstem.bootstrap_servers)
            .option("kafka.compression.type", codec)
            .option("topic", topic)
            .save()
        )
    theirs, ours = (
        [(row.partition, row.key, row.value) for row in read_with_connector(spark, mainstem, topic)]
        for topic in topics.values()
    )
    assert sorted(theirs) == sorted(ours)
    assert len(ours) == 500


def stream(spark: SparkSession, target: Target, source: str, sink: str, checkpoint: Path) -> DataStreamWriter:
    """A query that copies one topic to another, a hundred records at a time."""
    return (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", target.bootstrap_servers)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 100)
        .load()
        .selectExpr("key", "value")
        .writeStream.format("mainstem")
        .option("kafka.bootstrap.servers", target.bootstrap_servers)
        .option("topic", sink)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
    )


@pytest.mark.parametrize("settings", [{}, {"exactlyOnce": "true", "stagingInlineBytes": "500"}])
def test_a_query_goes_on_where_it_was(
    spark: SparkSession, target: Target, tmp_path: Path, settings: dict[str, str]
) -> None:
    source, sink = (target.create_topic(partitions=2) for _ in range(2))
    for start in (0, 250):
        (
            spark.range(start, start + 250)
            .selectExpr("cast(id as string) as key", "cast(id as string) as value")
            .write.format("mainstem")
            .mode("append")
            .option("kafka.bootstrap.servers", target.bootstrap_servers)
            .option("topic", source)
            .save()
        )
        writer = stream(spark, target, source, sink, tmp_path).options(**settings)
        completed(partial(_run, writer))
    rows = read_with_connector(spark, target, sink)
    assert sorted(int(row.value) for row in rows) == list(range(500))
    assert not list((tmp_path / "mainstem-staging").glob("*/*"))


def test_tokens_write_the_same_rows_exactly_once(spark: SparkSession, tmp_path: Path) -> None:
    ports = secured_ports()
    kafka = Target("kafka", f"127.0.0.1:{ports['PLAINTEXT']}", Path())
    with_token = {"kafka.bootstrap.servers": f"127.0.0.1:{ports['TOKEN']}"} | TOKEN
    topics = [kafka.create_topic(partitions=4) for _ in range(2)]
    rows = rows_with_everything(spark, topics).limit(200)
    staged = {"exactlyOnce": "true", "stagingLocation": str(tmp_path / "staging")}
    rows.write.format("mainstem").mode("append").options(**with_token, **staged).save()
    found = read_with_connector(spark, kafka, *topics)
    assert sorted(((row.topic, row.key, row.value, row.headers) for row in found), key=repr) == expected_rows(
        rows
    )
    source, sink = topics[0], kafka.create_topic(partitions=2)
    exactly_once = {"exactlyOnce": "true", **with_token}
    completed(partial(_run, stream(spark, kafka, source, sink, tmp_path).options(**exactly_once)))
    assert read_values(kafka.bootstrap_servers, sink) == read_values(kafka.bootstrap_servers, source)


def test_a_batch_that_was_committed_before_a_crash_is_not_written_again(
    spark: SparkSession, target: Target, tmp_path: Path
) -> None:
    """Spark's own record of the commit is what a crash loses; the topic's is not."""
    source, sink = (target.create_topic() for _ in range(2))
    (
        spark.range(50)
        .selectExpr("cast(id as string) as value")
        .write.format("mainstem")
        .mode("append")
        .option("kafka.bootstrap.servers", target.bootstrap_servers)
        .option("topic", source)
        .save()
    )
    query = stream(spark, target, source, sink, tmp_path).option("exactlyOnce", "true")
    completed(partial(_run, query))
    for file in (tmp_path / "commits").iterdir():
        file.unlink()
    completed(partial(_run, query))
    assert sorted(map(int, read_values(target.bootstrap_servers, sink))) == list(range(50))


def fails_with(action: Callable[[], object], *words: str) -> None:
    with pytest.raises((AnalysisException, PySparkException)) as failure:
        action()
    for word in words:
        assert word in str(failure.value)


def test_mistakes_are_told_by_spark(spark: SparkSession, mainstem: Target) -> None:
    rows = spark.range(1).selectExpr("cast(id as string) as value")

    def write(frame: DataFrame, mode: str = "append", **options: str) -> Callable[[], object]:
        writer = frame.write.format("mainstem").mode(mode).options(**options)
        return writer.option("kafka.bootstrap.servers", mainstem.bootstrap_servers).save

    fails_with(write(rows, topik="t"), "there is no option topik of a write; did you mean topic?")
    fails_with(write(rows), "topic option required when no 'topic' attribute is present")
    fails_with(write(rows, mode="overwrite", topic="t"), 'use mode("append")')
    fails_with(write(spark.range(1), topic="t"), "Required attribute 'value' not found")
    fails_with(write(rows, topic="t", exactlyOnce="true"), "or stagingLocation")
    kerberos = TOKEN | {"kafka.sasl.mechanism": "GSSAPI"}
    fails_with(write(rows, topic="t", **kerberos), "the SASL mechanism GSSAPI is not supported")
    null_topic = rows.selectExpr("value", "cast(null as string) as topic")
    fails_with(write(null_topic), "null topic present in the data")


def test_the_whole_result_of_an_aggregation_is_written_each_time(
    spark: SparkSession, mainstem: Target, tmp_path: Path
) -> None:
    source, sink = (mainstem.create_topic() for _ in range(2))
    for _ in range(2):
        (
            spark.range(10)
            .selectExpr("cast(id % 2 as string) as value")
            .write.format("mainstem")
            .mode("append")
            .option("kafka.bootstrap.servers", mainstem.bootstrap_servers)
            .option("topic", source)
            .save()
        )
        counts = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", mainstem.bootstrap_servers)
            .option("subscribe", source)
            .option("startingOffsets", "earliest")
            .load()
            .groupBy("value")
            .count()
            .selectExpr("concat(cast(value as string), ':', count) as value")
        )
        (
            counts.writeStream.format("mainstem")
            .outputMode("complete")
            .option("kafka.bootstrap.servers", mainstem.bootstrap_servers)
            .option("topic", sink)
            .option("exactlyOnce", "true")
            .option("checkpointLocation", str(tmp_path))
            .trigger(availableNow=True)
            .start()
            .awaitTermination()
        )
    assert read_values(mainstem.bootstrap_servers, sink) == [b"0:10", b"0:5", b"1:10", b"1:5"]
