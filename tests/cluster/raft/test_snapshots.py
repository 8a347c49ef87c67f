"""Snapshots: who is too far behind gets one, in pieces, and goes on from there."""

import pytest

from mainstem.cluster.raft import effects
from mainstem.cluster.raft.settings import RaftSettings
from mainstem.cluster.snapshot import SnapshotId
from tests.cluster.raft.nodes import Disk, Node, World, cluster, replicated


def _with_snapshot(
    data: bytes = b"s" * 1000, seed: int = 1, chunk_bytes: int = 1024
) -> tuple[World, SnapshotId]:
    """Three nodes whose logs begin with a snapshot."""
    world = cluster(1, 2, 3, seed=seed, settings=RaftSettings(fetch_snapshot_max_bytes=chunk_bytes))
    world.until(world.has_leader)
    for number in range(5):
        replicated(world, b"before %d" % number)
    leader = world.leader()
    snapshot_id = leader.disk.log.take_snapshot(leader.committed, data, leader.raft.history)
    world.snapshots[data] = leader.disk.log.snapshots[snapshot_id]
    for node in world.alive():
        if node is not leader:
            assert node.disk.log.take_snapshot(leader.committed, data, node.raft.history) == snapshot_id
    replicated(world, b"after")
    return world, snapshot_id


def _snapshot_of(node: Node) -> list[SnapshotId]:
    return list(node.disk.log.snapshot_ids())


def test_an_observer_that_begins_with_nothing_gets_the_snapshot_in_pieces() -> None:
    world, snapshot_id = _with_snapshot(chunk_bytes=300)
    observer = world.start(10, is_controller=False)
    replicated(world)
    assert _snapshot_of(observer) == [snapshot_id]
    assert len(observer.of(effects.WriteSnapshotChunk)) == 4
    assert observer.disk.log.batches == world.leader().disk.log.batches
    assert observer.raft.voters == world.leader().raft.voters


def test_a_voter_that_was_away_for_long_gets_it() -> None:
    world = cluster(1, 2, 3)
    world.until(world.has_leader)
    replicated(world)
    away = next(node for node in world.alive() if not node.raft.is_leader)
    world.kill(away.node_id)
    for number in range(5):
        replicated(world, b"missed %d" % number)
    leader = world.leader()
    snapshot_id = leader.disk.log.take_snapshot(leader.committed, b"data", leader.raft.history)
    world.snapshots[b"data"] = leader.disk.log.snapshots[snapshot_id]
    again = world.start(away.node_id)
    replicated(world)
    assert _snapshot_of(again) == [snapshot_id]
    assert again.raft.is_voter


def test_a_snapshot_that_goes_away_meanwhile_is_replaced_by_the_next() -> None:
    world, first = _with_snapshot(chunk_bytes=100)
    observer = world.start(10, is_controller=False)
    world.until(lambda: len(observer.of(effects.WriteSnapshotChunk)) == 3)
    leader = world.leader()
    second = leader.disk.log.take_snapshot(leader.committed, b"newer", leader.raft.history)
    world.snapshots[b"newer"] = leader.disk.log.snapshots[second]
    replicated(world)
    assert _snapshot_of(observer) == [second]
    assert observer.of(effects.DropSnapshot) == [effects.DropSnapshot(first)]


def test_a_damaged_snapshot_is_fetched_again() -> None:
    world, snapshot_id = _with_snapshot()
    stored = world.snapshots.pop(b"s" * 1000)
    observer = world.start(10, is_controller=False)
    world.until(lambda: len(observer.of(effects.InstallSnapshot)) == 2)
    world.snapshots[b"s" * 1000] = stored
    replicated(world)
    assert _snapshot_of(observer) == [snapshot_id]


@pytest.mark.parametrize("seed", range(5))
def test_a_leader_that_dies_while_it_sends_one_is_replaced(seed: int) -> None:
    world, snapshot_id = _with_snapshot(seed=seed, chunk_bytes=100)
    observer = world.start(10, is_controller=False)
    world.until(lambda: len(observer.of(effects.WriteSnapshotChunk)) == 3)
    world.kill(world.leader().node_id)
    world.until(world.has_leader)
    replicated(world)
    assert _snapshot_of(observer) == [snapshot_id]


def test_a_voter_does_not_stand_for_election_while_its_log_is_replaced() -> None:
    world, _ = _with_snapshot()
    away = next(node for node in world.alive() if not node.raft.is_leader)
    world.kill(away.node_id)
    again = world.start(away.node_id, disk=Disk())
    world.until(lambda: bool(again.of(effects.InstallSnapshot)))
    world.isolate(again.node_id)
    epoch = again.raft.epoch
    # The driver never says that it is done.
    world.nodes.pop(again.node_id)
    again.world.now_ms += 60_000
    from mainstem.cluster.raft import events

    again.tell(events.TimePassed())
    assert again.raft.epoch == epoch
    assert again.raft.deadline_ms is None


def test_the_log_start_moves_under_a_follower_that_is_behind() -> None:
    """Its offset is below the start, though not 0: it gets the newest snapshot."""
    world, _ = _with_snapshot()
    away = next(node for node in world.alive() if not node.raft.is_leader)
    world.isolate(away.node_id)
    world.until(lambda: world.leader() is not away)
    for number in range(4):
        world.leader().append(b"missed %d" % number)
    leader = world.leader()
    world.until(lambda: leader.committed == leader.disk.log.end_offset)
    newest = leader.disk.log.take_snapshot(leader.committed, b"newest", leader.raft.history)
    world.snapshots[b"newest"] = leader.disk.log.snapshots[newest]
    world.cuts.clear()
    world.until(lambda: newest in _snapshot_of(away))
    replicated(world)
