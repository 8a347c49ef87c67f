"""Brokers that die, move, cut off, lie or keep silent: each is survived, or told in one sentence."""

import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from mainstem.protocol.apis.k01_fetch import FetchRequest
from mainstem.protocol.apis.k03_metadata import MetadataRequest
from mainstem.protocol.apis.k18_api_versions import ApiVersionsResponse
from mainstem.protocol.errors import ErrorCode
from mainstem.records.record import Record, build_batch
from mainstem.testing import Broker
from mainstem.wire import (
    Cluster,
    ConnectionLost,
    NoBrokerAnswers,
    NoProgress,
    NotServed,
    WireError,
    from_kafka_options,
)
from mainstem.wire.connection import Connection
from tests.support.target import Target, unique_name
from tests.wire.helpers import batch, numbered, options_of, read_all, values_of, with_offsets
from tests.wire.scripted_broker import (
    API_VERSIONS,
    FETCH,
    METADATA,
    TOPIC,
    Frame,
    ScriptedBroker,
    asked_offset,
    fetch_answer,
    metadata,
    served,
)

PARTITION = (TOPIC, 0)


def quick(bootstrap: str) -> Cluster:
    """A client that waits for nothing long."""
    return Cluster(
        options_of(bootstrap, default_api_timeout_ms="500", request_timeout_ms="300", retry_backoff_ms="10")
    )


def stored(base_offset: int, count: int = 1, size: int = 10, gap: int = 0) -> bytes:
    """A batch as a log holds it; `gap` records are gone from its end."""
    records = [Record(0, 1, None, b"x" * size) for _ in range(count)]
    made = build_batch(records, base_offset=base_offset)
    struct.pack_into(">i", made, 23, count - 1 + gap)
    return bytes(made)


def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port: int = sock.getsockname()[1]
        return port


def test_bootstrap_servers_that_nobody_is_at() -> None:
    ports = [unused_port(), unused_port()]
    servers = ",".join(f"127.0.0.1:{port}" for port in ports)
    with quick(servers) as cluster, pytest.raises(NoBrokerAnswers) as raised:
        cluster.metadata()
    assert f"no broker answers at 127.0.0.1:{ports[0]}, 127.0.0.1:{ports[1]} (" in str(raised.value)
    assert "connection refused" in str(raised.value)
    with quick(servers) as cluster, pytest.raises(NoBrokerAnswers):
        cluster.list_offsets({("any", 0): -1})
    with quick(servers) as cluster, pytest.raises(NoBrokerAnswers):
        cluster.offset_fetch("any")
    with quick(servers) as cluster, pytest.raises(NoProgress, match="no broker answers"):
        list(cluster.stream({("any", 0): (0, 1)}, progress_timeout_ms=200))


def test_dead_bootstrap_servers_are_passed_over(mainstem: Target) -> None:
    topic = mainstem.create_topic()
    with quick(f"127.0.0.1:{unused_port()},{mainstem.bootstrap_servers}") as cluster:
        assert topic in cluster.metadata([topic])


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"", "the broker closed the connection"),
        (b"\x00\x00", "the broker closed the connection"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "it speaks HTTP"),
        (b"\x7f\xff\xff\xff", "it claims 2147483647 bytes"),
        (b"\xff\xff\xff\xff", "no answer of a Kafka broker"),
        (b"\x00\x00\x00\x03abc", "no answer of a Kafka broker"),
        (b"\x15\x03\x03\x00\x02\x02\x0a", "it speaks TLS"),
        (b"\x00\x00\x00\x08\x00\x00\x00\x63\x00\x00\x00\x00", "an answer that was not asked for"),
        (b"\x00\x00\x00\x08\x00\x00\x00\x01\x00\x00\x7f\xff", "an answer that cannot be read"),
        (b"\x00\x00\x01\x00\x00\x00\x00\x01", "the broker closed the connection"),
    ],
)
def test_what_is_no_broker_is_said_to_be_none(answer: bytes, problem: str) -> None:
    with ScriptedBroker({API_VERSIONS: lambda _: answer}) as broker:
        with pytest.raises(ConnectionLost) as raised:
            Connection("127.0.0.1", broker.port, options_of(broker.bootstrap_servers))
        assert problem in str(raised.value)
        assert broker.bootstrap_servers in str(raised.value)


def test_silence_is_not_waited_for_longer_than_allowed() -> None:
    def silent(_: Any) -> None:
        return None

    with (
        ScriptedBroker({API_VERSIONS: silent}) as broker,
        quick(broker.bootstrap_servers) as cluster,
        pytest.raises(NoBrokerAnswers, match=r"it did not answer ApiVersions in 0\.3 s"),
    ):
        cluster.metadata()


def test_a_trickle_of_bytes_is_not_waited_for_either() -> None:
    """Each byte is in time, their answer is not."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        stop = threading.Event()

        def trickle() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(struct.pack(">i", 10_000))
                while not stop.wait(0.02):
                    try:
                        connection.sendall(b"x")
                    except OSError:
                        return

        thread = threading.Thread(target=trickle)
        thread.start()
        options = replace(options_of(f"127.0.0.1:{listener.getsockname()[1]}"), request_timeout_ms=300)
        with pytest.raises(ConnectionLost, match="did not answer"):
            Connection("127.0.0.1", listener.getsockname()[1], options)
        stop.set()
        thread.join(30)


def test_a_broker_of_old_times_is_asked_in_its_own_version() -> None:
    names: list[str] = []

    def of_old_times(request: Any) -> Any:
        names.append(request.client_software_name)
        if len(names) == 1:
            return Frame(struct.pack(">ihi", 1, ErrorCode.UNSUPPORTED_VERSION, 0))
        return served()

    with ScriptedBroker({API_VERSIONS: of_old_times}) as broker:
        connection = Connection("127.0.0.1", broker.port, options_of(broker.bootstrap_servers))
        assert names == ["mainstem", ""]  # the name came with version 3
        assert connection.version_of(FETCH) == 18
        assert connection.features == {}
        connection.close()


def test_an_api_that_is_not_served_is_named() -> None:
    with (
        ScriptedBroker({API_VERSIONS: lambda _: ApiVersionsResponse()}) as broker,
        quick(broker.bootstrap_servers) as cluster,
        pytest.raises(NotServed, match="does not serve Metadata"),
    ):
        cluster.metadata()


def test_a_closed_connection_says_so(mainstem: Target) -> None:
    connection = Connection(*mainstem.address, options_of(mainstem.bootstrap_servers))
    connection.close()
    with pytest.raises(ConnectionLost, match="the connection is closed"):
        connection.call(MetadataRequest(topics=[]))
    with pytest.raises(ConnectionLost, match="the connection is closed"):
        connection.receive()


def one_broker(script: Callable[[FetchRequest], Any]) -> ScriptedBroker:
    """A broker that leads the only partition and answers Fetch as told."""
    broker = ScriptedBroker({FETCH: script, METADATA: lambda _: metadata({1: broker.port}, 1)})
    return broker


def test_an_answer_that_is_cut_off_is_asked_for_again() -> None:
    answers = iter([b"\x00\x00\x10\x00cut", fetch_answer(stored(0, 3))])
    with one_broker(lambda _: next(answers)) as broker, quick(broker.bootstrap_servers) as cluster:
        assert [fetched.next_offset for _, fetched in cluster.stream({PARTITION: (0, 3)})] == [3]


def test_a_fetch_that_is_never_answered_ends_in_an_error() -> None:
    with one_broker(lambda _: None) as broker, quick(broker.bootstrap_servers) as cluster:
        with pytest.raises(NoProgress, match="the last problem was: no answer from the broker at"):
            list(cluster.stream({PARTITION: (0, 3)}, max_wait_ms=10, progress_timeout_ms=900))
        with pytest.raises(ConnectionLost, match=r"did not answer Fetch in 0\.31 s"):
            cluster.fetch({PARTITION: 0}, max_wait_ms=10)


def test_gaps_are_passed_over() -> None:
    """What compaction leaves: batches without their last records, and offsets that no batch has."""
    log = [stored(0, 2, gap=3), stored(9, 1), stored(20, 1, gap=5), stored(40, 1)]

    def script(request: FetchRequest) -> Any:
        ends = [5, 10, 26, 41]
        return fetch_answer(
            b"".join(part for part, end in zip(log, ends, strict=True) if end > asked_offset(request))
        )

    with one_broker(script) as broker, quick(broker.bootstrap_servers) as cluster:
        items = [item for _, item in cluster.stream({PARTITION: (0, 30)})]
        assert [(item.fetch_offset, item.next_offset) for item in items] == [(0, 40)]
        assert [offset for offset, _ in values_of(items[0])] == [0, 1, 9, 20]
        # Nothing at all is left of this range.
        assert list(cluster.stream({PARTITION: (27, 30)})) == []


def test_a_first_batch_that_does_not_fit_is_asked_for_with_more_room() -> None:
    large = stored(0, 1, size=50_000)

    def script(request: FetchRequest) -> Any:
        return fetch_answer(large[: request.topics[0].partitions[0].partition_max_bytes])

    with one_broker(script) as broker, quick(broker.bootstrap_servers) as cluster:
        found = list(cluster.stream({PARTITION: (0, 1)}, partition_bytes=10, max_bytes=10))
        assert len(found[0][1].records) == len(large)
        limits = [request.max_bytes for request in broker.requests if isinstance(request, FetchRequest)]
        assert limits == sorted(limits)
        assert limits[-1] >= len(large)


def test_a_batch_that_can_never_fit_is_an_error() -> None:
    claimed = struct.pack(">qi", 0, 2**31 - 20) + bytes(100)
    with (
        one_broker(lambda _: fetch_answer(claimed[:20])) as broker,
        quick(broker.bootstrap_servers) as cluster,
        pytest.raises(WireError, match=r"has 2147483640 bytes, at most \d+ are taken"),
    ):
        list(cluster.stream({PARTITION: (0, 1)}))


@pytest.mark.parametrize("damaged", [bytes(100), b"\xff" * 100, stored(0)[:16] + b"\x01" + stored(0)[17:]])
def test_records_that_are_none_are_an_error(damaged: bytes) -> None:
    with (
        one_broker(lambda _: fetch_answer(damaged)) as broker,
        quick(broker.bootstrap_servers) as cluster,
        pytest.raises(WireError, match=r"scripted-0 near offset .* no batch of Kafka's current format"),
    ):
        list(cluster.stream({PARTITION: (0, 1)}))


def test_the_same_batch_again_and_again_is_no_progress() -> None:
    with (
        one_broker(lambda _: fetch_answer(stored(0, 3))) as broker,
        quick(broker.bootstrap_servers) as cluster,
        pytest.raises(NoProgress, match="has no batch with offset 3"),
    ):
        list(cluster.stream({PARTITION: (0, 9)}, progress_timeout_ms=300))


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.KAFKA_STORAGE_ERROR,
    ],
)
def test_partitions_move_with_their_leaders(code: ErrorCode) -> None:
    """The first broker serves a while, then says that it leads no more; the second goes on."""
    moved = threading.Event()

    def of_first(request: FetchRequest) -> Any:
        if asked_offset(request) < 3:
            return fetch_answer(stored(asked_offset(request)))
        moved.set()
        return fetch_answer(code=code)

    def of_second(request: FetchRequest) -> Any:
        assert request.topics[0].partitions[0].current_leader_epoch == 8
        return fetch_answer(stored(asked_offset(request)))

    def told(_: Any) -> Any:
        nodes = {1: first.port, 2: second.port}
        return metadata(nodes, 2, 8) if moved.is_set() else metadata(nodes, 1, 7)

    first = ScriptedBroker({METADATA: told, FETCH: of_first})
    second = ScriptedBroker({METADATA: told, FETCH: of_second})
    with first, second, quick(first.bootstrap_servers) as cluster:
        found = [offset for _, item in cluster.stream({PARTITION: (0, 6)}) for offset, _ in values_of(item)]
        assert found == [0, 1, 2, 3, 4, 5]
        # One fetch finds its way as well.
        assert values_of(cluster.fetch({PARTITION: 4})[PARTITION])[0][0] == 4
        moved.clear()
        assert cluster.metadata()[TOPIC].partitions[0].leader == 1
        assert values_of(cluster.fetch({PARTITION: 4})[PARTITION])[0][0] == 4


def test_a_dead_leader_is_left_for_the_next() -> None:
    dead = unused_port()
    asked: list[int] = []

    def told(_: Any) -> Any:
        asked.append(1)
        return metadata({1: dead, 2: second.port}, 1 if len(asked) < 3 else 2)

    second = ScriptedBroker({METADATA: told, FETCH: lambda _: fetch_answer(stored(0, 5))})
    with second, quick(second.bootstrap_servers) as cluster:
        assert [item.next_offset for _, item in cluster.stream({PARTITION: (0, 5)})] == [5]


def test_a_restart_of_the_broker_is_survived() -> None:
    values = numbered(3000, size=1000)
    topic = unique_name("restarted")
    with Broker() as broker:
        target = Target("mainstem", broker.bootstrap_servers, broker.data_dir)
        target.create_topic(topic)
        options = options_of(broker.bootstrap_servers)
        with Cluster(options) as cluster:
            producer = cluster.init_producer_id()
            batches = [
                batch(values[at : at + 100], producer=producer, sequence=at) for at in range(0, 3000, 100)
            ]
            cluster.produce({(topic, 0): batches[:15]})
            reading = cluster.stream({(topic, 0): (0, 3000)}, partition_bytes=200_000)
            found = values_of(next(reading)[1])
            broker.restart()
            cluster.produce({(topic, 0): batches[15:]})
            for _, fetched in reading:
                found += values_of(fetched)
            assert found == with_offsets(values)
            assert read_all(cluster, {(topic, 0): (0, 3000)})[topic, 0] == found


def test_a_broker_that_is_killed_while_it_is_written_to_loses_and_doubles_nothing() -> None:
    values = numbered(4000, size=500)
    topic = unique_name("killed")
    with Broker() as broker:
        Target("mainstem", broker.bootstrap_servers, broker.data_dir).create_topic(topic)
        with Cluster(options_of(broker.bootstrap_servers)) as cluster:
            producer = cluster.init_producer_id()

            def kill() -> None:
                broker.kill()
                broker.start()

            killing = threading.Thread(target=kill)
            for at in range(0, 4000, 1000):
                batches = [
                    batch(values[first : first + 50], producer=producer, sequence=first)
                    for first in range(at, at + 1000, 50)
                ]
                if at == 2000:
                    killing.start()
                cluster.produce({(topic, 0): batches})
            killing.join(60)
            assert read_all(cluster, {(topic, 0): (0, 4000)})[topic, 0] == with_offsets(values)


def test_errors_of_options_do_not_wait() -> None:
    options = replace(from_kafka_options({"bootstrap.servers": "127.0.0.1:1"}), bootstrap_servers=())
    with (
        Cluster(replace(options, api_timeout_ms=0)) as cluster,
        pytest.raises(NoBrokerAnswers, match="no bootstrap server is given"),
    ):
        cluster.metadata()
