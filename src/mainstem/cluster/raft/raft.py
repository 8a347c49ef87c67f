"""KRaft as one state machine: an event and the time in, effects out.

No clock, randomness, file, socket or await inside: those are handed in or are the driver's. The rules of the
roles stand in a file each; this one holds what a driver sees and hands every event to whom it concerns.
"""

from collections.abc import Callable, Sequence

from mainstem.cluster.raft import reconfiguration, serving, votes
from mainstem.cluster.raft.describing import on_describe_quorum
from mainstem.cluster.raft.effects import Effect
from mainstem.cluster.raft.events import (
    Answered,
    Asked,
    Durable,
    Event,
    Resign,
    SnapshotInstalled,
    SnapshotTaken,
    SnapshotUnusable,
    Started,
    Stop,
    TimePassed,
    Unanswered,
    UpgradeKRaftVersion,
    Written,
)
from mainstem.cluster.raft.fetched import (
    on_fetch_answer,
    on_fetch_snapshot_answer,
    on_snapshot_installed,
    on_snapshot_unusable,
)
from mainstem.cluster.raft.follower import Follower
from mainstem.cluster.raft.history import ControlHistory
from mainstem.cluster.raft.leader import Leader
from mainstem.cluster.raft.log import RaftLog
from mainstem.cluster.raft.messages import Destination, Request, Response
from mainstem.cluster.raft.quorum_state import QuorumState
from mainstem.cluster.raft.replica import Identity, Replica
from mainstem.cluster.raft.resigned import Resigned, finish
from mainstem.cluster.raft.settings import RaftSettings
from mainstem.cluster.raft.voters import Endpoint, VoterSet
from mainstem.protocol.apis.k01_fetch import FetchRequest, FetchResponse
from mainstem.protocol.apis.k18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from mainstem.protocol.apis.k52_vote import VoteRequest, VoteResponse
from mainstem.protocol.apis.k53_begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from mainstem.protocol.apis.k54_end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from mainstem.protocol.apis.k55_describe_quorum import DescribeQuorumRequest
from mainstem.protocol.apis.k59_fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from mainstem.protocol.apis.k80_add_raft_voter import AddRaftVoterRequest
from mainstem.protocol.apis.k81_remove_raft_voter import RemoveRaftVoterRequest
from mainstem.protocol.apis.k82_update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse
from mainstem.protocol.errors import ErrorCode

__all__ = ["Identity", "Raft"]

_ON_ASKED: dict[type, Callable[[Replica, Asked], None]] = {
    VoteRequest: votes.on_vote,
    BeginQuorumEpochRequest: votes.on_begin_quorum_epoch,
    EndQuorumEpochRequest: votes.on_end_quorum_epoch,
    FetchRequest: serving.on_fetch,
    FetchSnapshotRequest: serving.on_fetch_snapshot,
    AddRaftVoterRequest: reconfiguration.on_add_voter,
    RemoveRaftVoterRequest: reconfiguration.on_remove_voter,
    UpdateRaftVoterRequest: reconfiguration.on_update_voter,
    DescribeQuorumRequest: on_describe_quorum,
}


class Raft:
    """One replica of the metadata log: a voter or an observer.

    `log` is open, replayed and durable to its end; `history` is what it and its newest snapshot say of
    voters; `stored` is what `quorum-state` holds (None when there is no such file). `random_ms(n)` gives a
    random number from 0 to n - 1.
    """

    def __init__(
        self,
        identity: Identity,
        settings: RaftSettings,
        log: RaftLog,
        history: ControlHistory,
        stored: QuorumState | None,
        random_ms: Callable[[int], int],
    ) -> None:
        self._replica = Replica(identity, settings, log, history, stored, random_ms)
        self._deadline_ms: int | None = None
        self._finished = False

    def step(self, event: Event, now_ms: int) -> Sequence[Effect]:
        """Take one event; perform what comes back, in order, before the next. `now_ms` never goes back: the
        steady clock, whose zero is that of the wall clock at the start (it also stands in records and in
        DescribeQuorum).
        """
        replica = self._replica
        assert not replica.effects, "a step is over when it is over"
        replica.now_ms = max(now_ms, replica.now_ms)
        if isinstance(replica.role, Leader):
            # The controller's records may be in the log before the driver comes to say so.
            replica.wrote(replica.log.end_offset)
        assert replica.installing or replica.log.end_offset == replica.end_offset, (
            "all effects were performed"
        )
        self._take(event)
        self._poll()
        effects, replica.effects = replica.effects, []
        return effects

    def _take(self, event: Event) -> None:
        replica = self._replica
        match event:
            case Started():
                replica.start()
            case TimePassed():
                pass
            case Asked():
                _ON_ASKED[type(event.request)](replica, event)
            case Answered(destination, request, response):
                self._answered(destination, request, response)
            case Unanswered(destination, request, refused):
                self._unanswered(destination, request, refused)
            case Written(end_offset):
                assert end_offset <= replica.end_offset, "only a leader appends"
            case Durable(end_offset):
                replica.is_durable_to(end_offset)
            case SnapshotTaken():
                replica.history.trim(replica.log.start_offset)
            case SnapshotInstalled():
                on_snapshot_installed(replica, event)
            case SnapshotUnusable():
                on_snapshot_unusable(replica, event)
            case Resign(epoch):
                if isinstance(replica.role, Leader) and epoch == replica.epoch:
                    replica.role.resign()
            case Stop():
                replica.stopping = True
            case UpgradeKRaftVersion():
                reconfiguration.on_upgrade(replica, event)

    def _poll(self) -> None:
        """Let the role do what is due, until it stays the same."""
        replica = self._replica
        for destination, request in replica.in_flight.overdue(replica.now_ms):
            self._unanswered(destination, request, refused=False)
        while True:
            role = replica.role
            deadline_ms = role.poll(replica)
            if replica.role is role:
                break
        if replica.stopping and not self._finished:
            self._finished = finish(replica)
        replica.tell_leader()
        deadlines = [at for at in (deadline_ms, replica.in_flight.deadline_ms()) if at is not None]
        self._deadline_ms = min(deadlines, default=None)

    def _unanswered(self, destination: Destination, request: Request, refused: bool) -> None:
        replica = self._replica
        if not replica.in_flight.over(destination, request):
            return
        replica.in_flight.back_off(destination, replica.now_ms)
        if isinstance(request, ApiVersionsRequest):
            reconfiguration.on_api_versions_answer(replica, destination, None)
        role = replica.role
        if refused and isinstance(role, Follower) and destination == replica.leader:
            role.leader_refused(replica)
        if refused and isinstance(role, Resigned):
            role.told(destination.node_id)  # nobody is there to be told

    def _answered(self, destination: Destination, request: Request, response: Response) -> None:
        replica = self._replica
        if not replica.in_flight.over(destination, request):
            return
        if not self._use(destination, request, response):
            replica.in_flight.back_off(destination, replica.now_ms)

    def _use(self, destination: Destination, request: Request, response: Response) -> bool:
        replica = self._replica
        match response:
            case FetchResponse():
                return on_fetch_answer(replica, response)
            case FetchSnapshotResponse():
                return on_fetch_snapshot_answer(replica, response)
            case VoteResponse():
                assert isinstance(request, VoteRequest)
                return votes.on_vote_answer(replica, destination, request, response)
            case BeginQuorumEpochResponse():
                return votes.on_begin_quorum_epoch_answer(replica, response)
            case EndQuorumEpochResponse():
                return votes.on_end_quorum_epoch_answer(replica, destination, response)
            case ApiVersionsResponse():
                reconfiguration.on_api_versions_answer(replica, destination, response)
            case UpdateRaftVoterResponse():
                if isinstance(replica.role, Follower) and response.error_code == ErrorCode.NONE:
                    replica.role.updated_voter = True
            case _:
                pass  # whether joining worked is seen in the voters
        return True

    @property
    def deadline_ms(self) -> int | None:
        """When `TimePassed` is due; None when nothing is awaited. Look again after every step."""
        return self._deadline_ms

    @property
    def role(self) -> str:
        """unattached, prospective, candidate, leader, follower or resigned, as metrics and logs show it. An
        observer is unattached or a follower.
        """
        return self._replica.role.NAME

    @property
    def is_voter(self) -> bool:
        return self._replica.is_voter

    @property
    def is_leader(self) -> bool:
        """Whether this node leads, active or not yet: only then may the controller's records be appended."""
        return isinstance(self._replica.role, Leader)

    @property
    def is_active(self) -> bool:
        """From `BecameActive` to `Resigned`."""
        role = self._replica.role
        return isinstance(role, Leader) and role.is_active

    @property
    def epoch(self) -> int:
        return self._replica.epoch

    @property
    def leader_id(self) -> int:
        """-1 while it is not known."""
        return self._replica.told.leader_id

    @property
    def leader_endpoint(self) -> Endpoint | None:
        """Where the leader is reached on the controller listener, as far as it is known."""
        return self._replica.told.endpoint

    @property
    def high_watermark(self) -> int | None:
        """None until it is known for the first time."""
        return self._replica.high_watermark

    @property
    def voters(self) -> VoterSet:
        """Who votes now, committed or not."""
        return self._replica.history.voters

    @property
    def history(self) -> ControlHistory:
        """For the snapshots that the driver writes: `voters_at` and `kraft_version_at`."""
        return self._replica.history
