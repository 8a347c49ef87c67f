"""A batch read, driven as Spark drives it but without a JVM: offsets, losses, transactions."""

import json
import logging
from pathlib import Path

import pytest

from mainstem.records.record import Record, build_batch
from mainstem.spark.source.errors import DataLossError, OffsetsError, OptionError, ReadError
from mainstem.testing import Broker
from tests.spark.source.topics import Topics, read_batch, read_by_librdkafka, source, values

START = 1_700_000_000_000


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_column_is_read_as_librdkafka_reads_it(topics: Topics, codec: str) -> None:
    name = topics.create(2)
    topics.send_varied(name, codec, 0)
    topics.send_varied(name, "none", 1)
    read = read_batch(topics.servers, subscribe=name, includeHeaders=True)
    assert read.num_rows == 400
    rows = [{**row, "timestamp_ms": round(row["timestamp"].timestamp() * 1000)} for row in read.to_pylist()]
    expected = read_by_librdkafka(topics, name, 2, 400)
    assert [{column: row[column] for column in expected[0]} for row in rows] == expected
    first, third = read.slice(0, 1).to_pylist()[0], read.slice(2, 1).to_pylist()[0]
    assert (first["key"], first["value"], first["headers"]) == (None, b"", None)
    assert (first["topic"], first["partition"], first["offset"], first["timestampType"]) == (name, 0, 0, 0)
    assert first["timestamp"].timestamp() * 1000 == START
    assert [(each["key"], each["value"]) for each in third["headers"]] == [
        ("a", b"1"), ("a", b"2"), ("empty", b""), ("null", None),
    ]  # fmt: skip


def test_transactions_are_read_by_isolation_level(topics: Topics) -> None:
    name = topics.create()
    topics.send_transactions(name, [True, False, True, False])
    everything = read_batch(topics.servers, subscribe=name)
    assert len(values(everything)) == 20
    made = source(topics.servers, subscribe=name)
    made.options["kafka.isolation.level"] = "read_committed"
    reader = made.reader(made.schema())
    committed = [
        value for part in reader.partitions() for batch in reader.read(part) for value in batch["value"]
    ]
    assert [value.as_py().decode() for value in committed] == [
        f"{transaction}-{number}-True" for transaction in (0, 2) for number in range(5)
    ]


def test_a_log_append_time_says_so(topics: Topics) -> None:
    name = topics.create(message_timestamp_type="LogAppendTime")
    topics.send(name, ["x"], timestamp=1)
    row = read_batch(topics.servers, subscribe=name).to_pylist()[0]
    assert row["timestampType"] == 1
    assert row["timestamp"].timestamp() * 1000 > START


def test_offsets_of_partitions_start_and_end_a_read(topics: Topics) -> None:
    name = topics.create(2)
    topics.send(name, range(10), partition=0)
    topics.send(name, range(10, 20), partition=1)
    start, end = f'{{"{name}":{{"0":3,"1":-2}}}}', f'{{"{name}":{{"0":5,"1":-1}}}}'
    rows = read_batch(topics.servers, subscribe=name, startingOffsets=start, endingOffsets=end)
    assert values(rows) == [str(number) for number in (3, 4, *range(10, 20))]
    rows = read_batch(topics.servers, assign=f'{{"{name}":[1]}}')
    assert values(rows) == [str(number) for number in range(10, 20)]
    rows = read_batch(
        topics.servers, subscribePattern=f"^{name[:-1]}.$", minPartitions=7, maxRecordsPerPartition=2
    )
    assert len(values(rows)) == 20


def test_timestamps_start_and_end_a_read(topics: Topics) -> None:
    name = topics.create(2)
    topics.send(name, range(10), partition=0, timestamp=START)
    topics.send(name, range(10, 20), partition=1, timestamp=START + 100)
    rows = read_batch(
        topics.servers, subscribe=name, startingTimestamp=START + 5, endingTimestamp=START + 102
    )
    assert values(rows) == [str(number) for number in (*range(5, 10), 10, 11)]
    by_partition = f'{{"{name}":{{"0":{START + 8},"1":{START + 500}}}}}'
    with pytest.raises(OffsetsError, match=r"no record at or after .*startingOffsetsByTimestampStrategy"):
        read_batch(topics.servers, subscribe=name, startingOffsetsByTimestamp=by_partition)
    rows = read_batch(
        topics.servers,
        subscribe=name,
        startingOffsetsByTimestamp=by_partition,
        startingOffsetsByTimestampStrategy="latest",
    )
    assert values(rows) == ["8", "9"]


def test_offsets_must_name_the_partitions_that_are_read(topics: Topics) -> None:
    name = topics.create(2)
    with pytest.raises(OffsetsError, match=f"missing are {name}-1, unknown are {name}-7"):
        read_batch(topics.servers, subscribe=name, startingOffsets=f'{{"{name}":{{"0":0,"7":0}}}}')
    with pytest.raises(OffsetsError, match=r"the starting offset 9 .* is greater than its ending offset 0"):
        read_batch(topics.servers, subscribe=name, startingOffsets=f'{{"{name}":{{"0":9,"1":0}}}}')
    with pytest.raises(OffsetsError, match=f"partitions that do not exist: {name}-5"):
        read_batch(topics.servers, assign=f'{{"{name}":[0,5]}}')


def test_a_missing_topic_is_named_with_the_nearest(topics: Topics) -> None:
    name = topics.create()
    with pytest.raises(OffsetsError, match=f"topic {name}s does not exist .*did you mean {name}"):
        read_batch(topics.servers, subscribe=f"{name}s")
    assert read_batch(topics.servers, subscribePattern="^no such topic").num_rows == 0


def test_what_was_deleted_follows_fail_on_data_loss(topics: Topics, caplog: pytest.LogCaptureFixture) -> None:
    name = topics.create()
    topics.send(name, range(20))
    topics.truncate(name, 0, 12)
    assert values(read_batch(topics.servers, subscribe=name)) == [str(n) for n in range(12, 20)]
    options = {"subscribe": name, "startingOffsets": f'{{"{name}":{{"0":3}}}}'}
    with pytest.raises(DataLossError, match=f"{name}-0 begins at offset 12"):
        read_batch(topics.servers, **options)
    with caplog.at_level(logging.WARNING):
        rows = read_batch(topics.servers, failOnDataLoss=False, **options)
    assert values(rows) == [str(number) for number in range(12, 20)]
    assert "begins at offset 12" in caplog.text
    with pytest.raises(DataLossError, match="ends at offset 20, before the ending offset 99"):
        read_batch(topics.servers, subscribe=name, endingOffsets=f'{{"{name}":{{"0":99}}}}')


def test_what_is_deleted_between_the_plan_and_the_task_follows_fail_on_data_loss(topics: Topics) -> None:
    name = topics.create()
    topics.send(name, range(20))
    strict = source(topics.servers, subscribe=name)
    lax = source(topics.servers, subscribe=name, failOnDataLoss=False)
    strict_reader, lax_reader = strict.reader(strict.schema()), lax.reader(lax.schema())
    (task,) = strict_reader.partitions()
    topics.truncate(name, 0, 12)
    with pytest.raises(DataLossError):
        list(strict_reader.read(task))
    (batch,) = lax_reader.read(task)
    assert batch["offset"].to_pylist() == list(range(12, 20))
    topics.truncate(name, 0, 20)
    assert list(lax_reader.read(task)) == []


def test_an_unreachable_cluster_is_one_clear_error() -> None:
    made = source("127.0.0.1:1", subscribe="x")
    made.options["kafka.default.api.timeout.ms"] = "500"
    with pytest.raises(ReadError, match=r"no broker answers at 127\.0\.0\.1:1"):
        made.reader(made.schema()).partitions()


def test_a_schema_of_ones_own_is_refused() -> None:
    made = source("127.0.0.1:1", subscribe="x")
    other = source("127.0.0.1:1", subscribe="x", includeHeaders=True).schema()
    with pytest.raises(OptionError, match="the schema of a topic is fixed"):
        made.reader(other)


def test_java_key_stores_are_refused_with_what_to_write_instead() -> None:
    made = source("127.0.0.1:1", subscribe="x")
    made.options.update({"kafka.security.protocol": "SSL", "kafka.ssl.truststore.location": "trust.jks"})
    with pytest.raises(OptionError, match="keytool"):
        made.reader(made.schema()).partitions()


def test_batches_stay_small_and_a_plan_is_the_same_every_time(mainstem: Topics) -> None:
    name = mainstem.create(8)
    for partition in range(8):
        mainstem.send(name, ["x" * 1000] * 100, partition=partition)
    made = source(mainstem.servers, subscribe=name, maxRowsPerArrowBatch=64, maxTasks=3)
    reader = made.reader(made.schema())
    tasks = list(reader.partitions())
    assert tasks == list(reader.partitions())
    assert len(tasks) == 3
    batches = [batch for task in tasks for batch in reader.read(task)]
    assert sum(batch.num_rows for batch in batches) == 800
    assert max(batch.num_rows for batch in batches) <= 64


def test_a_range_may_begin_and_end_where_compaction_left_nothing(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path) as broker:
        topics = Topics(broker.bootstrap_servers)
        name = topics.create()
        topics.send(name, [str(offset) for offset in range(6)])
    log = next(tmp_path.glob(f"{name}-0/*.log"))
    with log.open("ab") as file:
        file.write(build_batch([Record(0, START, None, b"late")] * 3, base_offset=20))
    (tmp_path / ".kafka_cleanshutdown").unlink()  # so that the log is looked at again
    with Broker(data_dir=tmp_path) as broker:
        for start, end, expected in ((0, 15, 6), (4, 8, 2), (8, 15, 0), (8, 22, 2), (0, 23, 9)):
            rows = read_batch(
                broker.bootstrap_servers,
                assign=json.dumps({name: [0]}),
                startingOffsets=json.dumps({name: {"0": start}}),
                endingOffsets=json.dumps({name: {"0": end}}),
            )
            offsets = rows["offset"].to_pylist() if rows.num_rows else []
            assert offsets == [offset for offset in (*range(6), 20, 21, 22) if start <= offset < end]
            assert len(offsets) == expected
