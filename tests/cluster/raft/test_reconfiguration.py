"""KIP-853: voters come, go and move while the quorum works; kraft.version is raised first."""

from collections.abc import Sequence

import pytest

from mainstem.cluster.raft import effects, events
from mainstem.cluster.raft.messages import Request
from mainstem.cluster.raft.settings import RaftSettings
from mainstem.cluster.raft.voters import ReplicaKey, VoterSet
from mainstem.protocol.apis import k80_add_raft_voter as k80
from mainstem.protocol.apis import k82_update_raft_voter as k82
from mainstem.protocol.apis.k81_remove_raft_voter import RemoveRaftVoterRequest
from mainstem.protocol.errors import ErrorCode
from tests.cluster.raft.nodes import (
    CLUSTER_ID,
    LISTENER,
    Disk,
    Node,
    World,
    cluster,
    directory,
    endpoint,
    replicated,
    voter,
)


def _running(*ids: int, dynamic: bool = True, settings: RaftSettings | None = None) -> World:
    world = cluster(*ids, dynamic=dynamic, settings=settings)
    world.until(world.has_leader)
    replicated(world)
    return world


def _add(node_id: int, number: int = 0, *, ack_when_committed: bool = True) -> k80.AddRaftVoterRequest:
    place = endpoint(node_id)
    listeners = [k80.Listener(place.listener, place.host, place.port)]
    return k80.AddRaftVoterRequest(
        CLUSTER_ID, 5000, node_id, directory(node_id, number), listeners, ack_when_committed
    )


def _remove(node_id: int, number: int = 0) -> RemoveRaftVoterRequest:
    return RemoveRaftVoterRequest(CLUSTER_ID, node_id, directory(node_id, number))


def _ask(world: World, request: Request, node: Node | None = None) -> ErrorCode:
    """What a tool is answered."""
    world.client_answers.clear()
    world.ask(node or world.leader(), request)
    world.until(lambda: bool(world.client_answers))
    (answer,) = world.client_answers
    return ErrorCode(answer.error_code)


def _ids(world: World) -> set[frozenset[int]]:
    return {node.raft.voters.ids for node in world.alive()}


def test_a_quorum_grows_from_one_to_three_and_survives_the_first() -> None:
    world = _running(1)
    world.run(60_000)
    for node_id in (2, 3):
        world.start(node_id)
        replicated(world)
        world.run(100)
        assert _ask(world, _add(node_id)) == ErrorCode.NONE
        replicated(world)
    assert _ids(world) == {frozenset((1, 2, 3))}
    assert world.leader().node_id == 1, "it need not have heard of voters before there were any"
    world.kill(1)
    world.until(world.has_leader)
    replicated(world)


def test_a_leader_that_is_removed_leads_until_that_is_committed_then_resigns() -> None:
    """KAFKA-16530: meanwhile it does not count itself."""
    world = _running(1, 2, 3)
    leader = world.leader()
    others = [node for node in world.alive() if node is not leader]
    world.kill(others[0].node_id)
    world.ask(leader, _remove(leader.node_id))
    world.run(300)
    assert world.client_answers == [], "of the two voters that are left, one is not a majority"
    assert leader.raft.is_leader
    assert not leader.raft.is_voter
    others[0] = world.start(others[0].node_id)
    world.until(lambda: any(node.raft.is_active for node in others))
    assert [answer.error_code for answer in world.client_answers] == [0]
    replicated(world)
    assert _ids(world) == {frozenset(node.node_id for node in others)}
    assert leader.raft.role == "follower", "an observer from now on"


@pytest.mark.parametrize("seed", range(5))
def test_a_leader_of_two_whose_removal_the_other_never_saw_leads_again_to_commit_it(seed: int) -> None:
    """Its own log says that it is no voter, and the other's, which is shorter, that its vote is needed."""
    world = cluster(1, 2, seed=seed)
    world.until(world.has_leader)
    replicated(world)
    leader = world.leader()
    (other,) = (node for node in world.alive() if node is not leader)
    world.isolate(leader.node_id)
    world.ask(leader, _remove(leader.node_id))
    world.until(lambda: not leader.raft.is_leader)
    world.cuts.clear()
    world.until(lambda: other.raft.is_active and len(other.raft.voters) == 1)
    replicated(world)
    assert leader.raft.leader_id == other.node_id
    world.kill(leader.node_id)
    world.start(leader.node_id)
    replicated(world)
    assert _ids(world) == {frozenset((other.node_id,))}


def test_a_voter_that_is_removed_goes_on_as_an_observer() -> None:
    world = _running(1, 2, 3)
    away = next(node for node in world.alive() if not node.raft.is_leader)
    assert _ask(world, _remove(away.node_id)) == ErrorCode.NONE
    replicated(world)
    assert not away.raft.is_voter
    epoch = world.leader().raft.epoch
    world.run(20_000)
    assert world.leader().raft.epoch == epoch


def test_only_one_change_at_a_time() -> None:
    """KAFKA-16535: an uncommitted set of voters and the next could have majorities that share nobody."""
    world = _running(1, 2, 3)
    for node_id in (4, 5):
        world.start(node_id)
    replicated(world)
    leader = world.leader()
    for node in world.alive():
        if node.node_id in (1, 2, 3):
            world.cut(leader.node_id, node.node_id)
    world.ask(leader, _remove(leader.node_id % 3 + 1))
    assert leader.raft.history.voters_offset == leader.disk.log.end_offset - 1
    assert _ask(world, _remove((leader.node_id + 1) % 3 + 1), leader) == ErrorCode.REQUEST_TIMED_OUT
    assert _ask(world, _add(4), leader) == ErrorCode.REQUEST_TIMED_OUT


def test_no_change_before_a_record_of_the_epoch_is_committed() -> None:
    """KAFKA-16537: the leader does not know before whether an earlier change was committed."""
    world = _running(1, 2, 3)
    for node in world.alive():
        world.kill(node.node_id)
    for node_id in (1, 2, 3):
        world.start(node_id)
    world.until(lambda: any(node.raft.is_leader for node in world.alive()))
    leader = next(node for node in world.alive() if node.raft.is_leader)
    assert not leader.raft.is_active
    assert _ask(world, _remove(leader.node_id % 3 + 1), leader) == ErrorCode.REQUEST_TIMED_OUT


def test_who_is_not_caught_up_does_not_become_a_voter() -> None:
    world = _running(1, 2, 3)
    assert _ask(world, _add(4)) == ErrorCode.REQUEST_TIMED_OUT, "nobody listens there"
    world.start(4)
    assert _ask(world, _add(4)) == ErrorCode.REQUEST_TIMED_OUT, "it has not fetched everything"
    world.run(100)
    assert _ask(world, _add(4)) == ErrorCode.NONE


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (_add(2), ErrorCode.DUPLICATE_VOTER),
        (_add(2, 5), ErrorCode.DUPLICATE_VOTER),
        (_remove(7), ErrorCode.VOTER_NOT_FOUND),
        (_remove(2, 5), ErrorCode.VOTER_NOT_FOUND),
        (RemoveRaftVoterRequest("another", 2, directory(2)), ErrorCode.INCONSISTENT_CLUSTER_ID),
        (RemoveRaftVoterRequest(CLUSTER_ID, -1, directory(2)), ErrorCode.INVALID_REQUEST),
        (RemoveRaftVoterRequest(CLUSTER_ID, 2), ErrorCode.INVALID_REQUEST),
        (k80.AddRaftVoterRequest(CLUSTER_ID, 100, 9, directory(9)), ErrorCode.INVALID_REQUEST),
    ],
)
def test_requests_that_make_no_sense_are_refused(request_: Request, error: ErrorCode) -> None:
    world = _running(1, 2, 3)
    assert _ask(world, request_) == error
    follower = next(node for node in world.alive() if not node.raft.is_leader)
    if error != ErrorCode.INCONSISTENT_CLUSTER_ID:
        assert _ask(world, request_, follower) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert _ids(world) == {frozenset((1, 2, 3))}


def test_the_last_voter_stays() -> None:
    world = _running(1)
    assert _ask(world, _remove(1)) == ErrorCode.INVALID_REQUEST


def test_a_replica_that_may_join_by_itself_does_and_replaces_its_lost_directory() -> None:
    world = _running(1, 2, 3, settings=RaftSettings(auto_join=True))
    world.start(4)
    world.until(lambda: _ids(world) == {frozenset((1, 2, 3, 4))})
    replicated(world)
    world.kill(4)
    world.start(4, disk=Disk(number=1))
    world.until(
        lambda: all(node.raft.voters.find(ReplicaKey(4, directory(4, 1))) for node in world.alive()), 60_000
    )
    assert world.nodes[4].raft.is_voter
    replicated(world)


def test_a_voter_that_moved_makes_its_new_address_known() -> None:
    world = _running(1, 2, 3)
    away = next(node for node in world.alive() if not node.raft.is_leader)
    moved = k82.UpdateRaftVoterRequest(
        CLUSTER_ID,
        world.leader().raft.epoch,
        away.node_id,
        directory(away.node_id),
        [k82.Listener(LISTENER, "moved", 9999)],
        k82.KRaftVersionFeature(0, 1),
    )
    assert _ask(world, moved) == ErrorCode.NONE
    replicated(world)
    for node in world.alive():
        found = node.raft.voters.get(away.node_id)
        assert found is not None
    # It was not true: the voter itself says so within some fetch time-outs.
    world.until(lambda: world.leader().raft.voters.get(away.node_id) == voter(away.node_id))


def test_a_static_quorum_is_upgraded_and_voters_have_directories_from_then_on() -> None:
    world = _running(1, 2, 3, dynamic=False)
    leader = world.leader()
    upgrade = events.UpgradeKRaftVersion(1, "token")
    leader.tell(upgrade)
    (answer,) = leader.of(effects.UpgradeAnswered)
    assert isinstance(answer, effects.UpgradeAnswered)
    assert answer.error == ErrorCode.INVALID_UPDATE_VERSION, "not every voter has said what it supports"
    assert _ask(world, _add(4)) == ErrorCode.UNSUPPORTED_VERSION
    world.run(10_000)
    leader.tell(events.UpgradeKRaftVersion(1, "token", validate_only=True))
    leader.tell(upgrade)
    world.until(lambda: len(leader.of(effects.UpgradeAnswered)) == 3)
    assert _errors(leader.of(effects.UpgradeAnswered)[1:]) == [ErrorCode.NONE, ErrorCode.NONE]
    replicated(world)
    expected = VoterSet.of(voter(each) for each in (1, 2, 3))
    assert [node.raft.voters for node in world.alive()] == [expected] * 3
    assert [node.raft.history.kraft_version for node in world.alive()] == [1] * 3
    world.start(4)
    replicated(world)
    world.run(100)
    assert _ask(world, _add(4)) == ErrorCode.NONE


def _errors(answers: Sequence[effects.Effect]) -> list[ErrorCode]:
    return [answer.error for answer in answers if isinstance(answer, effects.UpgradeAnswered)]


def test_kraft_version_does_not_go_back() -> None:
    world = _running(1)
    leader = world.leader()
    for level in (0, 1, 2):
        leader.tell(events.UpgradeKRaftVersion(level, level))
    expected = [ErrorCode.INVALID_UPDATE_VERSION, ErrorCode.NONE, ErrorCode.INVALID_UPDATE_VERSION]
    assert _errors(leader.of(effects.UpgradeAnswered)) == expected


def test_a_change_that_was_not_committed_is_undone_with_its_record() -> None:
    world = _running(1, 2, 3)
    old = world.leader()
    world.isolate(old.node_id)
    world.ask(old, _remove(old.node_id % 3 + 1))
    assert len(old.raft.voters) == 2
    world.until(lambda: any(node.raft.is_active for node in world.alive() if node is not old))
    world.cuts.clear()
    replicated(world)
    assert _ids(world) == {frozenset((1, 2, 3))}
    assert old.of(effects.Truncate)
