"""A consumer of the classic protocol for the simulation: it does what stock clients do, and sleeps, dies and
starts again in between. A process that was asleep goes on with what it believed before.
"""

from copy import copy
from typing import Any

from mainstem.coordinator.group.state import Client
from mainstem.protocol.apis.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from mainstem.protocol.apis.k09_offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from mainstem.protocol.apis.k11_join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from mainstem.protocol.apis.k12_heartbeat import HeartbeatRequest
from mainstem.protocol.apis.k13_leave_group import LeaveGroupRequest, MemberIdentity
from mainstem.protocol.apis.k14_sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from mainstem.protocol.errors import ErrorCode
from tests.sim.classic_world import (
    GROUP,
    PARTITIONS,
    REBALANCE_TIMEOUT_MS,
    SESSION_TIMEOUT_MS,
    TOPIC,
    Event,
    Request,
    World,
    offsets_of,
    read_assignment,
    write_assignment,
)


class SimulatedClient:
    """One process after another under the same name; static when it has an instance id."""

    def __init__(self, world: World, name: str, instance_id: str | None, version: int) -> None:
        self._world = world
        self.name = name
        self.instance_id = instance_id
        self._version = version
        self.zombies: list[SimulatedClient] = []
        self._is_zombie = False
        self._start()

    def _start(self) -> None:
        self.member_id = ""
        self.generation = -1
        self.phase = "out"
        self._admitted_until_ms = 0
        self._admitted_in = -1
        self._leads: list[str] = []
        self.owned: frozenset[int] = frozenset()
        self._positions: dict[int, int] = {}
        self._metadata = b"\x00"
        self._requests: list[Request] = []
        self._wakes_ms = 0
        self.is_dead = False

    # ---- what it does in a turn

    def step(self) -> None:
        world = self._world
        for zombie in self.zombies:
            zombie.step()
        self.zombies = [zombie for zombie in self.zombies if not zombie.is_dead and not world.is_calm]
        if self.is_dead and self._is_zombie:
            return
        if self.is_dead:
            if world.is_calm or world.random.random() < 0.3:
                self._start()
            return
        if world.broker.now_ms < self._wakes_ms and not world.is_calm:
            return
        if world.happens(0.03):
            self._wakes_ms = world.broker.now_ms + world.random.choice((500, 5_000, 15_000, 40_000))
        elif world.happens(0.02):
            self.is_dead = True
        elif self.instance_id is not None and not self._is_zombie and world.happens(0.03):
            self._start_beside()
        else:
            self._receive()
            if not self.is_dead:
                self._act()

    def _start_beside(self) -> None:
        """A new process starts while the old one is still there, and does not know that it is replaced."""
        zombie = copy(self)
        zombie._is_zombie = True
        zombie.zombies = []
        zombie._positions = dict(self._positions)
        self.zombies.append(zombie)
        self._start()

    def _act(self) -> None:
        world = self._world
        if self._is_zombie and self.phase not in ("synced", "in"):
            self.is_dead = True  # it would start again, and there is another in its place already
            return
        if self.phase == "in":
            if world.random.random() < 0.5:
                self._commit()
            if world.happens(0.02):
                self._leave()
            elif world.happens(0.03):
                self._metadata = bytes([world.random.randrange(3)])
                self.phase = "out"
        kinds = {request.kind for request in self._requests}
        if self.phase == "out":
            self._join()
        elif self.phase == "joining" and world.happens(0.03):
            self._join()  # it lost patience, and asks a second time
        elif self.phase == "joined":
            self._sync()
        elif self.phase == "synced" and "fetch" not in kinds:
            self._fetch()
        if self.phase in ("joined", "syncing", "synced", "in") and "heartbeat" not in kinds:
            self._heartbeat()

    # ---- requests

    def _send(self, kind: str, event: Event, **about: Any) -> None:
        owner = self.instance_id or self.member_id
        request = Request(self._world, kind, self.member_id, owner, self.generation)
        for name, value in about.items():
            setattr(request, name, value)
        self._requests.append(self._world.send(request, event))

    def _join(self) -> None:
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol("range", self._metadata)],
        )
        self.phase = "joining"
        is_here = self._admitted_in == self._world.incarnation
        self._send(
            "join",
            lambda m, token, now: m.classic.join_group(
                request, self._version, Client(self.name, "/host"), token, now
            ),
            admitted_until_ms=self._admitted_until_ms if is_here else 0,
        )
        self._admitted_until_ms = 0

    def _sync(self) -> None:
        shares: list[set[int]] = [set() for _ in self._leads]
        for partition in range(PARTITIONS if shares else 0):
            shares[partition % len(shares)].add(partition)
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[
                SyncGroupRequestAssignment(member, write_assignment(share))
                for member, share in zip(self._leads, shares, strict=True)
            ],
        )
        self.phase = "syncing"
        self._send("sync", lambda m, token, now: m.classic.sync_group(request, 5, token, now))

    def _heartbeat(self) -> None:
        request = HeartbeatRequest(GROUP, self.generation, self.member_id, self.instance_id)
        self._send("heartbeat", lambda m, token, now: m.classic.heartbeat(request, token, now))

    def _fetch(self) -> None:
        topic = OffsetFetchRequestTopics(TOPIC, bytes(16), list(range(PARTITIONS)))
        request = OffsetFetchRequestGroup(GROUP, None, -1, [topic])
        self._send("fetch", lambda m, token, now: m.offsets.fetch(request, token, now))

    def _commit(self) -> None:
        for partition in self._positions:
            self._positions[partition] += self._world.random.randrange(4)
        offsets = dict(self._positions)
        if not offsets:
            return
        request = OffsetCommitRequest(
            GROUP,
            self.generation,
            self.member_id,
            self.instance_id,
            topics=[
                OffsetCommitRequestTopic(
                    TOPIC,
                    bytes(16),
                    [OffsetCommitRequestPartition(part, offset) for part, offset in offsets.items()],
                )
            ],
        )
        self._send("commit", lambda m, token, now: m.offsets.commit(request, 9, token, now), offsets=offsets)

    def _leave(self) -> None:
        request = LeaveGroupRequest(GROUP, members=[MemberIdentity(self.member_id, self.instance_id)])
        self._send("leave", lambda m, token, now: m.classic.leave_group(request, 5, token, now))
        self.is_dead = True

    # ---- answers

    def _receive(self) -> None:
        requests, self._requests = self._requests, []
        for request in requests:
            if request.is_lost:
                self._connection_lost(request)
            elif request.answer is None or self._world.happens(0.1):
                self._requests.append(request)
            elif request.member_id == self.member_id and request.generation == self.generation:
                self._receive_one(request)

    def _connection_lost(self, request: Request) -> None:
        if request.kind in ("join", "sync"):
            self.phase = "out"

    def _receive_one(self, request: Request) -> None:
        answer = request.answer
        if isinstance(answer, ErrorCode):
            self._connection_lost(request)
        elif isinstance(answer, JoinGroupResponse):
            self._joined(answer, request)
        elif isinstance(answer, SyncGroupResponse) and not answer.error_code:
            self.owned = read_assignment(bytes(answer.assignment))
            self.phase = "synced"
        elif request.kind == "fetch":
            if self.phase == "synced":
                offsets = offsets_of(answer)
                self._positions = {partition: max(0, offsets[partition]) for partition in self.owned}
                self.phase = "in"
        elif request.kind in ("sync", "heartbeat"):
            self._refused(answer.error_code, request.kind)
        elif request.kind == "commit":
            self._refused(answer.topics[0].partitions[0].error_code, request.kind)

    def _joined(self, answer: JoinGroupResponse, request: Request) -> None:
        if self.phase != "joining":
            return
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            self._admitted_until_ms = request.sent_ms + SESSION_TIMEOUT_MS
            self._admitted_in = request.incarnation
            self.phase = "out"
        elif answer.error_code:
            self._refused(answer.error_code, "join")
        else:
            self.member_id = answer.member_id
            self.generation = answer.generation_id
            self.owned, self._positions = frozenset(), {}
            is_leader = answer.leader == answer.member_id and not answer.skip_assignment
            self._leads = [member.member_id for member in answer.members] if is_leader else []
            self.phase = "joined"

    def _refused(self, error: int, kind: str) -> None:
        if error == ErrorCode.NONE:
            return
        if error == ErrorCode.FENCED_INSTANCE_ID:
            self.is_dead = True
            return
        if self.phase == "joining" and kind != "join":
            return  # what it asked before does not matter any more
        if error == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        if error != ErrorCode.REBALANCE_IN_PROGRESS or kind != "heartbeat":
            self.owned, self._positions = frozenset(), {}
        elif self.phase == "in":
            self._commit()  # the last word before it joins again
        self.phase = "out"
