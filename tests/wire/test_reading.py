"""Metadata, offsets, single fetches and streams, against Mainstem and Apache Kafka."""

import itertools

import pytest
from confluent_kafka import TopicPartition as ConfluentPartition

from mainstem.protocol.errors import ErrorCode
from mainstem.records.batch import iter_headers
from mainstem.records.compression import Codec
from mainstem.wire import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    Cluster,
    NoProgress,
    OffsetOutOfRange,
    TopicGone,
    WireError,
    attempts,
    stream,
)
from tests.support.target import Target, unique_name, when_settled
from tests.wire.helpers import (
    FIRST_TIMESTAMP_MS,
    batch,
    numbered,
    options_of,
    read_all,
    values_of,
    with_offsets,
)


def test_metadata_names_partitions_leaders_and_errors(target: Target, cluster: Cluster) -> None:
    topic, absent = target.create_topic(partitions=3), unique_name("absent")
    found = cluster.metadata([topic, absent])
    assert found[absent].error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert list(found[topic].partitions) == [0, 1, 2]
    assert {part.leader for part in found[topic].partitions.values()} == {target.node_id}
    assert len(found[topic].topic_id.strip(b"\0")) > 0
    assert cluster.metadata()[topic] == found[topic]
    assert absent not in cluster.metadata()  # asking creates nothing
    assert cluster.metadata([]) == {}


def test_offsets_by_time_and_at_both_ends(target: Target, cluster: Cluster) -> None:
    topic = target.create_topic(partitions=2)
    cluster.produce(
        {(topic, 0): [batch(numbered(5)), batch(numbered(5), timestamp_ms=FIRST_TIMESTAMP_MS + 50)]}
    )

    def offset_at(timestamp: int, partition: int = 0) -> int:
        return cluster.list_offsets({(topic, partition): timestamp})[topic, partition]

    assert [offset_at(EARLIEST), offset_at(LATEST), offset_at(MAX_TIMESTAMP)] == [0, 10, 9]
    assert [offset_at(FIRST_TIMESTAMP_MS + ms) for ms in (0, 2, 5, 50, 54, 55)] == [0, 2, 5, 5, 9, -1]
    assert [offset_at(EARLIEST, 1), offset_at(LATEST, 1), offset_at(0, 1)] == [0, 0, -1]
    both = cluster.list_offsets({(topic, 0): LATEST, (topic, 1): LATEST})
    assert both == {(topic, 0): 10, (topic, 1): 0}


def test_a_topic_that_does_not_exist_is_said_to(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "UNKNOWN_TOPIC_GRACE_S", 0.3)
    absent = unique_name("absent")
    with pytest.raises(WireError, match=f"{absent}-0: UNKNOWN_TOPIC_OR_PARTITION"):
        cluster.list_offsets({(absent, 0): LATEST})


def test_one_fetch_gives_what_is_there(target: Target, cluster: Cluster) -> None:
    topic = target.create_topic(partitions=3)
    cluster.produce({(topic, 0): [batch(numbered(4)), batch(numbered(4, "b"))], (topic, 1): [batch([b"x"])]})
    found = cluster.fetch({(topic, 0): 5, (topic, 1): 0, (topic, 2): 0}, max_wait_ms=0)
    assert values_of(found[topic, 0]) == [(5, b"b1"), (6, b"b2"), (7, b"b3")]
    assert values_of(found[topic, 1]) == [(0, b"x")]
    assert values_of(found[topic, 2]) == []
    assert found[topic, 0].aborted is None
    refused = cluster.fetch({(topic, 0): 99, (topic, 1): 0}, max_wait_ms=0)
    assert refused[topic, 0].error == ErrorCode.OFFSET_OUT_OF_RANGE
    assert values_of(refused[topic, 1]) == [(0, b"x")]


@pytest.mark.parametrize("codec", list(Codec))
def test_a_stream_reads_ranges_to_their_ends(target: Target, cluster: Cluster, codec: Codec) -> None:
    topic = target.create_topic(partitions=4)
    values = {number: numbered(90, f"{number}:", 50) for number in range(3)}
    cluster.produce(
        {
            (topic, number): [batch(some[at : at + 30], compression=codec) for at in (0, 30, 60)]
            for number, some in values.items()
        }
    )
    # From within a batch to within another; the whole; within one batch; nothing at all.
    ranges = {(topic, 0): (7, 85), (topic, 1): (0, 90), (topic, 2): (31, 33), (topic, 3): (0, 0)}
    found = read_all(cluster, ranges, partition_bytes=700, max_bytes=1500)
    for number in range(3):
        start, end = ranges[topic, number]
        assert found[topic, number] == with_offsets(values[number])[start:end]
    assert found[topic, 3] == []
    assert cluster.list_offsets({(topic, 0): LATEST})[topic, 0] == 90  # the connection is of use again


def test_a_stream_hands_out_whole_batches_before_the_end_only(topic: str, cluster: Cluster) -> None:
    cluster.produce({(topic, 0): [batch(numbered(10, size=100)) for _ in range(6)]})
    taken = 0
    for _, fetched in cluster.stream({(topic, 0): (3, 35)}, partition_bytes=2000):
        headers = [header for _, header in iter_headers(fetched.records)]
        assert sum(header.size for header in headers) == len(fetched.records)
        assert fetched.next_offset == headers[-1].next_offset
        assert headers[0].base_offset <= fetched.fetch_offset
        taken += len(headers)
    assert taken == 4  # the fifth and sixth batch are behind the end


def test_records_stay_valid_while_the_next_answer_is_handled(topic: str, cluster: Cluster) -> None:
    values = numbered(40, size=1000)
    cluster.produce({(topic, 0): [batch([value]) for value in values]})
    found: list[tuple[int, bytes | None]] = []
    items = (item for _, item in cluster.stream({(topic, 0): (0, 40)}, partition_bytes=1200))
    for former, _ in itertools.pairwise(items):
        found += values_of(former)
    assert found == with_offsets(values)[: len(found)]
    assert len(found) >= 30


def test_a_batch_larger_than_every_limit_is_read(target: Target, cluster: Cluster) -> None:
    topic = target.create_topic(configs={"max.message.bytes": "3000000"})
    values = [b"small", b"x" * 2_000_000, b"small again"]
    cluster.produce({(topic, 0): [batch([value]) for value in values]})
    found = read_all(cluster, {(topic, 0): (0, 3)}, partition_bytes=1000, max_bytes=1000)
    assert found[topic, 0] == with_offsets(values)


def test_an_offset_out_of_range_is_told_and_the_stream_goes_on(target: Target, cluster: Cluster) -> None:
    topic = target.create_topic(partitions=3)
    cluster.produce({(topic, number): [batch(numbered(5)), batch(numbered(5))] for number in range(3)})
    admin = target.admin()
    for future in admin.delete_records([ConfluentPartition(topic, number, 6) for number in (0, 1)]).values():
        future.result(30)
    found: list[tuple[tuple[str, int], int]] = []
    refused: list[OffsetOutOfRange] = []
    with cluster.stream({(topic, number): (2, 10) for number in range(3)}) as reading:
        while True:
            try:
                partition, fetched = next(reading)
                found += [(partition, offset) for offset, _ in values_of(fetched, 10)]
            except OffsetOutOfRange as error:
                refused.append(error)
                if error.partition == (topic, 0):
                    reading.seek(error.partition, error.log_start_offset)
                else:
                    reading.drop(error.partition)
            except StopIteration:
                break
    assert {(error.partition, error.offset) for error in refused} == {((topic, 0), 2), ((topic, 1), 2)}
    assert {(error.log_start_offset, error.log_end_offset) for error in refused} == {(6, 10)}
    assert {offset for partition, offset in found if partition == (topic, 0)} == {6, 7, 8, 9}
    assert {offset for partition, offset in found if partition == (topic, 1)} == set()
    assert {offset for partition, offset in found if partition == (topic, 2)} == set(range(2, 10))


def test_a_range_behind_the_end_of_the_log_is_an_error_in_time(topic: str, cluster: Cluster) -> None:
    cluster.produce({(topic, 0): [batch(numbered(5))]})
    reading = cluster.stream({(topic, 0): (0, 9)}, max_wait_ms=50, progress_timeout_ms=300)
    assert len(values_of(next(reading)[1])) == 5
    with pytest.raises(NoProgress, match=rf"nothing came for 0.3 s of {topic}-0 at offset 5 of 9"):
        next(reading)


def test_a_stream_waits_for_what_comes_in_time(target: Target, topic: str, cluster: Cluster) -> None:
    reading = cluster.stream({(topic, 0): (0, 2)}, max_wait_ms=50)
    cluster.produce({(topic, 0): [batch([b"first"])]})
    assert values_of(next(reading)[1]) == [(0, b"first")]
    cluster.produce({(topic, 0): [batch([b"second"])]})
    assert values_of(next(reading)[1]) == [(1, b"second")]
    assert list(reading) == []


def test_a_deleted_topic_is_told(target: Target, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "UNKNOWN_TOPIC_GRACE_S", 0.3)
    topic = target.create_topic()
    cluster.produce({(topic, 0): [batch(numbered(3))]})
    reading = cluster.stream({(topic, 0): (0, 9)}, max_wait_ms=20)
    next(reading)
    admin = target.admin()
    admin.delete_topics([topic])[topic].result(30)
    with pytest.raises(TopicGone) as raised:
        next(reading)
    assert raised.value.partition == (topic, 0)


def test_a_topic_of_the_same_name_is_another_one(target: Target) -> None:
    topic = target.create_topic()
    with Cluster(options_of(target.bootstrap_servers)) as cluster:
        cluster.produce({(topic, 0): [batch(numbered(3))]})
        reading = cluster.stream({(topic, 0): (0, 9)}, max_wait_ms=20)
        next(reading)
        admin = target.admin()
        admin.delete_topics([topic])[topic].result(30)
        when_settled(lambda: topic in admin.list_topics(timeout=30).topics, lambda is_there: not is_there)
        target.create_topic(topic)
        with pytest.raises(TopicGone, match="deleted and created again"):
            next(reading)
