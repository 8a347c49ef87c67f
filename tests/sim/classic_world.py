"""A world of classic group members for the simulation: a broker that fails to write and dies, a network that
forgets; and the rules that must hold all the same.
"""

from collections.abc import Callable
from random import Random
from typing import Any

from mainstem.config import BrokerConfig
from mainstem.coordinator.group.coordinator import GroupCoordinator
from mainstem.coordinator.group.records import decode_key, decode_value
from mainstem.coordinator.group.records.classic import GroupMetadataKey, GroupMetadataValue
from mainstem.protocol.apis.k08_offset_commit import OffsetCommitResponse
from mainstem.protocol.apis.k09_offset_fetch import OffsetFetchResponseGroup
from mainstem.protocol.apis.k11_join_group import JoinGroupResponse
from mainstem.protocol.apis.k14_sync_group import SyncGroupResponse
from mainstem.protocol.apis.k42_delete_groups import DeletableGroupResult
from mainstem.protocol.errors import ErrorCode
from tests.coordinator.harness import FakeTopics, Harness
from tests.sim.seeds import Violation

GROUP = "group"
TOPIC = "topic"
# Only the administrator commits to it.
OTHER_TOPIC = "other"
PARTITIONS = 6
SESSION_TIMEOUT_MS = 10_000
REBALANCE_TIMEOUT_MS = 20_000
_SETTINGS = {"group.initial.rebalance.delay.ms": "1000"}

Event = Callable[[Any, Any, int], None]


def read_assignment(data: bytes) -> frozenset[int]:
    return frozenset(int(word) for word in data.decode().split(",") if word)


def write_assignment(partitions: set[int]) -> bytes:
    return ",".join(map(str, sorted(partitions))).encode()


class Rules:
    """What must hold at any time, judged by what the broker answers and not by what it knows."""

    def __init__(self) -> None:
        # By generation and partition: the group.instance.id or member id of the owner.
        self._owners: dict[tuple[int, int], str] = {}
        self._generation = 0
        # What was acknowledged last.
        self._committed: dict[int, int] = {}
        self._waiting: set[Request] = set()

    def assigned(self, generation: int, owner: str, partitions: frozenset[int]) -> None:
        self._generation = max(self._generation, generation)
        for partition in partitions:
            known = self._owners.setdefault((generation, partition), owner)
            if known != owner:
                raise Violation(f"owned twice: {partition} of generation {generation}: {known}, {owner}")

    def committed(self, generation: int, offsets: dict[int, int]) -> None:
        if generation < self._generation:
            raise Violation(f"fenced: generation {generation} commits after {self._generation} had owners")
        for partition, offset in offsets.items():
            if offset < self._committed.get(partition, 0):
                raise Violation(f"moved back: {partition} from {self._committed[partition]} to {offset}")
            self._committed[partition] = offset

    def fetched(self, offsets: dict[int, int]) -> None:
        for partition, offset in offsets.items():
            if max(offset, 0) != self._committed.get(partition, 0):
                raise Violation(f"lost: {partition} is {offset}, not {self._committed.get(partition)}")

    def admitted(self, request: "Request", response: JoinGroupResponse, now_ms: int) -> None:
        """Somebody who was just given an id is known by it."""
        if response.error_code == ErrorCode.UNKNOWN_MEMBER_ID and now_ms < request.admitted_until_ms:
            raise Violation(f"unknown: {request.member_id} was given this id a moment ago")

    def deleted(self) -> None:
        """The group is gone with its offsets: the next one of this name begins anew."""
        self._owners.clear()
        self._committed.clear()
        self._generation = 0

    def written(self, group: Any, record: GroupMetadataValue | None) -> None:
        """A restart would find what members were told."""
        if group is None or group.state_name() != "Stable":
            return
        members = None if record is None else {member.member_id for member in record.members}
        if record is None or record.generation != group.generation or members != set(group.members):
            raise Violation(f"not written: generation {group.generation} is {record}")

    def asked(self, request: "Request") -> None:
        self._waiting.add(request)

    def answered(self, request: "Request") -> None:
        self._waiting.remove(request)

    def broker_died(self) -> None:
        self._waiting.clear()

    def all_answered(self, now_ms: int) -> None:
        for request in self._waiting:
            if now_ms - request.sent_ms > 2 * REBALANCE_TIMEOUT_MS:
                raise Violation(f"forgotten: a {request.kind} of {request.member_id} is never answered")

    def stable(self, owned: dict[str, frozenset[int]]) -> None:
        """Everybody has been left in peace: everything has an owner, and one only."""
        partitions = sorted(partition for parts in owned.values() for partition in parts)
        if partitions != list(range(PARTITIONS)):
            raise Violation(f"not covered: {owned}")


class Request:
    """One request on its way. The answer counts for the rules when the broker gives it; the client gets it
    later, or never.
    """

    def __init__(self, world: "World", kind: str, member_id: str, owner: str, generation: int) -> None:
        self._world = world
        self.kind = kind
        self.member_id = member_id
        self.owner = owner
        self.generation = generation
        self.offsets: dict[int, int] = {}
        self.admitted_until_ms = 0
        self.sent_ms = world.broker.now_ms
        self.incarnation = world.incarnation
        self.answer: Any = None
        self.is_lost = False

    def reply(self, response: Any) -> None:
        assert self.answer is None, f"a {self.kind} of {self.member_id} was answered twice"
        self.answer = response
        rules = self._world.rules
        rules.answered(self)
        if isinstance(response, SyncGroupResponse) and not response.error_code:
            rules.assigned(self.generation, self.owner, read_assignment(bytes(response.assignment)))
        elif isinstance(response, JoinGroupResponse) and self.incarnation == self._world.incarnation:
            rules.admitted(self, response, self._world.broker.now_ms)
        elif isinstance(response, DeletableGroupResult):
            if not response.error_code:
                self._world.group_deleted()
        elif isinstance(response, OffsetCommitResponse) and self.offsets:
            if not response.topics[0].partitions[0].error_code:
                rules.committed(self.generation, self.offsets)
        elif isinstance(response, OffsetFetchResponseGroup):
            rules.fetched(offsets_of(response))

    def fail(self, error: ErrorCode) -> None:
        assert self.answer is None
        self.answer = error
        self._world.rules.answered(self)


def offsets_of(response: OffsetFetchResponseGroup) -> dict[int, int]:
    return {part.partition_index: part.committed_offset for part in response.topics[0].partitions}


class World:
    """The broker, the time and the rules, with everything that can happen to them."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.rules = Rules()
        self.topics = FakeTopics(**{TOPIC: PARTITIONS, OTHER_TOPIC: 1})
        self._ids = 0
        self.broker = Harness(self._new_machine)
        self.incarnation = 0
        self.is_calm = False
        self._in_flight: list[Request] = []
        # The last record of the group, and how much of the log has been read for it.
        self._record: GroupMetadataValue | None = None
        self._read = 0

    def _new_machine(self) -> GroupCoordinator:
        return GroupCoordinator(BrokerConfig(_SETTINGS), self.topics, self._new_id, lambda _: {})

    def _new_id(self) -> str:
        self._ids += 1
        return str(self._ids)

    def happens(self, probability: float) -> bool:
        """Never, once the world is calm."""
        return not self.is_calm and self.random.random() < probability

    def send(self, request: Request, event: Event) -> Request:
        """Within this turn; its end decides whether it was written."""
        self.rules.asked(request)
        self._in_flight.append(request)
        event(self.broker.machine, request, self.broker.now_ms)
        self.broker.collect()
        return request

    def group_deleted(self) -> None:
        """Whoever was given an id before is not known by it any more."""
        self.incarnation += 1
        self.rules.deleted()

    def _check_record(self) -> None:
        for key, value in self.broker.log[self._read :]:
            decoded = decode_key(key)
            if isinstance(decoded, GroupMetadataKey):
                self._record = None if value is None else decode_value(decoded, value)
        self._read = len(self.broker.log)
        self.rules.written(self.broker.machine.state.groups.get(GROUP), self._record)

    def end_turn(self) -> None:
        # Most can go wrong with a group that is not written down yet, and it seldom is.
        self.broker.appends_fail = self.happens(0.3 if self._record is None else 0.06)
        self.broker.end_turn()
        self.broker.appends_fail = False
        self._check_record()
        for request in self._in_flight:
            request.is_lost = request.is_lost or self.happens(0.03)
        self._in_flight = [request for request in self._in_flight if request.answer is None]
        if self.happens(0.02):
            self.restart()
        else:
            # Timers belong to turns of their own, whose writes may fail as well.
            self.broker.appends_fail = self.happens(0.03)
            self.broker.advance(self.random.choice((10, 100, 500, 1000, 3000)))
            self.broker.appends_fail = False
            self._check_record()
        self.rules.all_answered(self.broker.now_ms)

    def restart(self) -> None:
        """Whoever waits loses the connection."""
        self.incarnation += 1
        for request in self._in_flight:
            request.is_lost = True
        self._in_flight.clear()
        self.rules.broker_died()
        self.broker.restart()
