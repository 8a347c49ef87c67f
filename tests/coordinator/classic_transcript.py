"""Transcripts of classic groups: what members ask and when, and the answers and records that come out.

A file holds paragraphs. Each is a command, a line of dashes, and what came out:

    join a
    ----
    a <- MEMBER_ID_REQUIRED member=a-1
    + orders generation=0 Empty

A client remembers the member id and the generation that it was told, and sends them with its next request;
`id=` and `generation=` say something else. `a waits` means that the request is not answered yet. Lines with
`+` are records, `orders: Empty -> Stable` is a group's way through its states. To write the outcomes anew,
run the test with MAINSTEM_RECORD_TRANSCRIPTS=1, and read the difference.
"""

import struct
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Any

from mainstem.config import BrokerConfig
from mainstem.coordinator.group.classic import ClassicGroup, ClassicGroups
from mainstem.coordinator.group.offsets import Offsets
from mainstem.coordinator.group.records import decode_key, decode_value
from mainstem.coordinator.group.records.classic import GroupMetadataKey, GroupMetadataValue
from mainstem.coordinator.group.state import Client, GroupState
from mainstem.protocol.apis.k11_join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from mainstem.protocol.apis.k12_heartbeat import HeartbeatRequest
from mainstem.protocol.apis.k13_leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from mainstem.protocol.apis.k14_sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from mainstem.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.harness import FakeTopics, Harness, Waiting
from tests.coordinator.machine_session import GROUP, MachineSession

_ERROR_NAMES = {code.value: code.name for code in ErrorCode}


class ClassicMachine:
    """The classic part of the group coordinator, with offsets."""

    def __init__(self, config: BrokerConfig, new_id: Callable[[], str]) -> None:
        self.state = GroupState(config, FakeTopics(), new_id, lambda _: {})
        self.effects, self.timers = self.state.effects, self.state.timers
        self.classic = ClassicGroups(self.state)
        self.offsets = Offsets(self.state)
        self.state.new_simple_group = self.classic.create_simple
        self.state.forget_group = self.classic.rebalances.forget

    def replay(self, key: bytes, value: bytes | None) -> None:
        decoded = decode_key(key)
        part: Any = self.classic if isinstance(decoded, GroupMetadataKey) else self.offsets
        part.replay(decoded, None if value is None else decode_value(decoded, value))

    def loaded(self, now_ms: int) -> None:
        self.classic.loaded(now_ms)
        self.offsets.loaded(now_ms)

    def unload(self, error: ErrorCode) -> None:
        self.classic.unload(error)

    def topics_changed(self, now_ms: int) -> None:
        self.offsets.topics_changed(now_ms)


def subscription(*topics: str) -> bytes:
    """What a consumer says about itself: its topics, no user data."""
    names = b"".join(struct.pack(">h", len(topic)) + topic.encode() for topic in topics)
    return struct.pack(">hi", 0, len(topics)) + names + struct.pack(">i", -1)


class _Told:
    """What a client knows about its membership."""

    def __init__(self) -> None:
        self.member_id = ""
        self.generation = -1


class ClassicSession(MachineSession):
    def __init__(self) -> None:
        self._settings = {"group.initial.rebalance.delay.ms": "3000"}
        self._ids = count(1)
        self._clients: dict[str, _Told] = {}
        self._waiting: list[Waiting] = []
        self._start()

    def _start(self) -> None:
        self._harness = Harness(
            lambda: ClassicMachine(BrokerConfig(self._settings), lambda: str(next(self._ids)))
        )
        self._seen = 0

    # ---- outcomes

    def _state(self) -> str:
        group = self._harness.machine.state.groups.get(GROUP)
        return "none" if group is None else group.state_name()

    def _outcome(self) -> list[str]:
        lines: list[str] = []
        for waiting in self._waiting:
            if waiting.answer is not None:
                lines.append(f"{waiting.name} <- {self._answer(waiting)}")
            elif waiting is self._waiting[-1] and not hasattr(waiting, "noted"):
                waiting.noted = True  # type: ignore[attr-defined]
                lines.append(f"{waiting.name} waits")
        self._waiting = [waiting for waiting in self._waiting if waiting.answer is None]
        for key, value in self._harness.log[self._seen :]:
            lines.append(_record(key, value))
        self._seen = len(self._harness.log)
        return lines

    def _answer(self, waiting: Waiting) -> str:
        answer = waiting.answer
        if isinstance(answer, ErrorCode):
            return f"{answer.name} (the request failed)"
        if isinstance(answer, JoinGroupResponse):
            told = self._clients[waiting.name.split()[0]]
            if answer.member_id:
                told.member_id = answer.member_id
            if not answer.error_code:
                told.generation = answer.generation_id
        return " ".join(_response(answer))

    # ---- requests

    def _send(self, name: str, event: Callable[[Any, Waiting, int], None]) -> None:
        self._waiting.append(self._harness.send(event, name))

    def _join(self, name: str, **options: str) -> None:
        told = self._clients.setdefault(name, _Told())
        protocols = options.get("protocols", "range:topic")
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=int(options.get("session", 10_000)),
            rebalance_timeout_ms=int(options.get("rebalance", 60_000)),
            member_id=_or_empty(options.get("id", told.member_id)),
            group_instance_id=options.get("instance"),
            protocol_type=_or_empty(options.get("type", "consumer")),
            protocols=[
                JoinGroupRequestProtocol(protocol, subscription(*topics.split("+")))
                for protocol, _, topics in (
                    word.partition(":") for word in protocols.split(",") if word != "-"
                )
            ],
        )
        version = int(options.get("version", 9))
        client = Client(name, "/host")
        self._send(
            name, lambda m, token, now_ms: m.classic.join_group(request, version, client, token, now_ms)
        )

    def _sync(self, name: str, **options: str) -> None:
        told = self._clients[name]
        assigned = [word.split(":") for word in options.get("assign", "").split(",") if word]
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=int(options.get("generation", told.generation)),
            member_id=_or_empty(options.get("id", told.member_id)),
            group_instance_id=options.get("instance"),
            protocol_type=options.get("type", "consumer"),
            protocol_name=options.get("protocol"),
            assignments=[SyncGroupRequestAssignment(member, what.encode()) for member, what in assigned],
        )
        self._send(f"{name} sync", lambda m, token, now_ms: m.classic.sync_group(request, 5, token, now_ms))

    def _heartbeat(self, name: str, **options: str) -> None:
        told = self._clients.setdefault(name, _Told())
        request = HeartbeatRequest(
            group_id=GROUP,
            generation_id=int(options.get("generation", told.generation)),
            member_id=_or_empty(options.get("id", told.member_id)),
            group_instance_id=options.get("instance"),
        )
        self._send(name, _heartbeat(request))

    def _leave(self, *members: str, version: str = "5") -> None:
        """Members as their ids; `@x` is a group.instance.id alone, `id@x` has both."""
        identities = [
            MemberIdentity(member_id, instance or None)
            for member_id, _, instance in (member.partition("@") for member in members)
        ]
        request = LeaveGroupRequest(GROUP, identities[0].member_id, identities)
        self._send(
            "leave", lambda m, token, now_ms: m.classic.leave_group(request, int(version), token, now_ms)
        )

    # ---- everything else

    def _config(self, **settings: str) -> None:
        """From the next restart on."""
        self._settings.update(settings)

    def _new_coordinator(self) -> None:
        self._start()

    def _restart(self) -> None:
        self._harness.restart()

    def _unload(self) -> None:
        self._harness.machine.unload(ErrorCode.NOT_COORDINATOR)
        self._harness.settle()

    def _appends(self, what: str) -> None:
        self._harness.appends_fail = what == "fail"

    def _advance(self, ms: str) -> None:
        self._harness.advance(int(ms))

    def _advance_with_heartbeats(self, ms: str, *names: str) -> None:
        """Time passes, and these members keep their sessions alive."""
        for _ in range(int(ms) // 1000):
            self._harness.advance(1000)
            for name in names:
                told = self._clients[name]
                request = HeartbeatRequest(GROUP, told.generation, told.member_id)
                self._harness.send(_heartbeat(request))

    def _delete(self) -> None:
        group = self._harness.machine.state.groups[GROUP]
        try:
            group.check_delete()
        except KafkaError as error:
            raise AssertionError("only empty groups are deleted here") from error
        group.write_tombstones()
        self._harness.settle()

    def _show(self) -> Iterable[str]:
        group: ClassicGroup | None = self._harness.machine.state.groups.get(GROUP)
        return [f"{GROUP} is not there"] if group is None else _show_group(group)

    def _describe(self, version: str = "6") -> list[str]:
        described = self._harness.machine.classic.describe(GROUP, int(version))
        head = f"{_ERROR_NAMES[described.error_code]} {described.group_state}"
        return [
            f"{head} type={described.protocol_type!r} protocol={described.protocol_data!r}",
            *(
                f"  {member.member_id} {member.client_id} {member.client_host}"
                f" metadata={len(member.member_metadata)} bytes"
                f" assignment={member.member_assignment.decode()!r}"
                for member in described.members
            ),
        ]

    def _may_commit(self, **options: str) -> list[str]:
        group = self._harness.machine.state.groups[GROUP]
        member_id, generation = _or_empty(options.get("id", "")), int(options.get("generation", -1))
        transactional = options.get("transactional") == "yes"
        try:
            group.check_offset_commit(member_id, options.get("instance"), generation, 9, transactional)
        except KafkaError as error:
            return [error.code.name]
        return ["yes"]


def _heartbeat(request: HeartbeatRequest) -> Callable[[Any, Waiting, int], None]:
    return lambda m, token, now_ms: m.classic.heartbeat(request, token, now_ms)


def _or_empty(text: str) -> str:
    return "" if text == "-" else text


def _response(answer: Any) -> Iterator[str]:
    yield _ERROR_NAMES[answer.error_code]
    if isinstance(answer, JoinGroupResponse):
        if not answer.error_code:
            yield f"generation={answer.generation_id} protocol={answer.protocol_name} leader={answer.leader}"
        yield f"member={answer.member_id or '-'}"
        if answer.members:
            yield f"members={','.join(member.member_id for member in answer.members)}"
        if answer.skip_assignment:
            yield "skip assignment"
    elif isinstance(answer, SyncGroupResponse):
        if not answer.error_code:
            yield f"assignment={answer.assignment.decode()!r}"
    elif isinstance(answer, LeaveGroupResponse):
        for member in answer.members:
            instance = "" if member.group_instance_id is None else f"@{member.group_instance_id}"
            yield f"{member.member_id}{instance}:{_ERROR_NAMES[member.error_code]}"


def _record(key: bytes, value: bytes | None) -> str:
    decoded = decode_key(key)
    assert isinstance(decoded, GroupMetadataKey)
    if value is None:
        return f"- {decoded.group}"
    stored: GroupMetadataValue = decode_value(decoded, value)
    text = f"+ {decoded.group} generation={stored.generation}"
    if stored.protocol_type:
        text += f" type={stored.protocol_type}"
    if not stored.members:
        return f"{text} no members"
    members = ", ".join(f"{member.member_id} {member.assignment.decode()!r}" for member in stored.members)
    return f"{text} protocol={stored.protocol} leader={stored.leader} members: {members}"


def _show_group(group: ClassicGroup) -> Iterator[str]:
    yield f"{group.state_name()} generation={group.generation} leader={group.leader_id}"
    for member in group.members.values():
        instance = "" if member.group_instance_id is None else f" instance={member.group_instance_id}"
        waits = " waits with a join" if member.join_token is not None else ""
        waits += " waits with a sync" if member.sync_token is not None else ""
        yield f"  {member.member_id}{instance} assignment={member.assignment.decode()!r}{waits}"
    if group.pending_joins:
        yield f"  pending: {', '.join(group.pending_joins)}"
    yield (
        f"  rebalances: {group.rebalances.started} started, {group.rebalances.completed} completed,"
        f" last {group.rebalances.last_ms} ms, total {group.rebalances.total_ms} ms"
    )
