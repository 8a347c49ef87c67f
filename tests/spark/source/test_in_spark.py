"""`format("mainstem")` in a real Spark, beside Spark's own connector: the same rows, batch and stream."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from tests.spark.source.topics import Topics
from tests.support.spark import completed, ended

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]

START = 1_700_000_000_000


def read(spark: SparkSession, topics: Topics, form: str, **options: object) -> DataFrame:
    reader = spark.read.format(form).option("kafka.bootstrap.servers", topics.servers)
    return reader.options(**{name: str(value) for name, value in options.items()}).load()


def rows(frame: DataFrame) -> list[Row]:
    return frame.orderBy("topic", "partition", "offset").collect()


def stream(
    spark: SparkSession, topics: Topics, form: str, folder: Path, **options: object
) -> Callable[..., StreamingQuery]:
    """Runs a query into Parquet files when called with a trigger, until it has processed what is there; a
    later call goes on where it ended.
    """
    reader = spark.readStream.format(form).option("kafka.bootstrap.servers", topics.servers)
    frame = reader.options(**{name: str(value) for name, value in options.items()}).load()

    def run(**trigger: Any) -> StreamingQuery:
        writer = frame.writeStream.format("parquet").option("path", str(folder / "rows"))
        query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(**trigger).start()
        if "processingTime" not in trigger:
            return ended(query)
        query.processAllAvailable()
        return query

    def start(**trigger: Any) -> StreamingQuery:
        return completed(lambda: run(**trigger))

    return start


@pytest.fixture(scope="module")
def varied(mainstem: Topics) -> str:
    """A topic of every codec, of transactions of both outcomes, and with its beginning deleted."""
    name = mainstem.create(6)
    for partition, codec in enumerate(["none", "gzip", "snappy", "lz4", "zstd"]):
        mainstem.send_varied(name, codec, partition)
    mainstem.send_transactions(name, [True, False, True, False], records=30)
    mainstem.truncate(name, 1, 17)
    return name


@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
def test_both_connectors_read_the_same_rows_in_a_batch(
    spark: SparkSession, mainstem: Topics, varied: str, level: str
) -> None:
    options = {"subscribe": varied, "includeHeaders": "true", "kafka.isolation.level": level}
    theirs, ours = (read(spark, mainstem, form, **options) for form in ("kafka", "mainstem"))
    assert ours.schema == theirs.schema
    found = rows(ours)
    assert found == rows(theirs)
    assert len(found) > 1000


def test_both_connectors_read_the_same_rows_of_log_append_time(spark: SparkSession, kafka: Topics) -> None:
    name = kafka.create(2, message_timestamp_type="LogAppendTime")
    kafka.send_varied(name, "lz4", 1)
    theirs, ours = (rows(read(spark, kafka, form, subscribe=name)) for form in ("kafka", "mainstem"))
    assert ours == theirs
    assert {row["timestampType"] for row in ours} == {1}


def test_both_connectors_take_the_same_offsets(spark: SparkSession, mainstem: Topics, varied: str) -> None:
    start = f'{{"{varied}":{{"0":20,"1":-2,"2":30,"3":0,"4":199,"5":-2}}}}'
    end = f'{{"{varied}":{{"0":25,"1":-1,"2":31,"3":100,"4":-1,"5":0}}}}'
    chosen = [
        {"startingOffsets": start, "endingOffsets": end, "minPartitions": 20},
        {
            "startingTimestamp": START + 100 * 37,
            "startingOffsetsByTimestampStrategy": "latest",
            "maxRecordsPerPartition": 33,
        },
    ]
    for options in chosen:
        theirs, ours = (
            rows(read(spark, mainstem, form, subscribe=varied, **options)) for form in ("kafka", "mainstem")
        )
        assert ours == theirs
        assert ours


def test_both_connectors_stream_the_same_rows(
    spark: SparkSession, mainstem: Topics, varied: str, tmp_path: Path
) -> None:
    found = []
    for form in ("kafka", "mainstem"):
        options = {"subscribe": varied, "includeHeaders": "true", "startingOffsets": "earliest"}
        start = stream(spark, mainstem, form, tmp_path / form, maxOffsetsPerTrigger=500, **options)
        query = start(availableNow=True)
        batches = [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]
        assert len(batches) > 2
        found.append(rows(spark.read.parquet(str(tmp_path / form / "rows"))))
    assert found[0] == found[1]
    assert len(found[1]) > 1000


def test_a_restarted_query_goes_on_where_it_was(
    spark: SparkSession, mainstem: Topics, tmp_path: Path
) -> None:
    name = mainstem.create(2)
    mainstem.send(name, range(100))
    start = stream(spark, mainstem, "mainstem", tmp_path, subscribe=name, startingOffsets="earliest")
    start(once=True)
    mainstem.grow(name, 3)
    mainstem.send(name, range(100, 150), partition=2)
    query = start(processingTime="0 seconds")
    assert query.lastProgress is not None
    mainstem.send(name, range(150, 160), partition=1)
    query.processAllAvailable()
    query.stop()
    found = spark.read.parquet(str(tmp_path / "rows")).select(f.col("value").cast("string")).collect()
    assert sorted(int(row["value"]) for row in found) == list(range(160))


def test_a_query_fails_when_its_topic_is_deleted(
    spark: SparkSession, mainstem: Topics, tmp_path: Path
) -> None:
    name = mainstem.create()
    mainstem.send(name, range(5))
    start = stream(spark, mainstem, "mainstem", tmp_path, subscribe=name, startingOffsets="earliest")
    start(availableNow=True)
    mainstem.delete(name)
    with pytest.raises(PySparkException, match=r"have been deleted.*failOnDataLoss"):
        start(availableNow=True)


def test_a_damaged_checkpoint_is_one_clear_error(
    spark: SparkSession, mainstem: Topics, tmp_path: Path
) -> None:
    name = mainstem.create()
    mainstem.send(name, range(5))
    start = stream(spark, mainstem, "mainstem", tmp_path, subscribe=name, startingOffsets="earliest")
    start(availableNow=True)
    offsets = tmp_path / "checkpoint" / "offsets" / "0"
    offsets.write_text(offsets.read_text().replace(f'{{"{name}": {{"0": 5}}}}', '{"oops": 7}'))
    (offsets.parent / ".0.crc").unlink()
    for file in (tmp_path / "checkpoint" / "commits").iterdir():
        file.unlink()
    with pytest.raises(PySparkException, match="the checkpoint holds"):
        start(availableNow=True)


def test_filters_narrow_what_is_read(spark: SparkSession, mainstem: Topics) -> None:
    name = mainstem.create(3)
    for partition in range(3):
        mainstem.send(name, range(100), partition=partition, timestamp=START)
    frame = read(spark, mainstem, "mainstem", subscribe=name, filterPushdown="true")
    tail = frame.where("partition = 1 and offset >= 90 and offset < 95")
    assert [row["offset"] for row in rows(tail)] == list(range(90, 95))
    assert tail.rdd.getNumPartitions() == 1
    late = frame.where(f.col("timestamp") >= f.timestamp_millis(f.lit(START + 98)))
    assert [(row["partition"], row["offset"]) for row in rows(late)] == [
        (partition, offset) for partition in range(3) for offset in (98, 99)
    ]
    assert frame.where("partition = 7").count() == 0


@pytest.mark.parametrize(
    "name",
    ["startingOffsets", "endingOffsets", "startingOffsetsByTimestamp", "endingOffsetsByTimestamp"],
)
def test_both_connectors_refuse_a_limit_of_no_partition(
    spark: SparkSession, mainstem: Topics, varied: str, name: str
) -> None:
    for form in ("kafka", "mainstem"):
        with pytest.raises(Exception, match=r"don't match what are assigned|names no partition"):
            read(spark, mainstem, form, subscribe=varied, **{name: "{}"}).collect()


def test_wrong_options_are_told_when_loading(spark: SparkSession, mainstem: Topics) -> None:
    with pytest.raises(PySparkException, match="'subscribed' does not exist; did you mean subscribe"):
        read(spark, mainstem, "mainstem", subscribed="x")
    with pytest.raises(PySparkException, match="topic no-such-topic does not exist"):
        read(spark, mainstem, "mainstem", subscribe="no-such-topic").count()


def test_an_option_that_no_stream_may_have_is_told_as_it_is(
    spark: SparkSession, mainstem: Topics, tmp_path: Path
) -> None:
    name = mainstem.create()
    start = stream(spark, mainstem, "mainstem", tmp_path, subscribe=name, endingOffsets="latest")
    for trigger in ({"availableNow": True}, {"processingTime": "0 seconds"}):
        with pytest.raises(PySparkException, match="endingOffsets is not valid in streaming queries") as told:
            start(**trigger)
        assert "UnboundLocalError" not in str(told.value)
