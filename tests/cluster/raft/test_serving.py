"""What the leader answers to a fetch: records, a snapshot, where the logs part, who leads; DescribeQuorum."""

import pytest

from mainstem.cluster.raft import effects
from mainstem.cluster.raft.messages import Request
from mainstem.protocol.apis import k01_fetch as k01
from mainstem.protocol.apis import k55_describe_quorum as k55
from mainstem.protocol.apis import k59_fetch_snapshot as k59
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.uuids import ONE_UUID, ZERO_UUID
from tests.cluster.raft.nodes import CLUSTER_ID, Node, World, cluster, directory, replicated

TOPIC = "__cluster_metadata"


def _running(*ids: int) -> World:
    world = cluster(*ids)
    world.until(world.has_leader)
    replicated(world)
    return world


def _fetch(node: Node, wait_ms: int = 0, replica_id: int = 50, **fields: object) -> k01.FetchRequest:
    log = node.disk.log
    partition = k01.FetchPartition(
        current_leader_epoch=node.raft.epoch,
        fetch_offset=log.end_offset,
        last_fetched_epoch=log.last_epoch,
        partition_max_bytes=2**20,
        replica_directory_id=directory(replica_id),
    )
    for name, value in fields.items():
        setattr(partition, name, value)
    return k01.FetchRequest(
        cluster_id=CLUSTER_ID,
        replica_state=k01.ReplicaState(replica_id, -1),
        max_wait_ms=wait_ms,
        topics=[k01.FetchTopic(TOPIC, ONE_UUID, [partition])],
    )


def _answer(node: Node, request: Request) -> k01.FetchResponse:
    node.world.client_answers.clear()
    node.world.ask(node, request)
    (answer,) = node.world.client_answers
    assert isinstance(answer, k01.FetchResponse)
    return answer


def _partition(node: Node, request: Request) -> k01.PartitionData:
    return _answer(node, request).responses[0].partitions[0]


def test_a_fetch_at_the_end_waits_for_records_and_no_longer_than_it_says() -> None:
    world = _running(1)
    leader = world.leader()
    world.client_answers.clear()
    end_offset, high_watermark = leader.disk.log.end_offset, leader.committed
    world.ask(leader, _fetch(leader, 300, high_watermark=high_watermark))
    world.ask(leader, _fetch(leader, 500, high_watermark=high_watermark))
    world.run(299)
    assert world.client_answers == []
    world.run(1)
    assert len(world.client_answers) == 1
    leader.append(b"news")
    first, second = world.client_answers
    assert isinstance(first, k01.FetchResponse)
    assert isinstance(second, k01.FetchResponse)
    assert first.responses[0].partitions[0].records == b""
    assert second.responses[0].partitions[0].records == leader.disk.log.read(end_offset, 1)


def test_a_fetch_that_does_not_know_the_high_watermark_is_answered_at_once_kip_1166() -> None:
    world = _running(1)
    leader = world.leader()
    partition = _partition(leader, _fetch(leader, 500, high_watermark=leader.committed - 1))
    assert partition.high_watermark == leader.committed
    world.client_answers.clear()
    world.ask(leader, _fetch(leader, 500))  # what an older version says: as if it knew them all
    assert world.client_answers == []


@pytest.mark.parametrize("older", [1, 2])
def test_a_log_that_parted_is_told_where(older: int) -> None:
    world = _running(1, 2, 3)
    world.kill(world.leader().node_id)
    world.until(world.has_leader)
    leader = world.leader()
    log = leader.disk.log
    epoch, end_offset = log.end_offset_for_epoch(log.last_epoch - 1)
    offset = end_offset + older
    found = _partition(leader, _fetch(leader, fetch_offset=offset, last_fetched_epoch=epoch))
    assert found.diverging_epoch == k01.EpochEndOffset(epoch, end_offset)
    ahead = _partition(leader, _fetch(leader, fetch_offset=log.end_offset + 5))
    assert ahead.diverging_epoch == k01.EpochEndOffset(log.last_epoch, log.end_offset)
    unknown = _partition(leader, _fetch(leader, last_fetched_epoch=leader.raft.epoch + 5))
    assert unknown.diverging_epoch == k01.EpochEndOffset(log.last_epoch, log.end_offset)


def test_who_leads_is_said_by_everybody() -> None:
    world = _running(1, 2, 3)
    leader = world.leader()
    follower = next(node for node in world.alive() if node is not leader)
    for asked, epoch, error in (
        (follower, leader.raft.epoch, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (follower, 0, ErrorCode.FENCED_LEADER_EPOCH),
        (leader, 0, ErrorCode.FENCED_LEADER_EPOCH),
        (leader, 99, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ):
        answer = _answer(asked, _fetch(asked, current_leader_epoch=epoch))
        partition = answer.responses[0].partitions[0]
        assert partition.error_code == error
        assert partition.current_leader == k01.LeaderIdAndEpoch(leader.node_id, leader.raft.epoch)
        place = answer.node_endpoints[0]
        assert (place.node_id, place.host) == (leader.node_id, f"node-{leader.node_id}")


@pytest.mark.parametrize(
    "fields",
    [
        {"fetch_offset": -1},
        {"last_fetched_epoch": -1},
        {"current_leader_epoch": -1},
    ],
)
def test_a_fetch_that_makes_no_sense_is_refused(fields: dict[str, int]) -> None:
    world = _running(1)
    leader = world.leader()
    assert _partition(leader, _fetch(leader, **fields)).error_code == ErrorCode.INVALID_REQUEST


def test_a_fetch_of_something_else_or_for_another_cluster_is_refused() -> None:
    world = _running(1)
    leader = world.leader()
    request = _fetch(leader)
    request.topics[0].topic_id = ZERO_UUID
    request.topics[0].topic = "other"
    assert _answer(leader, request).error_code == ErrorCode.INVALID_REQUEST
    request = _fetch(leader)
    request.cluster_id = "another"
    assert _answer(leader, request).error_code == ErrorCode.INCONSISTENT_CLUSTER_ID


def _snapshot(node: Node, offset: int, epoch: int, position: int) -> k59.FetchSnapshotRequest:
    snapshot_id = k59.SnapshotId(offset, epoch)
    partition = k59.PartitionSnapshot(0, node.raft.epoch, snapshot_id, position, directory(50))
    return k59.FetchSnapshotRequest(CLUSTER_ID, 50, 4, [k59.TopicSnapshot(TOPIC, [partition])])


def test_a_snapshot_is_given_in_pieces_of_the_size_that_is_asked_for() -> None:
    world = _running(1)
    leader = world.leader()
    taken = leader.disk.log.take_snapshot(leader.committed, b"0123456789", leader.raft.history)
    offset, epoch = taken.offset, taken.epoch
    for asked, error, data in (
        (_snapshot(leader, offset, epoch, 0), ErrorCode.NONE, b"0123"),
        (_snapshot(leader, offset, epoch, 8), ErrorCode.NONE, b"89"),
        (_snapshot(leader, offset, epoch, 10), ErrorCode.POSITION_OUT_OF_RANGE, b""),
        (_snapshot(leader, offset, epoch, -1), ErrorCode.POSITION_OUT_OF_RANGE, b""),
        (_snapshot(leader, offset + 1, epoch, 0), ErrorCode.SNAPSHOT_NOT_FOUND, b""),
        (_snapshot(leader, 0, 0, 0), ErrorCode.SNAPSHOT_NOT_FOUND, b""),
    ):
        world.client_answers.clear()
        world.ask(leader, asked)
        (answer,) = world.client_answers
        assert isinstance(answer, k59.FetchSnapshotResponse)
        chunk = answer.topics[0].partitions[0]
        assert (chunk.error_code, chunk.unaligned_records) == (error, data)
        assert chunk.size == (10 if error == ErrorCode.NONE else 0)
        assert chunk.current_leader == k59.LeaderIdAndEpoch(1, leader.raft.epoch)


def _describe(node: Node, topic: str = TOPIC) -> tuple[k55.ResponsePartitionData, list[int]]:
    request = k55.DescribeQuorumRequest([k55.TopicData(topic, [k55.PartitionData(0)])])
    node.world.client_answers.clear()
    node.world.ask(node, request)
    (answer,) = node.world.client_answers
    assert isinstance(answer, k55.DescribeQuorumResponse)
    return answer.topics[0].partitions[0], [each.node_id for each in answer.nodes]


def test_the_leader_describes_every_voter_and_observer() -> None:
    world = _running(1, 2, 3)
    world.start(10, is_controller=False)
    replicated(world)
    world.run(1000)
    leader = world.leader()
    found, nodes = _describe(leader)
    assert (found.leader_id, found.leader_epoch) == (leader.node_id, leader.raft.epoch)
    assert found.high_watermark == leader.committed
    assert [state.replica_id for state in found.current_voters] == [1, 2, 3]
    assert [state.replica_id for state in found.observers] == [10]
    for state in (*found.current_voters, *found.observers):
        assert state.replica_directory_id == directory(state.replica_id)
        assert state.log_end_offset == leader.disk.log.end_offset
        assert 0 <= world.now_ms - state.last_fetch_timestamp <= 600
        assert 0 <= world.now_ms - state.last_caught_up_timestamp <= 600
    assert nodes == [1, 2, 3]
    follower = next(node for node in world.alive() if node is not leader)
    assert _describe(follower)[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert _describe(leader, "other")[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_an_observer_that_is_gone_for_five_minutes_is_forgotten() -> None:
    world = _running(1)
    world.start(10, is_controller=False)
    world.start(11, is_controller=False)
    replicated(world)
    world.run(100)
    world.kill(11)
    leader = world.leader()
    assert [state.replica_id for state in _describe(leader)[0].observers] == [10, 11]
    world.run(301_000)
    assert [state.replica_id for state in _describe(leader)[0].observers] == [10]


def test_who_waits_for_records_is_sent_on_when_the_leader_resigns() -> None:
    world = _running(1, 2, 3)
    leader = world.leader()
    world.client_answers.clear()
    world.ask(leader, _fetch(leader, 60_000))
    world.isolate(leader.node_id)
    world.until(lambda: bool(leader.of(effects.Resigned)))
    (answer,) = world.client_answers
    assert isinstance(answer, k01.FetchResponse)
    assert answer.responses[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
