"""Groups of the classic protocol: members join, one of them assigns the partitions by range, all sync."""

import struct
from collections import Counter
from collections.abc import Callable

from bench.errors import BenchError
from bench.members.coordination import NOT_YET
from bench.members.driver import Channel, Driver
from mainstem.protocol.apis.k11_join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from mainstem.protocol.apis.k12_heartbeat import HeartbeatRequest, HeartbeatResponse
from mainstem.protocol.apis.k13_leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from mainstem.protocol.apis.k14_sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from mainstem.protocol.errors import ErrorCode

_JOIN_VERSION = 9
_SYNC_VERSION = 5
_HEARTBEAT_VERSION = 4
_LEAVE_VERSION = 5
_NO_USER_DATA = struct.pack(">i", -1)
# What a member answers by joining again, as every client does.
_JOIN_AGAIN = (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION)


class ClassicGroup:
    """Stable when every member has got its assignment in one and the same generation."""

    def __init__(
        self, driver: Driver, group_id: str, topic: str, partitions: int, heartbeat_s: float, members: int
    ) -> None:
        self.driver = driver
        self.group_id = group_id
        self.topic = topic
        self.partitions = partitions
        self.heartbeat_s = heartbeat_s
        self.members = [ClassicMember(self, driver.connect()) for _ in range(members)]
        self._synced: Counter[int] = Counter()  # generation -> members that have its assignment

    @property
    def is_stable(self) -> bool:
        return len(self.members) in self._synced.values()

    def join(self) -> None:
        for member in self.members:
            member.join()

    @property
    def is_quiet(self) -> bool:
        return not any(member.is_busy for member in self.members)

    @property
    def is_gone(self) -> bool:
        return not self.members

    def pause(self) -> None:
        """No more heartbeats; what is on its way will be answered."""
        for member in self.members:
            member.pause()

    def leave_one(self) -> None:
        """One member leaves; when that is answered, all the others heartbeat and so learn of it at once."""
        self._synced.clear()
        self.members.pop().leave(self.heartbeat_all)

    def heartbeat_all(self) -> None:
        for member in self.members:
            member.heartbeat()

    def leave_all(self) -> None:
        """All in one request of one member, as an administrator removes members."""
        self.members[0].leave(self.members.clear, self.members)

    def on_synced(self, generation: int) -> None:
        self._synced[generation] += 1

    def check(self) -> None:
        """Every partition has exactly one owner."""
        owned = sorted(partition for member in self.members for partition in member.owned)
        if owned != list(range(self.partitions)):
            raise BenchError(f"{self.group_id} is stable but its members own {len(owned)} partitions")

    def subscription(self) -> bytes:
        return struct.pack(">hi", 0, 1) + _string(self.topic) + _NO_USER_DATA

    def assign(self, member_ids: list[str]) -> list[SyncGroupRequestAssignment]:
        """By range: the members in the order of their ids get runs of partitions, the first ones one more."""
        share, more = divmod(self.partitions, len(member_ids))
        assignments: list[SyncGroupRequestAssignment] = []
        first = 0
        for number, member_id in enumerate(sorted(member_ids)):
            count = share + (number < more)
            assignments.append(SyncGroupRequestAssignment(member_id, self._encode(first, count)))
            first += count
        return assignments

    def _encode(self, first: int, count: int) -> bytes:
        partitions = struct.pack(f">i{count}i", count, *range(first, first + count))
        return struct.pack(">hi", 0, 1) + _string(self.topic) + partitions + _NO_USER_DATA

    def decode(self, assignment: bytes) -> tuple[int, ...]:
        at = 2 + 4 + len(_string(self.topic))
        (count,) = struct.unpack_from(">i", assignment, at)
        return struct.unpack_from(f">{count}i", assignment, at + 4)


class ClassicMember:
    """A member as clients are: it joins until it is let in, syncs, and heartbeats while it has partitions."""

    def __init__(self, group: ClassicGroup, channel: Channel) -> None:
        self._group = group
        self._channel = channel
        self.member_id = ""
        self.generation = -1
        self.owned: tuple[int, ...] = ()
        self._beat = 0  # the number of the heartbeat that is due next; a timer of an older one does nothing

    def join(self) -> None:
        self._beat += 1
        request = JoinGroupRequest(
            group_id=self._group.group_id,
            session_timeout_ms=45_000,
            rebalance_timeout_ms=300_000,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol("range", self._group.subscription())],
        )
        self._channel.ask(request, _JOIN_VERSION, self._on_joined)

    def _on_joined(self, answer: JoinGroupResponse) -> None:
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            self.join()
            return
        if answer.error_code in NOT_YET:
            self._group.driver.after(0.05, self.join)
            return
        self._expect("JoinGroup", answer.error_code)
        self.generation = answer.generation_id
        request = SyncGroupRequest(
            group_id=self._group.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name="range",
        )
        if answer.leader == self.member_id:
            request.assignments = self._group.assign([member.member_id for member in answer.members])
        self._channel.ask(request, _SYNC_VERSION, self._on_synced)

    def _on_synced(self, answer: SyncGroupResponse) -> None:
        if answer.error_code in _JOIN_AGAIN:
            self.join()
            return
        self._expect("SyncGroup", answer.error_code)
        self.owned = self._group.decode(answer.assignment)
        self._group.on_synced(self.generation)
        self._schedule(self._group.heartbeat_s)

    def _schedule(self, seconds: float) -> None:
        self._beat += 1
        beat = self._beat
        self._group.driver.after(seconds, lambda: self.heartbeat() if beat == self._beat else None)

    @property
    def is_busy(self) -> bool:
        return self._channel.is_busy

    def pause(self) -> None:
        self._beat += 1

    def begin_heartbeats(self, delay_s: float) -> None:
        """The next one after so long, the others as ever: so that not all members of a run beat together."""
        self._schedule(delay_s)

    def heartbeat(self) -> None:
        if self._channel.is_busy:
            return
        request = HeartbeatRequest(self._group.group_id, self.generation, self.member_id)
        self._channel.ask(request, _HEARTBEAT_VERSION, self._on_heartbeat)

    def _on_heartbeat(self, answer: HeartbeatResponse) -> None:
        if answer.error_code in _JOIN_AGAIN:
            self.join()
            return
        self._expect("Heartbeat", answer.error_code)
        self._schedule(self._group.heartbeat_s)

    def leave(self, on_left: Callable[[], None], members: "list[ClassicMember] | None" = None) -> None:
        """This one or several go; `on_left` is called when the coordinator has said so."""
        leaving = [self] if members is None else members
        for member in leaving:
            member.pause()
        request = LeaveGroupRequest(
            self._group.group_id, members=[MemberIdentity(member.member_id) for member in leaving]
        )

        def on_answer(answer: LeaveGroupResponse) -> None:
            self._expect("LeaveGroup", answer.error_code or max(one.error_code for one in answer.members))
            on_left()

        self._channel.ask(request, _LEAVE_VERSION, on_answer)

    def _expect(self, what: str, error_code: int) -> None:
        if error_code:
            raise BenchError(f"{what} in {self._group.group_id} was answered with error code {error_code}")


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()
