"""What went wrong in Kafka's history, one test each, named after what it guards."""

from mainstem.cluster.raft import effects, events
from mainstem.cluster.raft.quorum_state import QuorumState
from mainstem.cluster.raft.voters import VoterSet
from mainstem.protocol.apis import k52_vote as k52
from mainstem.protocol.apis import k53_begin_quorum_epoch as k53
from mainstem.protocol.apis import k54_end_quorum_epoch as k54
from mainstem.protocol.apis.k52_vote import VoteResponse
from mainstem.protocol.errors import ErrorCode
from tests.cluster.raft.nodes import CLUSTER_ID, Disk, Node, World, cluster, directory, replicated, voter

TOPIC = "__cluster_metadata"


def _running(*ids: int, seed: int = 1) -> World:
    world = cluster(*ids, seed=seed)
    world.until(world.has_leader)
    replicated(world)
    return world


def _vote(
    node: Node, candidate: int, epoch: int, *, pre_vote: bool, offset: int | None = None
) -> VoteResponse:
    """What a node answers to a candidate whose log is like its own."""
    log = node.disk.log
    partition = k52.PartitionData(
        replica_epoch=epoch,
        replica_id=candidate,
        replica_directory_id=directory(candidate),
        voter_directory_id=directory(node.node_id),
        last_offset_epoch=log.last_epoch,
        last_offset=log.end_offset if offset is None else offset,
        pre_vote=pre_vote,
    )
    request = k52.VoteRequest(CLUSTER_ID, node.node_id, [k52.TopicData(TOPIC, [partition])])
    node.world.client_answers.clear()
    node.world.ask(node, request)
    (answer,) = node.world.client_answers
    assert isinstance(answer, VoteResponse)
    return answer


def _granted(response: VoteResponse) -> bool:
    return response.topics[0].partitions[0].vote_granted


def _error(response: VoteResponse) -> ErrorCode:
    return ErrorCode(response.topics[0].partitions[0].error_code)


def test_a_leader_that_a_majority_does_not_fetch_from_resigns_kafka_15489() -> None:
    world = _running(1, 2, 3)
    leader = world.leader()
    world.isolate(leader.node_id)
    patience_ms = world.settings.check_quorum_timeout_ms
    assert world.until(lambda: not leader.raft.is_leader) <= patience_ms + 2 * world.latency_ms
    assert leader.of(effects.Resigned)


def test_a_leader_with_one_of_two_followers_stays_kafka_15489() -> None:
    world = _running(1, 2, 3)
    leader = world.leader()
    away = next(node for node in world.alive() if node is not leader)
    world.isolate(away.node_id)
    world.run(20_000)
    assert world.leader() is leader


def test_leadership_is_announced_once_all_before_it_is_committed_kafka_17333() -> None:
    world = _running(1, 2, 3)
    world.kill(world.leader().node_id)
    world.until(lambda: any(node.raft.is_leader for node in world.alive()))
    leader = next(node for node in world.alive() if node.raft.is_leader)
    start_offset = leader.disk.log.end_offset
    assert not leader.raft.is_active
    world.until(lambda: leader.raft.is_active)
    kinds = [type(effect) for effect in leader.told]
    active = kinds.index(effects.BecameActive)
    assert kinds[active - 1] == effects.HighWatermark
    assert leader.told[active - 1] == effects.HighWatermark(start_offset)


def test_who_thinks_itself_an_observer_votes_all_the_same_kafka_16526() -> None:
    """It was added while it was away; the two others of the new majority need its vote."""
    world = World()
    disk = Disk()
    disk.format(VoterSet.of([voter(2), voter(3)]))
    world.bootstrap = (2, 3)
    node = world.start(1, disk=disk)
    assert not node.raft.is_voter
    assert _granted(_vote(node, 2, 5, pre_vote=True))
    assert _granted(_vote(node, 2, 5, pre_vote=False))
    assert node.disk.state == QuorumState(-1, 5, 2, directory(2))


def test_pre_votes_are_granted_after_end_quorum_epoch_kafka_20895() -> None:
    world = _running(1, 2, 3)
    leader = world.leader()
    node, other = (each for each in world.alive() if each is not leader)
    epoch = leader.raft.epoch
    assert not _granted(_vote(node, other.node_id, epoch, pre_vote=True)), "its leader is alive"
    partition = k54.PartitionData(0, leader.node_id, epoch, [], [k54.ReplicaInfo(other.node_id)])
    world.ask(node, k54.EndQuorumEpochRequest(CLUSTER_ID, [k54.TopicData(TOPIC, [partition])]))
    assert _granted(_vote(node, other.node_id, epoch, pre_vote=True))


def test_a_vote_is_on_disk_before_it_is_told() -> None:
    world = _running(1, 2, 3)
    node = next(each for each in world.alive() if not each.raft.is_leader)
    epoch = node.raft.epoch + 1
    node.told.clear()
    assert _granted(_vote(node, 3, epoch, pre_vote=False))
    kinds = [type(effect) for effect in node.told]
    assert kinds.index(effects.StoreQuorumState) < kinds.index(effects.Reply)
    assert kinds.count(effects.StoreQuorumState) == 1, "one fsync on the way of an election"
    assert node.disk.state == QuorumState(-1, epoch, 3, directory(3))


def test_nobody_votes_twice_in_an_epoch_not_even_after_a_restart() -> None:
    world = _running(1, 2, 3)
    node = next(each for each in world.alive() if not each.raft.is_leader)
    others = [each for each in (1, 2, 3) if each != node.node_id]
    epoch = node.raft.epoch + 1
    assert _granted(_vote(node, others[0], epoch, pre_vote=False))
    assert not _granted(_vote(node, others[1], epoch, pre_vote=False))
    world.kill(node.node_id)
    again = world.start(node.node_id)
    assert not _granted(_vote(again, others[1], epoch, pre_vote=False))
    assert _granted(_vote(again, others[0], epoch, pre_vote=False))


def test_a_log_that_is_behind_gets_neither_vote() -> None:
    world = _running(1, 2, 3)
    node = next(each for each in world.alive() if not each.raft.is_leader)
    epoch = node.raft.epoch + 1
    behind = node.disk.log.end_offset - 1
    assert not _granted(_vote(node, 3, epoch, pre_vote=False, offset=behind))
    assert not _granted(_vote(node, 3, epoch, pre_vote=True, offset=behind))
    assert _granted(_vote(node, 3, epoch, pre_vote=True))


def test_a_candidate_that_means_another_directory_gets_no_vote() -> None:
    """A voter is an id and a directory: the one with the lost disk is not the one that is asked."""
    world = _running(1, 2, 3)
    node = next(each for each in world.alive() if not each.raft.is_leader)
    partition = k52.PartitionData(0, 99, 3, directory(3), directory(node.node_id, 5), 1, 10_000)
    world.ask(node, k52.VoteRequest(CLUSTER_ID, node.node_id, [k52.TopicData(TOPIC, [partition])]))
    (answer,) = world.client_answers
    assert isinstance(answer, VoteResponse)
    assert (_error(answer), _granted(answer)) == (ErrorCode.INVALID_VOTER_KEY, False)


def test_votes_with_impossible_epochs_or_for_another_cluster_are_refused() -> None:
    world = _running(1, 2, 3)
    node = next(each for each in world.alive() if not each.raft.is_leader)
    epoch = node.raft.epoch
    assert _error(_vote(node, 3, epoch - 1, pre_vote=False)) == ErrorCode.INVALID_REQUEST
    world.kill(world.leader().node_id)
    world.until(world.has_leader)
    replicated(world)
    assert _error(_vote(node, 3, node.raft.epoch, pre_vote=False)) == ErrorCode.INVALID_REQUEST
    world.client_answers.clear()
    world.ask(node, k52.VoteRequest("another", node.node_id, []))
    world.ask(node, k52.VoteRequest(CLUSTER_ID, node.node_id, [k52.TopicData("other")]))
    errors = [answer.error_code for answer in world.client_answers]
    assert errors == [ErrorCode.INCONSISTENT_CLUSTER_ID, ErrorCode.INVALID_REQUEST]


def test_a_refused_connection_makes_a_voter_prospective_at_once() -> None:
    world = _running(1, 2, 3)
    leader = world.leader()
    first = min((each for each in world.alive() if each is not leader), key=lambda node: node.node_id)
    leader_at = first.raft._replica.leader
    assert leader_at is not None
    world.run(50)
    sent = [effect for effect in first.of(effects.Send) if isinstance(effect, effects.Send)][-1]
    assert sent.destination == leader_at
    first.tell(events.Unanswered(leader_at, sent.request, refused=True))
    assert first.raft.role == "prospective"
    # The leader is well: the others say so, and nothing has changed.
    epoch = leader.raft.epoch
    replicated(world)
    world.run(5000)
    assert (world.leader(), leader.raft.epoch) == (leader, epoch)


def test_a_leader_that_refuses_one_voter_is_not_disturbed_again_and_again() -> None:
    world = _running(1, 2, 3)
    leader = world.leader()
    world.run(50)
    first = min((each for each in world.alive() if each is not leader), key=lambda node: node.node_id)
    first.told.clear()
    for _ in range(200):
        sent = [effect for effect in first.of(effects.Send) if isinstance(effect, effects.Send)]
        if sent and sent[-1].destination.node_id == leader.node_id:
            first.tell(events.Unanswered(sent[-1].destination, sent[-1].request, refused=True))
        world.run(10)
    votes = [each for each in first.of(effects.Send) if isinstance(each.request, k52.VoteRequest)]  # type: ignore[union-attr]
    assert 0 < len(votes) < 20
    assert world.leader() is leader


def test_two_leaders_in_one_epoch_are_not_believed() -> None:
    world = _running(1, 2, 3)
    leader = world.leader()
    node, other = (each for each in world.alive() if each is not leader)
    partition = k53.PartitionData(0, directory(node.node_id), other.node_id, leader.raft.epoch)
    world.ask(node, k53.BeginQuorumEpochRequest(CLUSTER_ID, -1, [k53.TopicData(TOPIC, [partition])]))
    assert node.raft.leader_id == leader.node_id


def test_a_quorum_state_ahead_of_the_log_and_a_log_ahead_of_it_are_both_believed() -> None:
    for stored, expected in ((QuorumState(-1, 7), 7), (QuorumState(-1, 0), 3)):
        world = World()
        world.bootstrap = (2, 3)
        disk = Disk()
        disk.format(VoterSet.of(voter(each) for each in (1, 2, 3)))
        disk.log.append_value(b"x", 3)
        disk.log.durable_offset = 1
        disk.state = stored
        assert world.start(1, disk=disk).raft.epoch == expected


def test_a_prospective_that_asks_a_voter_without_pre_vote_stands_at_once() -> None:
    world = World()
    world.bootstrap = (1, 2, 3)
    disk = Disk()
    disk.format(VoterSet.of(voter(each) for each in (1, 2, 3)))
    node = world.start(1, disk=disk)
    world.until(lambda: node.raft.role == "prospective")
    sent = [each for each in node.of(effects.Send) if isinstance(each, effects.Send)][-1]
    node.tell(events.Answered(sent.destination, sent.request, VoteResponse(ErrorCode.UNSUPPORTED_VERSION)))
    assert (node.raft.role, node.raft.epoch) == ("candidate", 1)
