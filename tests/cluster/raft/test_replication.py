"""Replication: what the leader appends reaches everybody, and only a majority's durable copy is committed."""

import pytest

from mainstem.cluster.raft import effects, events
from mainstem.cluster.raft.voters import VoterSet
from tests.cluster.raft.nodes import World, cluster, replicated, voter


def _running(*ids: int, seed: int = 1) -> World:
    world = cluster(*ids, seed=seed)
    world.until(world.has_leader)
    replicated(world)
    return world


def test_records_reach_every_voter_and_every_observer() -> None:
    world = _running(1, 2, 3)
    world.start(10, is_controller=False)
    for number in range(20):
        replicated(world, b"value %d" % number)
    logs = {b"".join(batch.data for batch in node.disk.log.batches) for node in world.alive()}
    assert len(world.alive()) == 4
    assert len(logs) == 1


def test_a_record_is_committed_in_two_round_trips_and_two_fsyncs() -> None:
    """The parked fetch brings it, the next one acknowledges it, its answer tells that it is committed."""
    world = _running(1, 2, 3)
    world.run(100)
    leader = world.leader()
    end_offset = leader.append(b"now")
    assert world.until(lambda: leader.committed >= end_offset) <= 2 * world.latency_ms + world.fsync_ms
    # Fetch 18 knows the high watermark of the follower (KIP-1166): its fetch does not park.
    waited_ms = world.until(lambda: all(node.committed >= end_offset for node in world.alive()))
    assert waited_ms <= 2 * world.latency_ms


def test_the_leader_counts_itself_only_when_its_own_disk_has_it() -> None:
    world = _running(1, 2, 3)
    leader = world.leader()
    away = next(node for node in world.alive() if node is not leader)
    world.kill(away.node_id)
    world.run(100)
    before = leader.committed
    end_offset = leader.disk.log.append_value(b"slow disk", leader.raft.epoch)
    leader.tell(events.Written(end_offset))
    world.run(200)
    assert leader.committed == before
    leader.tell(events.Durable(end_offset))
    assert leader.committed == end_offset


def test_the_driver_may_hear_of_other_things_before_it_tells_what_the_controller_wrote() -> None:
    world = _running(1, 2, 3)
    leader = world.leader()
    end_offset = leader.disk.log.append_value(b"x", leader.raft.epoch)
    leader.tell(events.TimePassed())
    leader.tell(events.Resign(leader.raft.epoch))
    assert not leader.raft.is_leader
    leader.tell(events.Written(end_offset))
    leader.tell(events.Durable(end_offset))
    world.until(world.has_leader)
    replicated(world)


def test_a_follower_says_only_what_is_durable() -> None:
    world = _running(1, 2, 3)
    leader = world.leader()
    slow, gone = (node for node in world.alive() if node is not leader)
    world.kill(gone.node_id)
    world.run(100)
    world.fsync_ms = 300
    before = leader.committed
    end_offset = leader.append(b"x")
    world.run(200)
    assert slow.disk.log.end_offset == end_offset
    assert leader.committed == before
    world.until(lambda: leader.committed == end_offset)


@pytest.mark.parametrize("seed", range(10))
def test_what_a_deposed_leader_could_not_commit_is_cut_off_by_epoch(seed: int) -> None:
    world = _running(1, 2, 3, seed=seed)
    old = world.leader()
    world.isolate(old.node_id)
    for number in range(5):
        old.append(b"lost %d" % number)
    world.until(lambda: any(node.raft.is_active for node in world.alive() if node is not old))
    new = world.leader()
    assert new is not old
    for number in range(3):
        new.append(b"kept %d" % number)
    world.until(lambda: new.committed == new.disk.log.end_offset)
    world.cuts.clear()
    world.until(lambda: old.disk.log.batches == new.disk.log.batches)
    assert old.of(effects.Truncate)
    assert old.of(effects.Resigned)


def test_everything_durable_at_a_majority_survives_the_loss_of_what_was_not() -> None:
    world = _running(1, 2, 3)
    leader = world.leader()
    end_offset = leader.append(b"acknowledged")
    world.until(lambda: leader.committed >= end_offset)
    # Never fsynced anywhere, and everybody loses power.
    leader.disk.log.append_value(b"not acknowledged", leader.raft.epoch)
    for node_id in (1, 2, 3):
        world.kill(node_id)
    for node_id in (1, 2, 3):
        world.start(node_id)
    world.until(world.has_leader)
    replicated(world)
    kept = b"".join(batch.data for batch in world.leader().disk.log.batches)
    assert b"\x18acknowledged" in kept
    assert b"not acknowledged" not in kept


def test_an_observer_without_a_leader_asks_the_bootstrap_servers_until_one_knows() -> None:
    world = cluster(1, 2, 3)
    observer = world.start(10, is_controller=False)
    world.until(world.has_leader)
    replicated(world)
    assert observer.raft.leader_id == world.leader().node_id
    world.kill(world.leader().node_id)
    world.until(world.has_leader)
    replicated(world)
    assert observer.raft.leader_id == world.leader().node_id
    assert (observer.raft.role, observer.raft.is_voter) == ("follower", False)


def test_an_observer_that_knows_a_leader_by_its_id_alone_learns_its_address_from_itself() -> None:
    world = cluster(1)
    observer = world.start(10, is_controller=False)
    world.until(lambda: observer.raft.leader_id == 1)
    world.kill(10)  # before it has read who votes, and where
    assert observer.disk.log.end_offset == 0
    observer = world.start(10, is_controller=False)
    replicated(world)
    assert (observer.raft.role, observer.raft.leader_id) == ("follower", 1)


def test_a_node_of_another_cluster_gets_nothing() -> None:
    world = _running(1, 2, 3)
    stranger = world.start(10, is_controller=False, cluster_id="another")
    world.run(5_000)
    assert (stranger.raft.leader_id, stranger.disk.log.end_offset) == (-1, 0)
    assert stranger.raft.epoch == 0


def test_a_voter_of_another_cluster_disturbs_nobody() -> None:
    world = _running(1, 2, 3)
    epoch = world.leader().raft.epoch
    away = next(node for node in world.alive() if not node.raft.is_leader)
    world.kill(away.node_id)
    world.start(away.node_id, cluster_id="another")
    world.run(20_000)
    assert world.leader().raft.epoch == epoch


def test_a_voter_whose_disk_was_wiped_catches_up_from_nothing() -> None:
    world = _running(1, 2, 3)
    away = next(node for node in world.alive() if not node.raft.is_leader)
    world.kill(away.node_id)
    disk = type(away.disk)()
    disk.format(VoterSet.of(voter(each) for each in (1, 2, 3)))
    world.start(away.node_id, disk=disk)
    replicated(world)
    assert disk.log.batches == world.leader().disk.log.batches
