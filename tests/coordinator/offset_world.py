"""A group coordinator in memory: short words for what happens to offsets, and a log that reads as text."""

import struct
from typing import Any

from mainstem.config import BrokerConfig
from mainstem.coordinator.group.coordinator import GroupCoordinator
from mainstem.coordinator.group.records import decode_key, decode_value
from mainstem.coordinator.group.records.classic import GroupMetadataKey
from mainstem.coordinator.group.records.offsets import OffsetCommitKey
from mainstem.coordinator.group.state import Client
from mainstem.protocol.apis.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from mainstem.protocol.apis.k09_offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from mainstem.protocol.apis.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from mainstem.protocol.apis.k13_leave_group import LeaveGroupRequest, MemberIdentity
from mainstem.protocol.apis.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from mainstem.protocol.apis.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.uuids import ZERO_UUID
from tests.coordinator.harness import FakeTopics, Harness, Waiting

MINUTE_MS = 60_000
_CLIENT = Client("client", "/127.0.0.1")


class World:
    """Topics `t` and `u` of four partitions each; offsets are kept for an hour after the group is empty."""

    def __init__(self, **settings: str) -> None:
        self.topics = FakeTopics(t=4, u=4)
        given = {
            "group.initial.rebalance.delay.ms": "0",
            "offsets.retention.minutes": "60",
            "offsets.retention.check.interval.ms": str(10 * MINUTE_MS),
        }
        given |= {name.replace("_", "."): value for name, value in settings.items()}
        ids = iter(range(1, 1000))
        self.harness = Harness(
            lambda: GroupCoordinator(
                BrokerConfig(given), self.topics, lambda: f"id-{next(ids)}", lambda group: {}
            )
        )

    # ---- what clients do

    def send_commit(
        self,
        group: str,
        at: dict[int, int],
        topic: str = "t",
        *,
        version: int = 9,
        metadata: str | None = "",
        **fields: Any,
    ) -> Waiting:
        """Commit `at`, by partition, e.g. {0: 5}."""
        info = self.topics.by_name(topic)
        topic_id = info.topic_id if info else ZERO_UUID
        epoch = fields.pop("epoch", -1)
        places = [OffsetCommitRequestPartition(n, offset, epoch, metadata) for n, offset in at.items()]
        request = OffsetCommitRequest(
            group,
            fields.pop("generation", -1),
            fields.pop("member", ""),
            fields.pop("instance", None),
            fields.pop("retention_time_ms", -1),
            [OffsetCommitRequestTopic(topic, topic_id, places)],
        )
        assert not fields, f"unknown: {fields}"
        return self.harness.send(lambda m, token, now: m.offsets.commit(request, version, token, now))

    def commit(self, group: str, topic: str = "t", *, at: dict[int, int], **fields: Any) -> Any:
        """The same, and the errors that came back, by partition."""
        answer = self.send_commit(group, at, topic, **fields).answer
        if isinstance(answer, ErrorCode):
            return answer.name
        assert [topic.name for topic in answer.topics] == [topic]
        return {p.partition_index: ErrorCode(p.error_code).name for p in answer.topics[0].partitions}

    def fetch(self, group: str, topic: str = "t", topic_id: bytes = ZERO_UUID, **member: Any) -> Any:
        """The committed offsets of a topic, by partition, those only that are there; or an error."""
        wanted = [OffsetFetchRequestTopics(topic, topic_id, [0, 1, 2, 3])]
        request = OffsetFetchRequestGroup(group, member.get("member"), member.get("epoch", -1), wanted)
        answer = self.fetch_answer(request)
        if answer.error_code:
            return ErrorCode(answer.error_code).name
        parts = answer.topics[0].partitions
        return {part.partition_index: part.committed_offset for part in parts if part.committed_offset != -1}

    def fetch_answer(self, request: OffsetFetchRequestGroup) -> Any:
        return self.harness.send(lambda m, token, now: m.offsets.fetch(request, token, now)).answer

    def fetch_all(self, group: str) -> dict[str, dict[int, int]]:
        request = OffsetFetchRequestGroup(group)
        request.topics = None
        answer = self.fetch_answer(request)
        return {t.name: {p.partition_index: p.committed_offset for p in t.partitions} for t in answer.topics}

    def delete(self, group: str, topic: str, *partitions: int) -> Any:
        """The errors by partition, or that of the group."""
        topics = [OffsetDeleteRequestTopic(topic, [OffsetDeleteRequestPartition(n) for n in partitions])]
        request = OffsetDeleteRequest(group, topics)
        answer = self.harness.send(lambda m, token, now: m.offsets.delete(request, token, now)).answer
        if isinstance(answer, ErrorCode) or answer.error_code:
            return ErrorCode(getattr(answer, "error_code", answer)).name
        return {p.partition_index: ErrorCode(p.error_code).name for p in answer.topics[0].partitions}

    def delete_group(self, group: str) -> str:
        answer = self.harness.send(lambda m, token, now: m.offsets.delete_group(group, token, now)).answer
        return answer.name if isinstance(answer, ErrorCode) else ErrorCode(answer.error_code).name

    def join(self, group: str, *topics: str) -> str:
        """Become the only member of a classic group, subscribed to these topics: generation 1."""
        joined = self.send_join(group, *topics)
        self.harness.advance(0)
        return str(joined.answer.member_id)

    def send_join(self, group: str, *topics: str, version: int = 3, member: str = "") -> Waiting:
        data = struct.pack(">hi", 0, len(topics))
        data += b"".join(struct.pack(">h", len(name)) + name.encode() for name in topics)
        protocols = [JoinGroupRequestProtocol("range", data + struct.pack(">i", -1))]
        request = JoinGroupRequest(group, 30_000, 60_000, member, None, "consumer", protocols)
        return self.harness.send(
            lambda m, token, now: m.classic.join_group(request, version, _CLIENT, token, now)
        )

    def sync(self, group: str, member: str) -> None:
        request = SyncGroupRequest(group, 1, member, assignments=[SyncGroupRequestAssignment(member, b"")])
        synced = self.harness.send(lambda m, token, now: m.classic.sync_group(request, 3, token, now))
        assert synced.answer.error_code == 0

    def leave(self, group: str, member: str) -> None:
        request = LeaveGroupRequest(group, member, [MemberIdentity(member)])
        self.harness.send(lambda m, token, now: m.classic.leave_group(request, 3, token, now))

    # ---- what happens besides

    def advance_minutes(self, minutes: int) -> None:
        self.harness.advance(minutes * MINUTE_MS)

    def expire(self) -> None:
        """Look for old offsets now."""
        self.harness.machine.offsets._cleanup.expire(self.harness.now_ms)
        self.harness.settle()

    def topics_changed(self) -> None:
        self.harness.machine.topics_changed(self.harness.now_ms)
        self.harness.settle()
        self.harness.advance(0)

    def groups(self) -> set[str]:
        return set(self.harness.machine.state.groups)

    def log(self, since: int = 0) -> list[str]:
        """The log as text, one record a line."""
        return [_line(key, value) for key, value in self.harness.log[since:]]


def _line(key: bytes, value: bytes | None) -> str:
    decoded = decode_key(key)
    if isinstance(decoded, GroupMetadataKey):
        return f"group {decoded.group}" + (" deleted" if value is None else "")
    assert isinstance(decoded, OffsetCommitKey)
    name = f"{decoded.group} {decoded.topic}-{decoded.partition}"
    if value is None:
        return f"{name} deleted"
    read = decode_value(decoded, value)
    note = f" {read.metadata!r}" if read.metadata else ""
    return f"{name} at {read.offset}{note} (version {value[1]})"
