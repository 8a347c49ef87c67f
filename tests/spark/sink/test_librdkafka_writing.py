"""Rows to brokers that want a SASL mechanism which only librdkafka speaks: written as they are elsewhere."""

import logging
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pytest

from mainstem.spark.librdkafka_options import SECURITY_PREFIXES
from mainstem.spark.sink import librdkafka_settings, writer
from mainstem.spark.sink.columns import check_columns
from mainstem.spark.sink.errors import SinkError
from mainstem.spark.sink.options import parse
from mainstem.spark.sink.writers import AtLeastOnceWriter, Written
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
from tests.support.clients import Message
from tests.support.target import Target, unique_name
from tests.wire.secured_kafka import secured_ports
from tests.wire.token_logins import SECRET, TOKEN, UNWANTED_TOKEN, java_login

pytestmark = pytest.mark.peer


@pytest.fixture(scope="module")
def kafka() -> Target:
    """Where that Kafka wants no login: topics are made and read there."""
    return Target("kafka", f"127.0.0.1:{secured_ports()['PLAINTEXT']}", Path())


@pytest.fixture(scope="module")
def servers() -> str:
    """Where it wants a token."""
    return f"127.0.0.1:{secured_ports()['TOKEN']}"


def by_key(found: dict[int, list[Message]]) -> dict[bytes | None, set[int]]:
    """The partitions that hold each key."""
    places: dict[bytes | None, set[int]] = {}
    for partition, messages in found.items():
        for message in messages:
            places.setdefault(message.key, set()).add(partition)
    return places


def test_all_parts_of_a_record_arrive(kafka: Target, servers: str, caplog: pytest.LogCaptureFixture) -> None:
    first, second = (kafka.create_topic(partitions=3) for _ in range(2))
    batch = pa.record_batch(
        {
            "topic": [first, second, first, second],
            "partition": pa.array([2, None, 0, 1], pa.int32()),
            "key": pa.array([b"k", None, b"\xff\x00", b""], pa.binary()),
            "value": ["zwölf", None, "", "x"],
            "headers": pa.array([[("a", b"1"), ("a", None)], None, [], [("ä", b"")]], ARROW_HEADERS),
        }
    )
    before_ms = time.time_ns() // 1_000_000
    with caplog.at_level(logging.WARNING):
        task = writer(FULL, {"kafka.bootstrap.servers": servers, **TOKEN}, False)
    assert "writing through librdkafka, which is several times slower" in caplog.text
    assert task.write(iter([batch])) == Written(4)
    found = read_topic(kafka.bootstrap_servers, first)
    (with_headers,), (empty,) = found[2], found[0]
    assert (with_headers.key, with_headers.value) == (b"k", "zwölf".encode())
    assert with_headers.headers == (("a", b"1"), ("a", None))
    assert before_ms <= with_headers.timestamp_ms <= time.time_ns() // 1_000_000
    assert (empty.key, empty.value, empty.headers) == (b"\xff\x00", b"", ())
    found = read_topic(kafka.bootstrap_servers, second)
    tombstone, other = sorted(chain(*found.values()), key=lambda message: message.value or b"")
    assert (tombstone.key, tombstone.value) == (None, None)
    assert (other.key, other.value, other.headers) == (b"", b"x", (("ä", b""),))


@pytest.mark.parametrize(
    "settings",
    [
        {"kafka.compression.type": "lz4"},
        {"kafka.acks": "1", "kafka.linger.ms": "50"},
        {"kafka.enable.idempotence": "false", "kafka.compression.type": "zstd"},
    ],
)
def test_rows_are_where_the_fast_client_puts_them_and_in_order(
    kafka: Target, servers: str, settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queue is small, so that it is full most of the time."""
    monkeypatch.setattr(librdkafka_settings, "QUEUE_BYTES", 100_000)
    slow, fast = (kafka.create_topic(partitions=4) for _ in range(2))
    count = 20_000
    batches = [
        rows(
            [b"%d" % number + b"." * 200 for number in range(start, start + 1000)],
            [f"k{number % 50}" if number % 50 else None for number in range(1000)],
        )
        for start in range(0, count, 1000)
    ]
    sizes = {"kafka.batch.size": "5000", "kafka.max.request.size": "50000"}
    write(servers, slow, *batches, **TOKEN, **settings, **sizes)
    write(kafka.bootstrap_servers, fast, *batches)
    found = read_topic(kafka.bootstrap_servers, slow)
    expected = by_key(read_topic(kafka.bootstrap_servers, fast))
    assert by_key(found)[None] == set(range(4))
    assert by_key(found) | {None: expected[None]} == expected
    numbers = {
        partition: [int((each.value or b"").rstrip(b".")) for each in messages]
        for partition, messages in found.items()
    }
    assert sorted(chain(*numbers.values())) == list(range(count))
    assert all(each == sorted(each) for each in numbers.values())


def test_the_producer_is_idempotent(kafka: Target, servers: str) -> None:
    from mainstem.records.batch import iter_headers

    topic = kafka.create_topic()
    write(servers, topic, rows([b"x" * 100] * 100), **TOKEN, **{"kafka.batch.size": "2000"})
    with Cluster(from_kafka_options({"bootstrap.servers": kafka.bootstrap_servers})) as cluster:
        (fetched,) = cluster.fetch({(topic, 0): 0}).values()
    headers = [header for _, header in iter_headers(fetched.records)]
    assert len(headers) > 5
    assert headers[0].producer_id >= 0
    assert [header.base_sequence for header in headers] == [header.base_offset for header in headers]


def test_batches_fit_each_topic(kafka: Target, servers: str) -> None:
    large, small = kafka.create_topic(), kafka.create_topic(configs={"max.message.bytes": "5000"})
    values = [b"%04d" % number + b"x" * 100 for number in range(1000)]
    batch = pa.record_batch(
        {
            "topic": [(large, small)[number % 2] for number in range(1000)],
            "partition": pa.nulls(1000, pa.int32()),
            "key": pa.nulls(1000, pa.binary()),
            "value": values,
            "headers": pa.nulls(1000, ARROW_HEADERS),
        }
    )
    writer(FULL, {"kafka.bootstrap.servers": servers, **TOKEN}, False).write(iter([batch, batch]))
    for number, topic in enumerate((large, small)):
        assert read_values(kafka.bootstrap_servers, topic) == sorted(values[number::2] * 2)


def test_javas_options_of_a_login_work(kafka: Target, servers: str, token_endpoint: str) -> None:
    topic = kafka.create_topic()
    write(servers, topic, rows([b"a"]), **java_login(token_endpoint, SECRET))
    assert read_values(kafka.bootstrap_servers, topic) == [b"a"]


def refusal(servers: str, topic: str, value: bytes, **options: str) -> str:
    with pytest.raises(SinkError) as failure:
        write(servers, topic, rows([value]), **(TOKEN | options))
    return str(failure.value)


def test_a_wrong_secret_is_one_clear_error_without_it(
    kafka: Target, servers: str, token_endpoint: str
) -> None:
    with pytest.raises(SinkError, match=f"the brokers at {servers} do not accept the login") as failure:
        write(servers, "any", rows([b"a"]), **java_login(token_endpoint, "wrong-secret"))
    assert "wrong-secret" not in str(failure.value)
    assert "invalid_client" in str(failure.value)


def test_a_login_that_a_broker_refuses_is_one_clear_error(kafka: Target, servers: str) -> None:
    text = refusal(servers, kafka.create_topic(), b"a", **UNWANTED_TOKEN)
    assert "do not accept the login" in text
    assert "invalid_token" in text
    misspelled = {"kafka.sasl.oauthbearer.config": f"principl=alice password={SECRET}"}
    text = refusal(servers, kafka.create_topic(), b"a", **misspelled)
    assert "Unrecognized sasl.oauthbearer.config" in text
    assert "hush" not in text


def test_a_record_that_is_too_large_is_refused_before_it_is_sent(kafka: Target, servers: str) -> None:
    topic = kafka.create_topic()
    text = refusal(servers, topic, b"x" * 3000, **{"kafka.max.request.size": "2000"})
    assert f"a record for the topic {topic} is 3000 bytes" in text
    assert "larger than 2000, which is the value of kafka.max.request.size" in text
    assert read_values(kafka.bootstrap_servers, topic) == []


def test_what_a_broker_refuses_names_topic_and_cause(kafka: Target, servers: str) -> None:
    small = kafka.create_topic(configs={"max.message.bytes": "1000"})
    text = refusal(servers, small, b"x" * 2000)
    assert f"produce to {small}-0: MESSAGE_TOO_LARGE" in text
    assert "raise the topic's max.message.bytes" in text
    compacted = kafka.create_topic(configs={"cleanup.policy": "compact"})
    with pytest.raises(SinkError) as failure:
        write(servers, compacted, rows([b"a", b"b", b"c"], ["k", None, "l"]), **TOKEN)
    assert f"produce to {compacted}-0: INVALID_RECORD" in str(failure.value)


def test_a_missing_topic_and_a_missing_partition_are_clear_errors(kafka: Target, servers: str) -> None:
    absent = unique_name()
    text = refusal(servers, absent, b"a", **{"kafka.max.block.ms": "300"})
    assert f"the topic {absent} does not exist at {servers}: create it" in text
    topic = kafka.create_topic(partitions=2)
    batch = pa.record_batch(
        {
            "topic": [topic],
            "partition": pa.array([2], pa.int32()),
            "key": pa.nulls(1, pa.binary()),
            "value": ["a"],
            "headers": pa.nulls(1, ARROW_HEADERS),
        }
    )
    with pytest.raises(SinkError, match=f"the topic {topic} has the partitions 0 to 1"):
        writer(FULL, {"kafka.bootstrap.servers": servers, **TOKEN}, False).write(iter([batch]))


def test_an_unreachable_broker_is_one_clear_error() -> None:
    with pytest.raises(Exception, match=r"no broker answers at 127\.0\.0\.1:1 .*Connection refused"):
        write("127.0.0.1:1", "any", rows([b"a"]), **TOKEN, **{"kafka.delivery.timeout.ms": "300"})


def through_librdkafka(broker: Broker, topic: str, **more: str) -> AtLeastOnceWriter:
    """A writer on librdkafka for a broker that wants no login, and may be killed."""
    options = parse(options_for(broker.bootstrap_servers, topic, **TOKEN, **more), streaming=False)
    assert options.librdkafka is not None
    client = {
        name: value
        for name, value in options.librdkafka.client.items()
        if not name.startswith(SECURITY_PREFIXES)
    }
    settings = replace(options.librdkafka, client=client)
    return AtLeastOnceWriter(replace(options, librdkafka=settings), check_columns(KEYED, topic))


def test_a_restarted_broker_loses_and_doubles_nothing(tmp_path_factory: pytest.TempPathFactory) -> None:
    with Broker(data_dir=tmp_path_factory.mktemp("data")) as broker:
        topic = Target("mainstem", broker.bootstrap_servers, broker.data_dir).create_topic()
        sent = [rows([b"%d-%d" % (part, number) for number in range(1000)]) for part in range(30)]

        task = through_librdkafka(broker, topic, **{"kafka.batch.size": "2000", "kafka.linger.ms": "0"})
        assert task.write(rows_with_crashes(broker, sent)) == Written(30_000)
        expected = sorted(value.as_py() for batch in sent for value in batch.column("value"))
        assert read_values(broker.bootstrap_servers, topic) == expected


def test_a_broker_that_is_gone_fails_the_task() -> None:
    with Broker({"auto.create.topics.enable": "true"}) as broker:

        def batches_with_an_end() -> Iterator[pa.RecordBatch]:
            yield rows([b"a"])
            broker.kill()
            yield rows([b"b"])

        task = through_librdkafka(broker, "made", **{"kafka.delivery.timeout.ms": "1000"})
        with pytest.raises(SinkError) as failure:
            task.write(batches_with_an_end())
    assert "produce to made-0: not acknowledged within kafka.delivery.timeout.ms, 1000 ms" in str(
        failure.value
    )
    assert "Connection refused" in str(failure.value)


def test_no_rows_need_no_broker() -> None:
    options = options_for("127.0.0.1:1", "any", **TOKEN)
    empty = pa.record_batch({"key": pa.array([], pa.string()), "value": pa.array([], pa.string())})
    assert writer(FULL, options, False).write(iter([empty])) == Written(0)
