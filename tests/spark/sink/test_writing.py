"""Rows of one task into topics, at least once: stock clients read what was sent, from both brokers."""

import time
from itertools import chain

import pyarrow as pa
import pytest

from mainstem.spark.sink import stream_writer, writer
from mainstem.spark.sink.errors import SinkError, SinkOptionError
from mainstem.spark.sink.writers import Written
from mainstem.testing import Broker
from mainstem.wire import Cluster, from_kafka_options
from tests.spark.sink.support import (
    ARROW_HEADERS,
    FULL,
    KEYED,
    options_for,
    read_topic,
    read_values,
    rows,
    rows_with_crashes,
    write,
)
from tests.support.target import Target, unique_name


def test_all_parts_of_a_record_arrive(target: Target) -> None:
    first, second = (target.create_topic(partitions=3) for _ in range(2))
    before_ms = time.time_ns() // 1_000_000
    batch = pa.record_batch(
        {
            "topic": [first, second, first],
            "partition": pa.array([2, None, 0], pa.int32()),
            "key": pa.array([b"k", None, b"\xff\x00"], pa.binary()),
            "value": ["zwölf", None, ""],
            "headers": pa.array([[("a", b"1"), ("a", None)], None, []], ARROW_HEADERS),
        }
    )
    message = writer(FULL, {"kafka.bootstrap.servers": target.bootstrap_servers}, False).write(iter([batch]))
    assert message == Written(3)
    found = read_topic(target.bootstrap_servers, first)
    (with_headers,), (empty,) = found[2], found[0]
    assert (with_headers.key, with_headers.value) == (b"k", "zwölf".encode())
    assert with_headers.headers == (("a", b"1"), ("a", None))
    assert before_ms <= with_headers.timestamp_ms <= time.time_ns() // 1_000_000
    assert (empty.key, empty.value, empty.headers) == (b"\xff\x00", b"", ())
    (tombstone,) = chain(*read_topic(target.bootstrap_servers, second).values())
    assert (tombstone.key, tombstone.value) == (None, None)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_order_within_a_partition_is_kept_over_many_batches(target: Target, codec: str) -> None:
    topic = target.create_topic(partitions=4)
    count = 20_000
    batches = [
        rows(
            [b"%d" % number for number in range(start, start + 1000)],
            [f"k{number % 50}" for number in range(1000)],
        )
        for start in range(0, count, 1000)
    ]
    write(
        target.bootstrap_servers,
        topic,
        *batches,
        **{"kafka.compression.type": codec, "kafka.batch.size": "5000"},
    )
    found = read_topic(target.bootstrap_servers, topic)
    assert sorted(int(each.value or b"") for messages in found.values() for each in messages) == list(
        range(count)
    )
    for messages in found.values():
        by_key: dict[bytes | None, list[int]] = {}
        for message in messages:
            by_key.setdefault(message.key, []).append(int(message.value or b""))
        assert all(values == sorted(values) for values in by_key.values())


@pytest.mark.parametrize("acks", ["all", "1", "0"])
def test_every_kind_of_acknowledgement_works(target: Target, acks: str) -> None:
    topic = target.create_topic()
    write(target.bootstrap_servers, topic, rows([b"a", b"b"]), **{"kafka.acks": acks})
    # With acks=0 nobody was told; the answer to a later request on another connection proves nothing either.
    deadline = time.monotonic() + 30
    while (found := read_values(target.bootstrap_servers, topic)) != [b"a", b"b"]:
        assert acks == "0"
        assert time.monotonic() < deadline, found


def test_a_topic_is_created_where_brokers_create_topics() -> None:
    with Broker({"auto.create.topics.enable": "true"}) as broker:
        write(broker.bootstrap_servers, "made", rows([b"a"]))
        assert read_values(broker.bootstrap_servers, "made") == [b"a"]


def test_a_missing_topic_is_one_clear_error() -> None:
    with (
        Broker({"auto.create.topics.enable": "false"}) as broker,
        pytest.raises(SinkError, match=r"the topic absent does not exist at .*: create it"),
    ):
        write(broker.bootstrap_servers, "absent", rows([b"a"]), **{"kafka.max.block.ms": "300"})


def test_an_unreachable_broker_is_one_clear_error() -> None:
    with pytest.raises(Exception, match=r"no broker answers at 127\.0\.0\.1:1 "):
        write("127.0.0.1:1", "any", rows([b"a"]), **{"kafka.delivery.timeout.ms": "300"})


def test_a_record_that_is_too_large_is_refused_before_it_is_sent(target: Target) -> None:
    topic = target.create_topic()
    with pytest.raises(SinkError, match=r"larger than 2000, which is the value of kafka\.max\.request\.size"):
        write(target.bootstrap_servers, topic, rows([b"x" * 3000]), **{"kafka.max.request.size": "2000"})
    assert read_values(target.bootstrap_servers, topic) == []


def test_batches_fit_the_topic(target: Target) -> None:
    topic = target.create_topic(configs={"max.message.bytes": "5000"})
    values = [b"%04d" % number + b"x" * 100 for number in range(1000)]
    write(target.bootstrap_servers, topic, rows(values))
    assert read_values(target.bootstrap_servers, topic) == values


def test_a_record_that_the_topic_does_not_take_says_what_to_do(target: Target) -> None:
    topic = target.create_topic(configs={"max.message.bytes": "1000"})
    with pytest.raises(SinkError, match=r"MESSAGE_TOO_LARGE.*: raise the topic's max\.message\.bytes"):
        write(target.bootstrap_servers, topic, rows([b"x" * 2000]))


def test_no_rows_need_no_broker() -> None:
    assert writer(KEYED, options_for("127.0.0.1:1", "any"), False).write(iter([rows([])])) == Written(0)


def test_overwriting_is_refused_for_batches_and_means_appending_for_queries() -> None:
    options = options_for("127.0.0.1:1", "any")
    with pytest.raises(SinkOptionError, match=r'use mode\("append"\)'):
        writer(KEYED, options, True)
    stream_writer(KEYED, options, True)


def test_a_restarted_broker_makes_no_double(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches that were sent before a crash and sent again after it are recognised by their sequence."""
    monkeypatch.setattr("mainstem.spark.sink.encoding.GATHERED_BYTES", 1)
    with Broker(data_dir=tmp_path_factory.mktemp("data")) as broker:
        topic = unique_name()
        Target("mainstem", broker.bootstrap_servers, broker.data_dir).create_topic(topic)
        sent = [rows([b"%d-%d" % (part, number) for number in range(1000)]) for part in range(30)]

        batch_bytes = {"kafka.batch.size": "2000"}
        writer(KEYED, options_for(broker.bootstrap_servers, topic, **batch_bytes), False).write(
            rows_with_crashes(broker, sent)
        )
        expected = sorted(value.as_py() for batch in sent for value in batch.column("value"))
        assert read_values(broker.bootstrap_servers, topic) == expected


def test_the_batches_are_an_idempotent_producers(mainstem: Target) -> None:
    from mainstem.records.batch import iter_headers

    topic = mainstem.create_topic()
    write(mainstem.bootstrap_servers, topic, rows([b"x" * 100] * 100), **{"kafka.batch.size": "2000"})
    with Cluster(from_kafka_options({"bootstrap.servers": mainstem.bootstrap_servers})) as cluster:
        (fetched,) = cluster.fetch({(topic, 0): 0}).values()
    headers = [header for _, header in iter_headers(fetched.records)]
    assert len({(header.producer_id, header.producer_epoch) for header in headers}) == 1
    assert headers[0].producer_id >= 0
    assert [header.base_sequence for header in headers] == [header.base_offset for header in headers]
