"""Appending batches: order, what a retry may not double, refusals, and transactions in both protocols."""

import pytest

from mainstem.protocol.errors import ErrorCode
from mainstem.wire import (
    LATEST,
    READ_COMMITTED,
    Cluster,
    CommittedOffset,
    KafkaRefusal,
    ProducerIdentity,
    WireError,
    attempts,
    producing,
    transactions,
)
from tests.support.target import Target, unique_name
from tests.wire.helpers import batch, numbered, options_of, read_all, values_of, with_offsets


@pytest.fixture(params=["older", "newer"])
def protocol(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The two protocols of transactions; every broker here speaks both."""
    if request.param == "older":
        monkeypatch.setattr(transactions, "_IMPLICIT_LEVEL", 99)
    return request.param


def end_of(cluster: Cluster, topic: str) -> int:
    return cluster.list_offsets({(topic, 0): LATEST})[topic, 0]


@pytest.mark.parametrize("idempotent", [False, True])
def test_batches_arrive_in_order(target: Target, cluster: Cluster, idempotent: bool) -> None:
    topic = target.create_topic(partitions=2)
    producer = cluster.init_producer_id() if idempotent else None
    values = numbered(300)
    batches = [
        batch(values[at : at + 10], producer=producer, sequence=at) for at in range(0, len(values), 10)
    ]
    cluster.produce({(topic, 1): [batch([b"earlier"])]})
    first = cluster.produce({(topic, 0): batches, (topic, 1): batches})
    assert first == {(topic, 0): 0, (topic, 1): 1}
    found = read_all(cluster, {(topic, 0): (0, 300), (topic, 1): (1, 301)})
    assert found[topic, 0] == with_offsets(values)
    assert found[topic, 1] == with_offsets(values, 1)


def test_what_was_written_already_is_not_written_again(topic: str, cluster: Cluster) -> None:
    producer = cluster.init_producer_id()
    batches = [batch(numbered(3), producer=producer, sequence=at) for at in (0, 3, 6)]
    assert cluster.produce({(topic, 0): batches}) == {(topic, 0): 0}
    assert cluster.produce({(topic, 0): batches}) == {(topic, 0): 0}
    assert end_of(cluster, topic) == 9


def test_a_missing_sequence_is_refused(topic: str, cluster: Cluster) -> None:
    producer = cluster.init_producer_id()
    cluster.produce({(topic, 0): [batch(numbered(3), producer=producer)]})
    with pytest.raises(KafkaRefusal) as raised:
        cluster.produce({(topic, 0): [batch(numbered(3), producer=producer, sequence=7)]})
    assert raised.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert f"produce to {topic}-0" in str(raised.value)
    assert end_of(cluster, topic) == 3


def test_a_batch_that_is_too_large_is_refused(target: Target, cluster: Cluster) -> None:
    topic = target.create_topic(configs={"max.message.bytes": "1000"})
    with pytest.raises(KafkaRefusal) as raised:
        cluster.produce({(topic, 0): [batch([b"x" * 2000])]})
    assert raised.value.code == ErrorCode.MESSAGE_TOO_LARGE


def test_nobody_is_asked_to_acknowledge(topic: str, cluster: Cluster) -> None:
    assert cluster.produce({(topic, 0): [batch(numbered(3)), batch(numbered(2))]}, acks=0) == {(topic, 0): -1}
    assert cluster.produce({(topic, 0): [batch([b"last"])]}, acks=1) == {(topic, 0): 5}


def test_requests_are_split_by_size(
    target: Target, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(producing, "REQUEST_BYTES_MAX", 1000)
    topic = target.create_topic(partitions=5)
    cluster.produce({(topic, number): [batch([b"x" * 600])] * 2 for number in range(5)})
    ends = cluster.list_offsets({(topic, number): LATEST for number in range(5)})
    assert list(ends.values()) == [2] * 5


def test_an_absent_topic_is_told(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "UNKNOWN_TOPIC_GRACE_S", 0.3)
    with pytest.raises(WireError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        cluster.produce({(unique_name("absent"), 0): [batch([b"x"])]})
    with pytest.raises(ValueError, match="at least 61 bytes"):
        cluster.produce({(unique_name("absent"), 0): [b"no batch"]})


def test_a_transaction_with_offsets_is_committed(
    target: Target, cluster: Cluster, topic: str, protocol: str
) -> None:
    name, group = unique_name("txn"), unique_name("group")
    producer = cluster.init_producer_id(name)
    for number in range(3):
        records = batch(numbered(4, f"{number}:"), producer=producer, transactional=True)
        if protocol == "older":
            sequence = 4 * number  # the epoch stays, and the sequence with it
            records = batch(
                numbered(4, f"{number}:"), producer=producer, transactional=True, sequence=sequence
            )
        cluster.produce({(topic, 0): [records]}, transactional_id=name)
        commit = {(topic, 0): CommittedOffset(number, f"batch {number}")}
        cluster.txn_offset_commit(name, producer, group, commit)
        former, producer = producer, cluster.end_txn(name, producer, committed=True)
        assert (producer.epoch > former.epoch) == (protocol == "newer")
        assert cluster.offset_fetch(group, [(topic, 0)])[topic, 0][:2] == (number, f"batch {number}")
    found = read_all(cluster, {(topic, 0): (0, 15)}, isolation=READ_COMMITTED)[topic, 0]
    assert [value for _, value in found] == [
        value for number in range(3) for value in numbered(4, f"{number}:")
    ]


def test_an_aborted_transaction_leaves_nothing(cluster: Cluster, topic: str, protocol: str) -> None:
    name, group = unique_name("txn"), unique_name("group")
    producer = cluster.init_producer_id(name)
    records = batch(numbered(4), producer=producer, transactional=True)
    cluster.produce({(topic, 0): [records]}, transactional_id=name)
    cluster.txn_offset_commit(name, producer, group, {(topic, 0): CommittedOffset(5)})
    cluster.end_txn(name, producer, committed=False)
    assert cluster.offset_fetch(group, [(topic, 0)]) == {}
    (item,) = cluster.stream({(topic, 0): (0, 5)}, isolation=READ_COMMITTED)
    assert item[1].aborted == [(producer.producer_id, 0)]
    assert len(values_of(item[1])) == 4
    assert all(item[1].aborted is None for item in cluster.stream({(topic, 0): (0, 5)}))


def test_an_older_producer_of_the_same_id_is_fenced(
    target: Target, cluster: Cluster, topic: str, protocol: str
) -> None:
    name, group = unique_name("txn"), unique_name("group")
    former = cluster.init_producer_id(name)
    records = batch([b"left open"], producer=former, transactional=True)
    cluster.produce({(topic, 0): [records]}, transactional_id=name)
    with Cluster(options_of(target.bootstrap_servers)) as other:
        producer = other.init_producer_id(name)
        assert producer.producer_id == former.producer_id
        assert producer.epoch > former.epoch
        committed = other.list_offsets({(topic, 0): LATEST}, isolation=READ_COMMITTED)
        assert committed[topic, 0] == 2  # the record and the marker that aborts it
    fenced = {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_TXN_STATE,
    }

    def refused() -> list[ErrorCode]:
        codes: list[ErrorCode] = []
        for attempt in (
            lambda: cluster.produce({(topic, 0): [records]}, transactional_id=name),
            lambda: cluster.txn_offset_commit(name, former, group, {(topic, 0): CommittedOffset(1)}),
            lambda: cluster.end_txn(name, former, committed=True),
        ):
            with pytest.raises(KafkaRefusal) as raised:
                attempt()
            codes.append(raised.value.code)
        return codes

    assert set(refused()) <= fenced


def test_offsets_are_committed_from_outside_of_a_group(target: Target, cluster: Cluster) -> None:
    topic, group = target.create_topic(partitions=2), unique_name("group")
    assert cluster.offset_fetch(group) == {}
    cluster.offset_commit(group, {(topic, 0): CommittedOffset(7, "why"), (topic, 1): CommittedOffset(8)})
    cluster.offset_commit(group, {(topic, 1): CommittedOffset(9, leader_epoch=0)})
    assert cluster.offset_fetch(group)[topic, 0] == CommittedOffset(7, "why")
    assert cluster.offset_fetch(group, [(topic, 1)], require_stable=False) == {
        (topic, 1): CommittedOffset(9, "", 0)
    }
    assert cluster.at_coordinators("group", [group], lambda node, *_: [node]) == [target.node_id]


def test_a_producer_id_is_given_anew_with_its_epoch(cluster: Cluster) -> None:
    name = unique_name("txn")
    first = cluster.init_producer_id(name, transaction_timeout_ms=10_000)
    again = cluster.init_producer_id(name, current=first)
    assert again == ProducerIdentity(first.producer_id, first.epoch + 1)
