"""Transcripts of consumer groups (KIP-848): heartbeats as they come, and the answers and records, as text.

A file holds paragraphs. Each is a command, a line of dashes, and what came out:

    join a topics=t
    ----
    a <- NONE epoch=2 t:0,1
    + member a topics=t
    + group epoch=2

A client remembers the epoch and the assignment that it was told. `beat a` says nothing new, `owns=t:0` says
what it owns and `owns=told` that it owns what it was told. Lines with `+` are records, with `-` deletions.
`classic a join` and the like are requests of the classic protocol. To write the outcomes anew, run the test
with MAINSTEM_RECORD_TRANSCRIPTS=1, and read the difference.
"""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any
from uuid import UUID

from mainstem.config import BrokerConfig
from mainstem.coordinator.group.coordinator import GroupCoordinator
from mainstem.coordinator.group.embedded_protocol import (
    EmbeddedAssignment,
    EmbeddedPartitions,
    Subscription,
    read_assignment,
)
from mainstem.coordinator.group.records import classic as classic_records
from mainstem.coordinator.group.records import consumer as records
from mainstem.coordinator.group.records import decode_key, decode_value
from mainstem.coordinator.group.state import Client
from mainstem.protocol import codec
from mainstem.protocol.apis.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from mainstem.protocol.apis.k12_heartbeat import HeartbeatRequest
from mainstem.protocol.apis.k13_leave_group import LeaveGroupRequest, MemberIdentity
from mainstem.protocol.apis.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from mainstem.protocol.apis.k68_consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from mainstem.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.harness import FakeTopics, Harness, Waiting
from tests.coordinator.machine_session import GROUP, MachineSession

_ERROR_NAMES = {code.value: code.name for code in ErrorCode}
_STATES = ("stable", "unrevoked", "unreleased")


_HEARTBEAT_INTERVAL_MS = 5000  # the default


class _Told:
    """What a client knows about its membership."""

    def __init__(self, member_id: str) -> None:
        self.member_id = member_id
        self.epoch = 0
        self.assigned: list[TopicPartitions] = []
        self.instance_id: str | None = None


class ConsumerSession(MachineSession):
    def __init__(self) -> None:
        self._settings: dict[str, str] = {}
        self._group_settings: dict[str, str] = {}
        self._topics = FakeTopics()
        self._clients: dict[str, _Told] = {}
        self._ids = count(1)
        self._waiting: list[Waiting] = []
        self._start()

    def _start(self) -> None:
        config = BrokerConfig({"group.initial.rebalance.delay.ms": "0", **self._settings})
        self._harness = Harness(
            lambda: GroupCoordinator(
                config, self._topics, lambda: str(UUID(int=next(self._ids))), lambda _: self._group_settings
            )
        )
        self._seen = 0

    # ---- outcomes

    def _state(self) -> str:
        group = self._harness.machine.state.groups.get(GROUP)
        if group is None:
            return "none"
        return group.state_name() if group.kind == "consumer" else f"classic {group.state_name()}"

    def _outcome(self) -> list[str]:
        lines = []
        for waiting in self._waiting:
            if waiting.answer is not None:
                lines.append(f"{waiting.name} <- {self._answer(waiting)}")
        self._waiting = [waiting for waiting in self._waiting if waiting.answer is None]
        lines += [f"{waiting.name} waits" for waiting in self._waiting]
        lines += [self._record(key, value) for key, value in self._harness.log[self._seen :]]
        self._seen = len(self._harness.log)
        return lines

    def _answer(self, waiting: Waiting) -> str:
        answer = waiting.answer
        if isinstance(answer, ErrorCode):
            return f"{answer.name} (the request failed)"
        code = _ERROR_NAMES[answer.error_code]
        told = self._clients.get(waiting.name.split()[0])
        if told is None:
            return code
        if isinstance(answer, ConsumerGroupHeartbeatResponse):
            return code if answer.error_code else self._told(told, answer)
        if hasattr(answer, "generation_id"):
            told.member_id = answer.member_id or told.member_id
            if answer.error_code:
                return f"{code} {answer.member_id}".strip()
            told.epoch = answer.generation_id
            return f"{code} generation={answer.generation_id} leader={answer.leader or '-'}"
        if hasattr(answer, "assignment") and not answer.error_code:
            topics = read_assignment(answer.assignment).assigned_partitions if answer.assignment else []
            return " ".join([code, *(f"{topic.topic}:{_numbers(topic.partitions)}" for topic in topics)])
        return code

    def _told(self, told: _Told, answer: ConsumerGroupHeartbeatResponse) -> str:
        assert answer.member_id is not None
        told.member_id = answer.member_id
        if answer.member_epoch > 0:
            told.epoch = answer.member_epoch
        text = f"NONE epoch={answer.member_epoch}"
        if answer.assignment is not None:
            told.assigned = answer.assignment.topic_partitions
            text += f" {self._partitions(told.assigned)}"
        if 0 < answer.heartbeat_interval_ms < _HEARTBEAT_INTERVAL_MS:
            text += f", again in {answer.heartbeat_interval_ms} ms"
        return text

    def _partitions(self, topics: list[Any]) -> str:
        texts = sorted(f"{self._name(topic.topic_id)}:{_numbers(topic.partitions)}" for topic in topics)
        return " ".join(texts) or "(no partitions)"

    def _name(self, topic_id: bytes) -> str:
        info = self._topics.by_id(topic_id)
        return "gone" if info is None else info.name

    # ---- heartbeats

    def _join(self, name: str, **options: str) -> None:
        told = self._clients.setdefault(name, _Told(_or_empty(options.get("id", name))))
        told.epoch, told.instance_id = 0, options.get("instance")
        self._beat(name, **{"owns": "-", "rebalance": "60000", **options})

    def _beat(self, name: str, **options: str) -> None:
        told = self._clients.setdefault(name, _Told(name))
        topics = options.get("topics")
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=told.member_id,
            member_epoch=int(options.get("epoch", told.epoch)),
            instance_id=options.get("instance", told.instance_id),
            rack_id=options.get("rack"),
            rebalance_timeout_ms=int(options.get("rebalance", -1)),
            subscribed_topic_names=None if topics is None else [t for t in topics.split(",") if t != "-"],
            subscribed_topic_regex=_or_empty(options["regex"]) if "regex" in options else None,
            server_assignor=options.get("assignor"),
            topic_partitions=self._owned(told, options.get("owns")),
        )
        version, client = int(options.get("version", 1)), Client(name, "/host")
        may_see = [topic for topic in options.get("sees", "").split(",") if topic]
        self._send(
            name,
            lambda m, token, now_ms: m.consumer.heartbeat(
                request, version, client, token, now_ms, lambda topic: not may_see or topic in may_see
            ),
        )

    def _leave(self, name: str, epoch: str = "-1") -> None:
        self._beat(name, epoch=epoch)

    def _owned(self, told: _Told, text: str | None) -> list[TopicPartitions] | None:
        if text is None:
            return None
        if text == "told":
            return told.assigned
        owned = []
        for word in text.split("/"):
            if word != "-":
                topic, _, numbers = word.partition(":")
                info = self._topics.by_name(topic)
                assert info is not None
                owned.append(TopicPartitions(info.topic_id, [int(n) for n in numbers.split(",")]))
        return owned

    def _send(self, name: str, event: Any) -> None:
        self._waiting.append(self._harness.send(event, name))

    # ---- the classic protocol

    def _classic(self, name: str, what: str, **options: str) -> None:
        told = self._clients.setdefault(name, _Told(""))
        send: dict[str, Callable[..., None]] = {
            "join": self._classic_join,
            "sync": self._classic_sync,
            "heartbeat": self._classic_beat,
        }
        if what == "leave":
            leaving = LeaveGroupRequest(GROUP, members=[MemberIdentity(told.member_id)])
            self._send(name, lambda m, token, now_ms: m.classic.leave_group(leaving, 5, token, now_ms))
        else:
            send[what](name, told, **options)

    def _classic_join(
        self, name: str, told: _Told, topics: str = "t", owns: str = "", **options: str
    ) -> None:
        owned = [
            EmbeddedPartitions(topic, [int(number) for number in numbers.split(",")])
            for topic, _, numbers in (word.partition(":") for word in owns.split("/") if word)
        ]
        metadata = b"\0\3" + codec.encode(Subscription(topics.split(","), None, owned), 3)
        request = JoinGroupRequest(
            GROUP,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=int(options.get("rebalance", 60_000)),
            member_id=told.member_id,
            group_instance_id=options.get("instance"),
            protocol_type=options.get("type", "consumer"),
            protocols=[JoinGroupRequestProtocol(options.get("protocol", "range"), metadata)],
        )
        client = Client(name, "/host")
        self._send(name, lambda m, token, now_ms: m.classic.join_group(request, 9, client, token, now_ms))

    def _classic_sync(self, name: str, told: _Told, assign: str = "", **options: str) -> None:
        """`assign=b@t:0,1/a@t:2` as a leader; a member by the name of its client."""
        shares = []
        for word in assign.split("/"):
            if word:
                who, _, what = word.partition("@")
                topic, _, numbers = what.partition(":")
                parts = [EmbeddedPartitions(topic, [int(number) for number in numbers.split(",")])]
                data = b"\0\3" + codec.encode(EmbeddedAssignment(parts), 3)
                shares.append(SyncGroupRequestAssignment(self._clients[who].member_id, data))
        request = SyncGroupRequest(GROUP, told.epoch, told.member_id, assignments=shares)
        self._send(name, lambda m, token, now_ms: m.classic.sync_group(request, 5, token, now_ms))

    def _classic_beat(self, name: str, told: _Told, **options: str) -> None:
        request = HeartbeatRequest(GROUP, told.epoch, told.member_id)
        self._send(name, lambda m, token, now_ms: m.classic.heartbeat(request, token, now_ms))

    # ---- everything else

    def _config(self, **settings: str) -> None:
        self._settings.update(settings)
        self._start()

    def _group_config(self, **settings: str) -> None:
        self._group_settings.update(settings)
        self._topics.version += 1

    def _topic(self, **partitions: str) -> None:
        """A new topic, one that grows, or with 0 one that goes."""
        for name, number in partitions.items():
            if int(number):
                self._topics.create(name, int(number))
            else:
                self._topics.delete(name)
        self._harness.machine.topics_changed(self._harness.now_ms)
        self._harness.settle()

    def _restart(self, behind: str = "0") -> None:
        """`behind`: on a node whose clock is so many milliseconds behind."""
        self._harness.now_ms -= int(behind)
        self._harness.restart()

    def _appends(self, what: str) -> None:
        self._harness.appends_fail = what == "fail"

    def _advance(self, ms: str) -> None:
        self._harness.advance(int(ms))

    def _delete(self) -> list[str]:
        group = self._harness.machine.state.groups[GROUP]
        try:
            group.check_delete()
        except KafkaError as error:
            return [error.code.name]
        group.write_tombstones()
        self._harness.settle()
        return []

    def _may_commit(self, name: str, **options: str) -> list[str]:
        group = self._harness.machine.state.groups[GROUP]
        told = self._clients[name]
        try:
            check = group.check_offset_commit(told.member_id, None, int(options["epoch"]), 9, False)
            if check is not None:
                info = self._topics.by_name("t")
                assert info is not None
                check("t", info.topic_id, int(options["partition"]))
        except KafkaError as error:
            return [error.code.name]
        return ["yes"]

    def _show(self) -> list[str]:
        described = self._harness.machine.consumer.describe(GROUP)
        if described.error_code:
            return [_ERROR_NAMES[described.error_code]]
        return [
            f"{described.group_state} epoch={described.group_epoch} assigned={described.assignment_epoch}"
            f" with {described.assignor_name}",
            *(
                f"  {member.member_id} epoch={member.member_epoch}"
                f" has {self._partitions(member.assignment.topic_partitions)},"
                f" should have {self._partitions(member.target_assignment.topic_partitions)}"
                for member in described.members
            ),
        ]

    # ---- records

    def _record(self, key: bytes, value: bytes | None) -> str:
        decoded = decode_key(key)
        words = list(self._record_words(decoded, None if value is None else decode_value(decoded, value)))
        return " ".join(["-" if value is None else "+", *words])

    def _record_words(self, key: Any, value: Any) -> Iterator[str]:
        if isinstance(key, classic_records.GroupMetadataKey):
            yield "classic group"
            if value is not None:
                yield f"generation={value.generation} members={len(value.members)}"
            return
        yield _KINDS[type(key)]
        yield from (
            word for word in (getattr(key, "member_id", ""), getattr(key, "regular_expression", "")) if word
        )
        if isinstance(value, records.ConsumerGroupMetadataValue):
            yield f"epoch={value.epoch}"
        elif isinstance(value, records.ConsumerGroupMemberMetadataValue):
            yield from _member_words(value)
        elif isinstance(value, records.ConsumerGroupTargetAssignmentMetadataValue):
            yield f"epoch={value.assignment_epoch}"
        elif isinstance(value, records.ConsumerGroupTargetAssignmentMemberValue):
            yield self._partitions(value.topic_partitions)
        elif isinstance(value, records.ConsumerGroupCurrentMemberAssignmentValue):
            yield f"epoch={value.member_epoch} {_STATES[value.state]}"
            yield self._partitions(value.assigned_partitions)
            if value.partitions_pending_revocation:
                yield f"to give up {self._partitions(value.partitions_pending_revocation)}"
        elif isinstance(value, records.ConsumerGroupRegularExpressionValue):
            yield f"matches {','.join(value.topics) or '(nothing)'}"


_KINDS = {
    records.ConsumerGroupMetadataKey: "group",
    records.ConsumerGroupPartitionMetadataKey: "partition metadata",
    records.ConsumerGroupMemberMetadataKey: "member",
    records.ConsumerGroupTargetAssignmentMetadataKey: "target",
    records.ConsumerGroupTargetAssignmentMemberKey: "target of",
    records.ConsumerGroupCurrentMemberAssignmentKey: "current",
    records.ConsumerGroupRegularExpressionKey: "pattern",
}


def _member_words(value: records.ConsumerGroupMemberMetadataValue) -> Iterator[str]:
    if value.instance_id is not None:
        yield f"instance={value.instance_id}"
    if value.subscribed_topic_names:
        yield f"topics={','.join(value.subscribed_topic_names)}"
    if value.subscribed_topic_regex:
        yield f"regex={value.subscribed_topic_regex}"
    if value.server_assignor is not None:
        yield f"assignor={value.server_assignor}"
    if value.classic_member_metadata is not None:
        yield "classic"


def _numbers(partitions: list[int]) -> str:
    return ",".join(str(number) for number in sorted(partitions))


def _or_empty(text: str) -> str:
    return "" if text == "-" else text
