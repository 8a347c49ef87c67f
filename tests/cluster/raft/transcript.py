"""Transcripts of a quorum: what is done to its nodes, and what every one of them does then, in words.

    nodes 1 2 3
    ----

    until-leader
    ----
      94 ms  1 is prospective
      94 ms  1 asks 2 for its pre-vote in epoch 0, with a log up to 0 of epoch 0
    ...

Fetches without news are left out. To write the outcomes anew, run the test with
MAINSTEM_RECORD_TRANSCRIPTS=1, and read the difference.
"""

from collections.abc import Iterable
from typing import assert_never

from mainstem.cluster.raft import effects, events
from mainstem.cluster.raft.messages import Request, Response
from mainstem.protocol.apis.k01_fetch import FetchRequest, FetchResponse
from mainstem.protocol.apis.k18_api_versions import ApiVersionsRequest
from mainstem.protocol.apis.k52_vote import VoteRequest, VoteResponse
from mainstem.protocol.apis.k53_begin_quorum_epoch import BeginQuorumEpochRequest
from mainstem.protocol.apis.k54_end_quorum_epoch import EndQuorumEpochRequest
from mainstem.protocol.apis.k59_fetch_snapshot import FetchSnapshotRequest
from mainstem.protocol.apis.k80_add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from mainstem.protocol.apis.k80_add_raft_voter import Listener as AddedListener
from mainstem.protocol.apis.k81_remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from mainstem.protocol.errors import ErrorCode
from tests.cluster.raft.nodes import CLUSTER_ID, World, cluster, directory, endpoint
from tests.support.played_transcript import PlayedSession


class QuorumSession(PlayedSession):
    def __init__(self) -> None:
        self._world = World()

    def outcome(self, command: str) -> Iterable[str]:
        name, *words = command.split()
        begin_ms = self._world.now_ms
        getattr(self, f"_{name.replace('-', '_')}")(*words)
        heard, self._world.heard[:] = list(self._world.heard), []
        for at_ms, node, said in heard:
            text = said if isinstance(said, str) else _words(said)
            if text:
                yield f"{at_ms - begin_ms:>4} ms  {node.node_id} {text}"

    def _nodes(self, *ids: str) -> None:
        """`nodes 1 2 3`: format them together and start them; `static` for controller.quorum.voters."""
        numbers = [int(each) for each in ids if each.isdigit()]
        self._world = cluster(*numbers, dynamic="static" not in ids)

    def _until_leader(self) -> None:
        self._world.until(self._world.has_leader)

    def _run(self, wait_ms: str) -> None:
        self._world.run(int(wait_ms))

    def _append(self, value: str) -> None:
        """The controller appends a record; until everybody knows that it is committed."""
        leader = self._world.leader()
        end_offset = leader.append(value.encode())
        self._world.until(lambda: all(node.committed >= end_offset for node in self._world.alive()))

    def _append_at(self, node_id: str, value: str) -> None:
        """The same at a node that leads for all it knows, without waiting."""
        self._world.nodes[int(node_id)].append(value.encode())

    def _kill(self, node_id: str) -> None:
        self._world.kill(int(node_id))

    def _start(self, node_id: str, *more: str) -> None:
        self._world.start(int(node_id), is_controller="broker" not in more)

    def _stop(self, node_id: str) -> None:
        self._world.nodes[int(node_id)].tell(events.Stop())

    def _isolate(self, node_id: str) -> None:
        self._world.isolate(int(node_id))

    def _heal(self) -> None:
        self._world.cuts.clear()

    def _snapshot(self) -> None:
        """Every node takes one of all that is committed, and forgets the log before it."""
        offset = self._world.leader().committed
        for node in self._world.alive():
            log = node.disk.log
            taken = log.take_snapshot(offset, b"snapshot", node.raft.history)
            self._world.snapshots[b"snapshot"] = log.snapshots[taken]

    def _add(self, node_id: str) -> None:
        place = endpoint(int(node_id))
        listeners = [AddedListener(place.listener, place.host, place.port)]
        self._change(AddRaftVoterRequest(CLUSTER_ID, 5000, int(node_id), directory(int(node_id)), listeners))

    def _remove(self, node_id: str) -> None:
        self._change(RemoveRaftVoterRequest(CLUSTER_ID, int(node_id), directory(int(node_id))))

    def _change(self, request: Request) -> None:
        self._world.client_answers.clear()
        self._world.ask(self._world.leader(), request)
        self._world.until(lambda: bool(self._world.client_answers))


def _words(effect: effects.Effect) -> str:
    """What a node does; empty for what is not worth a line."""
    match effect:
        case effects.StoreQuorumState(state):
            vote = f", voted for {state.voted_id}" if state.voted_id >= 0 else ""
            leader = f", led by {state.leader_id}" if state.leader_id >= 0 else ""
            return f"writes down epoch {state.leader_epoch}{leader}{vote}"
        case effects.Send(destination, request):
            return _question(destination.port - 9000, request)
        case effects.Reply(_, response):
            return _answer(response)
        case effects.ReplyRecords(_, _, from_offset, _):
            return f"sends records from {from_offset} on"
        case effects.ReplySnapshotChunk(_, _, snapshot_id, position, _):
            return f"sends the snapshot up to {snapshot_id.offset} from byte {position} on"
        case effects.Append(_, end_offset):
            return f"appends up to {end_offset}"
        case effects.Truncate(offset):
            return f"cuts its log at {offset}"
        case effects.HighWatermark(offset):
            return f"knows all below {offset} to be committed"
        case effects.LeaderChanged(leader_id, epoch, _):
            return (
                f"sees {leader_id} lead epoch {epoch}"
                if leader_id >= 0
                else f"sees nobody lead epoch {epoch}"
            )
        case effects.BecameActive(epoch):
            return f"is active in epoch {epoch}"
        case effects.Resigned(epoch):
            return f"leads epoch {epoch} no more"
        case effects.InstallSnapshot(snapshot_id):
            return f"begins its log anew at {snapshot_id.offset}"
        case effects.Finished():
            return "has said all it had to say"
        case effects.UpgradeAnswered(_, error, _):
            return f"answers the upgrade with {error.name}"
        case effects.WriteSnapshotChunk() | effects.DropSnapshot():
            return ""
        case _:
            assert_never(effect)


def _question(node_id: int, request: Request) -> str:
    match request:
        case VoteRequest():
            asked = request.topics[0].partitions[0]
            kind = "pre-vote" if asked.pre_vote else "vote"
            log = f"a log up to {asked.last_offset} of epoch {asked.last_offset_epoch}"
            return f"asks {node_id} for its {kind} in epoch {asked.replica_epoch}, with {log}"
        case BeginQuorumEpochRequest():
            return f"tells {node_id} that it leads epoch {request.topics[0].partitions[0].leader_epoch}"
        case EndQuorumEpochRequest():
            told = request.topics[0].partitions[0]
            order = [each.candidate_id for each in told.preferred_candidates]
            return (
                f"tells {node_id} that it resigns from epoch {told.leader_epoch}, to be followed by {order}"
            )
        case FetchSnapshotRequest():
            wanted = request.topics[0].partitions[0]
            return f"asks {node_id} for the snapshot up to {wanted.snapshot_id.end_offset}"
        case ApiVersionsRequest():
            return f"asks {node_id} what it supports"
        case FetchRequest():
            return ""
        case _:
            return f"sends {node_id} a {type(request).__name__}"


def _answer(response: Response) -> str:
    match response:
        case VoteResponse():
            if not response.topics:
                return f"refuses to vote: {ErrorCode(response.error_code).name}"
            told = response.topics[0].partitions[0]
            why = f": {ErrorCode(told.error_code).name}" if told.error_code else ""
            return "says yes" if told.vote_granted else f"says no{why}"
        case FetchResponse():
            if not response.responses:
                return ""
            partition = response.responses[0].partitions[0]
            if partition.diverging_epoch is not None:
                parts = partition.diverging_epoch
                return f"says that its log of epoch {parts.epoch} ends at {parts.end_offset}"
            if partition.snapshot_id is not None:
                return f"offers the snapshot up to {partition.snapshot_id.end_offset}"
            return ""
        case AddRaftVoterResponse() | RemoveRaftVoterResponse():
            text = f", {response.error_message}" if response.error_message else ""
            return f"answers {ErrorCode(response.error_code).name}{text}"
        case _:
            return ""
