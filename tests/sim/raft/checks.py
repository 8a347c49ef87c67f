"""The rules of the quorum, checked at every step of every node from the outside: on what stands on the disks
and what is said to others, not on what a core thinks of itself.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mainstem.cluster.raft.control_records import LeaderChangeMessage, VotersRecord
from mainstem.cluster.raft.messages import Request, Response
from mainstem.cluster.raft.quorum_state import NOBODY, QuorumState
from mainstem.cluster.raft.voters import ReplicaKey, VoterSet
from mainstem.protocol.apis.k01_fetch import FetchRequest
from mainstem.protocol.apis.k52_vote import VoteRequest, VoteResponse
from mainstem.protocol.apis.k53_begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from mainstem.protocol.apis.k54_end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from mainstem.protocol.apis.k59_fetch_snapshot import FetchSnapshotRequest
from tests.sim.raft.disk import Batch, Disk, Snapshot
from tests.sim.seeds import Violation

if TYPE_CHECKING:
    from tests.sim.raft.node import Node
    from tests.sim.raft.world import World


class Checker:
    def __init__(self, world: "World") -> None:
        self._world = world
        # Of the whole history:
        self._leaders: dict[int, int] = {}
        self._votes: dict[tuple[int, bytes, int], tuple[int, bytes]] = {}
        self._digests: dict[tuple[int, int], int] = {}
        self._committed: dict[int, int] = {0: 0}
        self.committed_end = 0
        # Of each running node:
        self._high_watermarks: dict[int, int] = {}
        self._led: dict[int, int] = {}
        self._epoch_starts: dict[int, int] = {}
        self._active: dict[int, int] = {}
        self._contacts: dict[int, dict[int, int]] = {}
        # The log and the voters that were compared last.
        self._acting: dict[int, tuple[Disk, int, VoterSet]] = {}

    # ---- a node's life

    def started(self, node: "Node") -> None:
        self._high_watermarks[node.id] = -1

    def died(self, node: "Node") -> None:
        for known in (self._led, self._epoch_starts, self._active, self._contacts, self._high_watermarks):
            known.pop(node.id, None)

    # ---- what is stored and said

    def stores(self, node: "Node", state: QuorumState) -> None:
        if state.voted_id != NOBODY:
            voter = (node.id, node.disk.directory_id, state.leader_epoch)
            first = self._votes.setdefault(voter, _vote(state))
            _demand(first == _vote(state), f"node {node.id} votes twice in epoch {state.leader_epoch}")
        before = node.disk.quorum_state or QuorumState()
        _demand(state.leader_epoch >= before.leader_epoch, f"node {node.id}: its stored epoch goes back")
        if state.leader_id != NOBODY:
            self.leader_changed(node, state.leader_id, state.leader_epoch)

    def says(self, node: "Node", message: Request | Response, request: Request | None) -> None:
        """A message leaves; `request` is what it answers."""
        state = node.disk.quorum_state or QuorumState()
        known = max(state.leader_epoch, node.disk.epoch_before(node.disk.durable_end))
        for epoch in _epochs_of(message):
            _demand(epoch <= known, f"node {node.id} speaks of epoch {epoch}, not on disk: {message}")
        if isinstance(message, VoteRequest):
            self._asks_for_votes(node, message, state)
        elif isinstance(message, VoteResponse) and isinstance(request, VoteRequest):
            self._grants(node, message, request, state)
        elif isinstance(message, FetchRequest) and node.is_voter:
            offset = message.topics[0].partitions[0].fetch_offset
            durable = offset <= node.disk.durable_end
            _demand(durable, f"node {node.id} fetches from {offset}, durable is {node.disk.durable_end}")

    def _asks_for_votes(self, node: "Node", message: VoteRequest, state: QuorumState) -> None:
        asked = message.topics[0].partitions[0]
        if not asked.pre_vote:
            own = state.leader_epoch == asked.replica_epoch and state.voted_id == node.id
            _demand(own, f"node {node.id} is a candidate, and its own vote is not on disk: {state}")

    def _grants(self, node: "Node", answer: VoteResponse, request: VoteRequest, state: QuorumState) -> None:
        asked = request.topics[0].partitions[0]
        if asked.pre_vote or not answer.topics or not answer.topics[0].partitions[0].vote_granted:
            return
        candidate = (asked.replica_id, asked.replica_directory_id)
        stored = state.leader_epoch == asked.replica_epoch and _vote(state) == candidate
        _demand(stored, f"node {node.id} grants a vote to {asked.replica_id} that is not on disk: {state}")

    def hears(self, node: "Node", request: Request) -> None:
        """A request arrives."""
        sender = None
        if isinstance(request, FetchRequest) and request.replica_state is not None:
            sender = request.replica_state.replica_id
        elif isinstance(request, FetchSnapshotRequest):
            sender = request.replica_id
        if sender is not None:
            self._contacts.setdefault(node.id, {})[sender] = self._world.schedule.now_ms

    # ---- logs

    def appended(self, node: "Node", batch: Batch) -> None:
        digest = self._digests.setdefault((batch.end_offset, batch.epoch), batch.digest)
        what = f"offset {batch.end_offset} of epoch {batch.epoch}"
        _demand(digest == batch.digest, f"logs do not match: node {node.id} has another one at {what}")
        epoch_before = node.disk.epoch_before(batch.base_offset)
        _demand(batch.epoch >= epoch_before, f"node {node.id}: the epochs of its log go back at {what}")
        if batch.epoch == self._leads(node):
            for offset, record in batch.control_records:
                if isinstance(record, LeaderChangeMessage):
                    self._epoch_starts[node.id] = offset
                if isinstance(record, VotersRecord):
                    self._changes_voters(node, offset, record)

    def _changes_voters(self, node: "Node", offset: int, record: VotersRecord) -> None:
        before = node.disk.voters_at(offset)
        if before is not None and _replicas(before) == _replicas(record):
            return  # said again at the beginning of the log, or another address
        if before is not None:
            old, new = _replicas(before), _replicas(record)
            _demand(len(old ^ new) <= 1, f"node {node.id} changes two voters at once: {old} to {new}")
        high_watermark = self._high_watermarks[node.id]
        known = self._epoch_starts.get(node.id, offset) < high_watermark
        _demand(known, f"node {node.id} changes the voters before its epoch is committed")
        earlier = [at for at, old in node.disk.quorum_records(offset) if isinstance(old, VotersRecord)]
        _demand(
            not earlier or earlier[-1] < high_watermark,
            f"node {node.id} changes the voters at {offset}, the change at {earlier} is not committed",
        )

    def truncated(self, node: "Node", gone: Iterable[Batch]) -> None:
        for batch in gone:
            own = self._high_watermarks[node.id]
            _demand(batch.end_offset > own, f"node {node.id} truncates below its high watermark {own}")
            lost = self._committed.get(batch.end_offset) == batch.digest
            _demand(not lost, f"node {node.id} truncates what is committed, at {batch.base_offset}")

    def installed(self, node: "Node", snapshot: Snapshot) -> None:
        known = self._committed.get(snapshot.id.offset)
        _demand(known == snapshot.digest, f"node {node.id} installs {snapshot.id}, which is not committed")

    # ---- leaders

    def leader_changed(self, node: "Node", leader_id: int, epoch: int) -> None:
        if leader_id != NOBODY:
            known = self._leaders.setdefault(epoch, leader_id)
            _demand(known == leader_id, f"two leaders in epoch {epoch}: {known} and {leader_id}")

    def committed(self, node: "Node", offset: int) -> None:
        disk, before = node.disk, self._high_watermarks[node.id]
        _demand(offset > before, f"node {node.id}: the high watermark goes back from {before} to {offset}")
        _demand(offset <= disk.end_offset, f"node {node.id}: the high watermark is beyond its log")
        self._high_watermarks[node.id] = offset
        digest = disk.digest_at(offset)
        led = self._leads(node)
        if led is not None:
            own = disk.epoch_before(offset) == led
            _demand(own, f"node {node.id} commits {offset} without a record of its own epoch")
            self._is_on_a_majority(node, offset)
            _demand(digest is not None, f"node {node.id} commits a part of a batch, to {offset}")
            for batch in disk.batches:
                if batch.end_offset <= offset:
                    self._is_committed(node, batch.end_offset, batch.digest)
            self.committed_end = max(self.committed_end, offset)
        elif digest is not None:
            known = self._committed.get(offset)
            _demand(
                known == digest, f"node {node.id} takes {offset} for committed, which no leader committed"
            )

    def _is_committed(self, node: "Node", offset: int, digest: int) -> None:
        known = self._committed.setdefault(offset, digest)
        _demand(known == digest, f"what is committed changes: node {node.id} has another log below {offset}")

    def _is_on_a_majority(self, node: "Node", offset: int) -> None:
        voters = voters_on_disk(node, self._world.static_voters)
        count = sum(
            any(
                disk.durable_end >= offset
                and (disk.start_offset >= offset or disk.digest_at(offset) == node.disk.digest_at(offset))
                for disk in self._world.disks
                if key.matches(ReplicaKey(disk.node_id, disk.directory_id))
            )
            for key in voters
        )
        _demand(2 * count > len(voters), f"node {node.id} commits {offset}, durable at {count} of {voters}")

    def became_active(self, node: "Node", epoch: int) -> None:
        start = self._epoch_starts.get(node.id)
        committed = start is not None and start < self._high_watermarks[node.id]
        _demand(committed, f"node {node.id} is active in epoch {epoch}, whose start is not committed")
        self._active[node.id] = epoch

    def went_on(self, node: "Node") -> None:
        """After a pause it does not know yet how late it is; nor does it with other voters."""
        if node.id in self._contacts:
            self._contacts[node.id] = {NOBODY: self._world.schedule.now_ms}

    def resigned(self, node: "Node", epoch: int) -> None:
        self._active.pop(node.id, None)
        self._led.pop(node.id, None)
        self._epoch_starts.pop(node.id, None)

    def _leads(self, node: "Node") -> int | None:
        """The epoch that a node leads while its effects are performed, up to `Resigned`."""
        raft = node.raft
        assert raft is not None
        return self._led.get(node.id) or (raft.epoch if raft.is_leader else None)

    def stepped(self, node: "Node") -> None:
        """All effects of an event are performed."""
        raft = node.raft
        if raft is None:
            return
        voters = raft.voters
        compared = self._acting.get(node.id)
        if compared != (node.disk, node.disk.changes, voters):
            self._acting[node.id] = (node.disk, node.disk.changes, voters)
            expected = set(voters_on_disk(node, self._world.static_voters))
            acting = {voter.key for voter in voters}
            if compared is not None and voters != compared[2]:
                self.went_on(node)
            _demand(acting == expected, f"node {node.id}: voters {acting} act, its log says {expected}")
        _demand(raft.is_active == (node.id in self._active), f"node {node.id} said otherwise of being active")
        _demand(raft.is_leader or node.id not in self._led, f"node {node.id} resigns without a word")
        if not raft.is_leader:
            return
        if self._led.get(node.id) != raft.epoch:
            self._begins_to_lead(node, raft.epoch)
        self._has_a_majority(node, [voter.key for voter in voters])

    def _begins_to_lead(self, node: "Node", epoch: int) -> None:
        self._led[node.id] = epoch
        self._contacts[node.id] = {}
        self._contacts[node.id][NOBODY] = self._world.schedule.now_ms
        known = self._leaders.setdefault(epoch, node.id)
        _demand(known == node.id, f"two leaders in epoch {epoch}: {known} and {node.id}")
        disk, end = node.disk, self.committed_end
        complete = disk.start_offset >= end or disk.digest_at(end) == self._committed[end]
        _demand(complete, f"node {node.id} leads epoch {epoch} without all that is committed, to {end}")

    def _has_a_majority(self, node: "Node", voters: list[ReplicaKey]) -> None:
        contacts, now_ms = self._contacts[node.id], self._world.schedule.now_ms
        # The time runs anew when a majority has fetched, one after the other.
        limit_ms = 2 * self._world.settings.check_quorum_timeout_ms + 100
        recent = sum(
            key.node_id == node.id or now_ms - contacts.get(key.node_id, contacts[NOBODY]) <= limit_ms
            for key in voters
        )
        _demand(2 * recent > len(voters), f"node {node.id} leads on without a majority: {contacts}")


def voters_on_disk(node: "Node", static: VoterSet) -> list[ReplicaKey]:
    """The voters that a node's log, as far as it is written, says there are."""
    found = node.disk.voters_at(node.disk.end_offset)
    return [voter.key for voter in static] if found is None else sorted(_replicas(found))


def _replicas(record: VotersRecord) -> set[ReplicaKey]:
    return {ReplicaKey(entry.voter_id, entry.voter_directory_id) for entry in record.voters}


def _vote(state: QuorumState) -> tuple[int, bytes]:
    return state.voted_id, state.voted_directory_id


def _epochs_of(message: Any) -> list[int]:
    """The epochs that the sender of a message stands by."""
    match message:
        case VoteRequest():
            return [p.replica_epoch for t in message.topics for p in t.partitions]
        case VoteResponse() | BeginQuorumEpochResponse() | EndQuorumEpochResponse():
            return [p.leader_epoch for t in message.topics for p in t.partitions]
        case BeginQuorumEpochRequest() | EndQuorumEpochRequest():
            return [p.leader_epoch for t in message.topics for p in t.partitions]
        case FetchRequest() | FetchSnapshotRequest():
            return [p.current_leader_epoch for t in message.topics for p in t.partitions]
    return []


def _demand(holds: bool, rule: str) -> None:
    if not holds:
        raise Violation(rule)
