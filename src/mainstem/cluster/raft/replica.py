"""One replica of the metadata log: what it knows, its role, and the moves from one role to another.

Every move goes through `_move`, so that what must be on disk is asked for before anything else of the move:
an epoch, a vote or a leader is never told to anybody before `quorum-state` holds it.
"""

import logging
from collections.abc import Callable, Iterable

from msgspec import Struct

from mainstem.cluster.raft.candidate import Candidate
from mainstem.cluster.raft.control_records import ControlRecord, KRaftVersionFeature, control_batch
from mainstem.cluster.raft.effects import (
    Append,
    DropSnapshot,
    Effect,
    HighWatermark,
    LeaderChanged,
    Reply,
    Send,
    StoreQuorumState,
    Truncate,
)
from mainstem.cluster.raft.election import Election
from mainstem.cluster.raft.follower import Follower
from mainstem.cluster.raft.history import ControlHistory
from mainstem.cluster.raft.in_flight import InFlight
from mainstem.cluster.raft.leader import Leader
from mainstem.cluster.raft.log import RaftLog
from mainstem.cluster.raft.messages import Destination, Request, Response, Token
from mainstem.cluster.raft.prospective import Prospective
from mainstem.cluster.raft.quorum_state import NOBODY, QuorumState
from mainstem.cluster.raft.resigned import Resigned
from mainstem.cluster.raft.settings import RaftSettings
from mainstem.cluster.raft.unattached import Unattached
from mainstem.cluster.raft.voters import Endpoint, ReplicaKey, Voter
from mainstem.cluster.snapshot import SnapshotId

logger = logging.getLogger(__name__)

# What this version of Mainstem can read and write of kraft.version.
SUPPORTED_KRAFT_VERSIONS = KRaftVersionFeature(0, 1)
# The first wait of candidates that lost; it doubles with each lost election up to the setting.
_ELECTION_BACKOFF_MS = 50
_COMPLAINT_INTERVAL_MS = 60_000

Role = Unattached | Prospective | Candidate | Leader | Follower | Resigned


class Identity(Struct, frozen=True, gc=False):
    """Who this node is."""

    key: ReplicaKey
    cluster_id: str
    # How others reach this node's controller listeners; none for a broker alone, which never votes.
    endpoints: tuple[Endpoint, ...]
    # The listener that this node dials at others: the first of controller.listener.names.
    listener: str
    # controller.quorum.bootstrap.servers as (host, port).
    bootstrap_servers: tuple[tuple[str, int], ...] = ()

    @property
    def as_voter(self) -> Voter:
        return Voter(self.key, self.endpoints, SUPPORTED_KRAFT_VERSIONS)


class Replica:
    """What all roles share. Handlers and roles work on it; `Raft` shows it to the driver."""

    def __init__(
        self,
        identity: Identity,
        settings: RaftSettings,
        log: RaftLog,
        history: ControlHistory,
        stored: QuorumState | None,
        random_ms: Callable[[int], int],
    ) -> None:
        self.identity = identity
        self.settings = settings
        self.log = log
        self.history = history
        self.in_flight = InFlight(settings.request_timeout_ms, settings.retry_backoff_ms)
        self.effects: list[Effect] = []
        self.now_ms = 0
        # The log as it is once the effects of this step are performed.
        self.end_offset = log.end_offset
        self.last_epoch = log.last_epoch
        self.durable_offset = log.end_offset
        self.high_watermark: int | None = None
        self.stopping = False
        # A snapshot that the driver puts in the place of the log: nothing is fetched or stood for meanwhile.
        self.installing: SnapshotId | None = None
        self.lost_elections = 0
        self._stored = stored or QuorumState()
        self.epoch = max(self._stored.leader_epoch, self.last_epoch)
        self.voted: ReplicaKey | None = None
        self.leader_id = NOBODY
        self.leader_endpoints: tuple[Endpoint, ...] = ()
        # What the driver knows of the leader.
        self.told = LeaderChanged(NOBODY, -1, None)
        self._complained: dict[str, int] = {}
        self._random_ms = random_ms
        self.role: Role = Unattached(0)

    # ---- who is who

    @property
    def key(self) -> ReplicaKey:
        return self.identity.key

    @property
    def is_voter(self) -> bool:
        return self.history.voters.find(self.key) is not None

    @property
    def may_stand(self) -> bool:
        """Whether this replica may become a candidate: a voter, or one whose removal is not known to be
        committed. Its log may be the longest, so that none of the others could win before it.
        """
        if self.stopping or self.installing is not None:
            return False
        if self.is_voter:
            return True
        history = self.history
        is_committed = self.high_watermark is not None and history.voters_offset < self.high_watermark
        return not is_committed and history.voters_before.find(self.key) is not None

    @property
    def others(self) -> list[Voter]:
        """The voters but this one."""
        return [voter for voter in self.history.voters if not voter.key.matches(self.key)]

    @property
    def leader_endpoint(self) -> Endpoint | None:
        return self.endpoint_of_leader(self.identity.listener)

    def endpoint_of_leader(self, listener: str) -> Endpoint | None:
        """Where the leader is reached on a listener; on the one between voters when it has none such."""
        named = {each.listener: each for each in self.leader_endpoints}
        return named.get(listener) or named.get(self.identity.listener)

    def destination(self, voter: Voter) -> Destination | None:
        endpoint = voter.endpoint(self.identity.listener)
        return None if endpoint is None else Destination(voter.key.node_id, endpoint.host, endpoint.port)

    @property
    def leader(self) -> Destination | None:
        endpoint = self.leader_endpoint
        return None if endpoint is None else Destination(self.leader_id, endpoint.host, endpoint.port)

    def bootstrap_destinations(self) -> list[Destination]:
        """Whom to ask who leads: the bootstrap servers, else the voters. Ids below zero name addresses."""
        mine = {(each.host, each.port) for each in self.identity.endpoints}
        servers = [
            Destination(-2 - number, host, port)
            for number, (host, port) in enumerate(self.identity.bootstrap_servers)
            if (host, port) not in mine
        ]
        if not servers:
            servers = [found for voter in self.others if (found := self.destination(voter)) is not None]
        return servers

    # ---- time and chance

    def random_election_timeout_ms(self) -> int:
        timeout_ms = self.settings.election_timeout_ms
        return timeout_ms + self._random_ms(max(1, timeout_ms))

    def random_number(self, end: int) -> int:
        return self._random_ms(end)

    def election_backoff_ms(self) -> int:
        """How long a candidate that lost waits: the more often it lost, the further they draw apart."""
        limit_ms = min(
            _ELECTION_BACKOFF_MS << min(self.lost_elections, 10), self.settings.election_backoff_max_ms
        )
        return self._random_ms(max(1, limit_ms))

    # ---- saying something

    def ask(self, destination: Destination, make_request: Callable[[], Request]) -> int:
        """Send the request unless something is under way there; when to look again."""
        ready_ms = self.in_flight.ready_at(destination, self.now_ms)
        if ready_ms > self.now_ms:
            return ready_ms
        request = make_request()
        self.in_flight.sent(destination, request, self.now_ms)
        self.effects.append(Send(destination, request))
        return self.now_ms + self.settings.request_timeout_ms

    def reply(self, token: Token, response: Response) -> None:
        self.effects.append(Reply(token, response))

    def append_control(self, records: Iterable[ControlRecord]) -> int:
        """Append control records of this leader as one batch; the offset of the first."""
        records = list(records)
        base_offset = self.end_offset
        data = control_batch(records, base_offset=base_offset, epoch=self.epoch, timestamp_ms=self.now_ms)
        for offset, record in enumerate(records, base_offset):
            self.history.append(offset, record)
        self.appended(data, base_offset + len(records), self.epoch)
        return base_offset

    def appended(self, data: bytes | bytearray | memoryview, end_offset: int, last_epoch: int) -> None:
        """The log gets these batches."""
        assert end_offset > self.end_offset
        assert self.last_epoch <= last_epoch <= self.epoch
        self.end_offset, self.last_epoch = end_offset, last_epoch
        self.effects.append(Append(data, end_offset))

    def wrote(self, end_offset: int) -> None:
        """The log of this leader ends there: the controller may have appended to it."""
        assert isinstance(self.role, Leader)
        assert end_offset >= self.end_offset
        if end_offset > self.end_offset:
            self.end_offset, self.last_epoch = end_offset, self.epoch
            self.role.waiting.answer(self)

    def is_durable_to(self, end_offset: int) -> None:
        self.durable_offset = max(self.durable_offset, min(end_offset, self.end_offset))
        if isinstance(self.role, Leader):
            self.role.commit(self)
        elif isinstance(self.role, Follower) and self.durable_offset == self.end_offset:
            self.role.own_disk_was_busy(self.now_ms)

    def truncate(self, offset: int) -> None:
        """Cut off what the leader does not have."""
        assert self.durable_offset == self.end_offset, (
            "an fsync under way would be taken for one of later records"
        )
        assert (self.high_watermark or 0) <= offset < self.end_offset, "what is committed stays"
        self.end_offset = self.durable_offset = offset
        self.last_epoch = self.log.epoch_before(offset)
        self.history.truncate(offset)
        self.effects.append(Truncate(offset))

    def raise_high_watermark(self, offset: int) -> bool:
        """Whether it moved: it never goes back, nor beyond the log."""
        assert offset <= self.end_offset, "what is committed is in the log"
        if self.high_watermark is not None and offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        self.effects.append(HighWatermark(offset))
        return True

    def complain(self, text: str) -> None:
        """Log an error that comes back with every retry, but not that often."""
        since_ms = self.now_ms - _COMPLAINT_INTERVAL_MS
        if text not in self._complained or self._complained[text] <= since_ms:
            self._complained = {each: at for each, at in self._complained.items() if at > since_ms}
            self._complained[text] = self.now_ms
            logger.error("node %d: %s", self.key.node_id, text)

    # ---- moving from role to role

    def start(self) -> None:
        """Take up what was left off. A leader of before knows not what it lost, so it resigns first."""
        stored = self._stored
        if self.epoch == stored.leader_epoch:
            if stored.voted_id != NOBODY:
                self.voted = ReplicaKey(stored.voted_id, stored.voted_directory_id)
            self.leader_id = stored.leader_id
        self.leader_endpoints = self._endpoints_of(self.leader_id)
        if self.history.voters.is_only(self.key) and self.may_stand:
            self.leader_id = NOBODY
            self.become_candidate()
        elif self.leader_id == self.key.node_id:
            self.role = Resigned(
                [voter.key for voter in self.others], self.now_ms + self.random_election_timeout_ms()
            )
        elif self.leader_id != NOBODY and self.leader_endpoints:
            self.role = Follower(self.now_ms, self.settings)
        else:
            # Nobody is disturbed by a pre-vote, and whoever leads says so in its answer.
            self.role = Unattached(
                self.now_ms + _ELECTION_BACKOFF_MS + self._random_ms(3 * _ELECTION_BACKOFF_MS)
            )

    def become_unattached(self, epoch: int, leader_id: int = NOBODY) -> None:
        """Wait for a leader in an epoch; one whose address is not known yet may have been heard of."""
        assert epoch >= self.epoch, "epochs never go back"
        timeout_ms = self.random_election_timeout_ms()
        deadline_ms = self.now_ms + timeout_ms
        if not isinstance(self.role, Leader | Resigned):
            # A new epoch alone gives nobody more time: who disturbs would keep all others from standing.
            deadline_ms = min(deadline_ms, max(self.role.deadline_ms, self.now_ms))
        self._move(Unattached(deadline_ms), epoch, leader_id, ())

    def give_up_standing(self) -> None:
        """A pre-vote was lost: back to the leader that was known, or to waiting for one."""
        self.lost_elections += 1
        if self.leader_id != NOBODY and self.leader_endpoints:
            role = Follower(self.now_ms, self.settings, is_patient=True)
            self._move(role, self.epoch, self.leader_id, self.leader_endpoints)
        else:
            deadline_ms = self.now_ms + self.random_election_timeout_ms()
            self._move(Unattached(deadline_ms), self.epoch, self.leader_id, ())

    def become_follower(self, epoch: int, leader_id: int, endpoints: Iterable[Endpoint]) -> None:
        assert epoch >= self.epoch, "epochs never go back"
        assert leader_id not in (NOBODY, self.key.node_id)
        assert epoch > self.epoch or self.leader_id in (NOBODY, leader_id), "one leader per epoch"
        logger.info("node %d follows leader %d in epoch %d", self.key.node_id, leader_id, epoch)
        self._move(Follower(self.now_ms, self.settings), epoch, leader_id, tuple(endpoints))

    def become_prospective(self) -> None:
        """Ask whether a majority would vote for this replica; nothing is lost if not."""
        assert self.may_stand
        election = Election(self.history.voters, self.key)
        role = Prospective(election, self.now_ms + self.random_election_timeout_ms())
        self._move(role, self.epoch, self.leader_id, self.leader_endpoints)
        if election.is_won:
            self.become_candidate()

    def become_candidate(self) -> None:
        """Stand for election in the next epoch; the own vote is on disk before anybody hears of it."""
        assert self.may_stand
        election = Election(self.history.voters, self.key)
        role = Candidate(election, self.now_ms + self.random_election_timeout_ms())
        self._move(role, self.epoch + 1, NOBODY, (), voted=self.key)
        self._tell("node %d stands for election in epoch %d", self.key.node_id, self.epoch)
        if election.is_won:
            self.become_leader(election)

    def become_leader(self, election: Election) -> None:
        assert isinstance(self.role, Candidate)
        assert election.is_won
        self._tell("node %d leads epoch %d", self.key.node_id, self.epoch)
        self.lost_elections = 0
        leader = Leader(self)
        # Who leads an epoch grants nobody a vote in it: the own vote need not be kept.
        self.voted = None
        self._move(leader, self.epoch, self.key.node_id, self.identity.endpoints)
        leader.begin(self, election)

    def become_resigned(self) -> None:
        """Lead no more, and tell the voters in the order in which they should try to follow."""
        assert isinstance(self.role, Leader)
        self._tell("node %d resigns from epoch %d", self.key.node_id, self.epoch)
        successors = self.role.successors(self)
        role = Resigned(successors, self.now_ms + self.random_election_timeout_ms())
        self._move(role, self.epoch, self.key.node_id, self.leader_endpoints)

    def _tell(self, message: str, *arguments: object) -> None:
        """Log what others are to know; where nobody else votes it is no event."""
        level = logging.INFO if len(self.history.voters.ids) > 1 else logging.DEBUG
        logger.log(level, message, *arguments)

    def grant_vote(self, candidate: ReplicaKey) -> None:
        """Vote in this epoch, once; whoever voted gives the candidate time."""
        assert self.voted is None or self.voted.matches(candidate), "one vote per epoch"
        if isinstance(self.role, Unattached):
            self.role.deadline_ms = self.now_ms + self.random_election_timeout_ms()
        self.voted = candidate
        self._store()

    def meet_leader(self, epoch: int, leader_id: int, endpoints: tuple[Endpoint, ...]) -> None:
        """Somebody says who leads in which epoch, -1 for nobody yet. Raises nothing and believes no nonsense:
        a second leader in one epoch is ignored.
        """
        endpoints = endpoints or self._endpoints_of(leader_id)
        if epoch > self.epoch:
            if leader_id not in (NOBODY, self.key.node_id) and endpoints:
                self.become_follower(epoch, leader_id, endpoints)
            else:
                self.become_unattached(epoch, NOBODY if leader_id == self.key.node_id else leader_id)
        elif epoch == self.epoch and leader_id not in (NOBODY, self.key.node_id):
            known = self.leader_id != NOBODY
            if known and leader_id != self.leader_id:
                self.complain(
                    f"somebody says that {leader_id} leads epoch {epoch}, whose leader is {self.leader_id}; "
                    "see whether two nodes have the same id"
                )
            elif endpoints and (not known or len(endpoints) > len(self.leader_endpoints)):
                self.become_follower(epoch, leader_id, endpoints)
            elif not known:
                self._move(self.role, epoch, leader_id, ())

    def _move(
        self,
        role: Role,
        epoch: int,
        leader_id: int,
        endpoints: tuple[Endpoint, ...],
        voted: ReplicaKey | None = None,
    ) -> None:
        before, self.role = self.role, role
        if epoch > self.epoch:
            self.voted = voted
        self.epoch, self.leader_id, self.leader_endpoints = epoch, leader_id, endpoints
        self.in_flight.reset()
        self._store()
        if isinstance(before, Follower) and (dropped := before.fetching_snapshot) is not None:
            self.effects.append(DropSnapshot(dropped.snapshot_id))
        if isinstance(before, Leader):
            before.end(self)

    def _store(self) -> None:
        voted = self.voted or ReplicaKey(NOBODY)
        state = QuorumState(self.leader_id, self.epoch, voted.node_id, voted.directory_id)
        if state == self._stored:
            return
        assert state.leader_epoch >= self._stored.leader_epoch
        self._stored = state
        if self.effects and isinstance(self.effects[-1], StoreQuorumState):
            # Nobody has heard of what the last one said: one write is enough.
            self.effects.pop()
        self.effects.append(StoreQuorumState(state))

    def tell_leader(self) -> None:
        """At the end of a step: who leads now, if that has changed."""
        changed = LeaderChanged(self.leader_id, self.epoch, self.leader_endpoint)
        if self.leader_id == self.key.node_id and not isinstance(self.role, Leader):
            changed = LeaderChanged(NOBODY, self.epoch, None)  # resigned
        if changed != self.told:
            self.told = changed
            self.effects.append(changed)

    def _endpoints_of(self, node_id: int) -> tuple[Endpoint, ...]:
        voter = self.history.voters.get(node_id)
        return () if voter is None else voter.endpoints
