"""The words of a scenario about classic groups: members that join, sync and leave with bare requests."""

import struct
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self

from mainstem.protocol.apis.k11_join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from mainstem.protocol.apis.k12_heartbeat import HeartbeatRequest
from mainstem.protocol.apis.k13_leave_group import LeaveGroupRequest, MemberIdentity
from mainstem.protocol.apis.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from mainstem.protocol.apis.k15_describe_groups import DescribeGroupsRequest
from mainstem.protocol.errors import ErrorCode
from tests.support.target import Target, when_settled
from tests.support.transcript import Transcript
from tests.support.wire import WireClient

LAST_VERSION = 9
_SESSION_TIMEOUT_MS = 60_000


def subscription(*topics: str) -> bytes:
    """What a consumer says about itself: its topics, no user data."""
    names = b"".join(struct.pack(">h", len(topic)) + topic.encode() for topic in topics)
    return struct.pack(">hi", 0, len(topics)) + names + struct.pack(">i", -1)


def protocols(**topics: str) -> list[JoinGroupRequestProtocol]:
    """Each with a subscription to one topic: Apache Kafka never answers consumers whose metadata is none."""
    return [JoinGroupRequestProtocol(name, subscription(topic)) for name, topic in topics.items()]


def join_request(group: str, member_id: str = "", **fields: Any) -> JoinGroupRequest:
    defaults: dict[str, Any] = {
        "session_timeout_ms": _SESSION_TIMEOUT_MS,
        "rebalance_timeout_ms": _SESSION_TIMEOUT_MS,
        "protocol_type": "consumer",
        "protocols": protocols(range="topic"),
    }
    return JoinGroupRequest(group_id=group, member_id=member_id, **(defaults | fields))


def sync_request(
    group: str, generation: int, member_id: str, assignments: dict[str, bytes] | None = None, **fields: Any
) -> SyncGroupRequest:
    entries = [SyncGroupRequestAssignment(member, data) for member, data in (assignments or {}).items()]
    defaults: dict[str, Any] = {"protocol_type": "consumer", "protocol_name": "range"}
    return SyncGroupRequest(
        group_id=group,
        generation_id=generation,
        member_id=member_id,
        assignments=entries,
        **(defaults | fields),
    )


def leave_request(group: str, *members: tuple[str, str | None]) -> LeaveGroupRequest:
    """With all members for the versions that know several, and the first for the others."""
    identities = [MemberIdentity(member_id, instance_id, "done") for member_id, instance_id in members]
    return LeaveGroupRequest(group, members[0][0], identities)


class ClassicMember(AbstractContextManager["ClassicMember"]):
    """One member on a connection of its own, which knows the member id and generation that it was told.

    `metadata` tells members apart: a broker lists them in no order.
    """

    def __init__(self, target: Target, transcript: Transcript, group: str, name: str, **fields: Any) -> None:
        self.client = WireClient(target)
        self._transcript = transcript
        self.group = group
        self.name = name
        self.fields: dict[str, Any] = {"protocols": protocols(range=name)} | fields
        self.member_id = ""
        self.generation = -1
        self._ids = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.__exit__(kind, error, trace)

    def send_join(self, version: int = LAST_VERSION, **fields: Any) -> None:
        """Ask, perhaps to be answered much later."""
        request = join_request(self.group, **({"member_id": self.member_id} | self.fields | fields))
        self.client.send(request, version)

    def joined(self) -> JoinGroupResponse:
        """The answer; members in the order of what they say about themselves."""
        answer: JoinGroupResponse = self.client.receive()
        if answer.member_id and answer.member_id != self.member_id:
            self._ids += 1
            self.member_id = answer.member_id
            stand_in = self.name if self._ids == 1 else f"{self.name}, id {self._ids}"
            self._transcript.stand_in(self.member_id, stand_in)
        if not answer.error_code:
            self.generation = answer.generation_id
        answer.members.sort(key=lambda member: bytes(member.metadata))
        return answer

    def join(self, version: int = LAST_VERSION, **fields: Any) -> JoinGroupResponse:
        self.send_join(version, **fields)
        return self.joined()

    def get_id(self) -> None:
        """Ask for a member id, and do not join with it yet."""
        answer = self.join()
        assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED, answer

    def send_sync(self, assignments: dict[str, bytes] | None = None, version: int = 5, **fields: Any) -> None:
        known: dict[str, Any] = {"generation": self.generation, "member_id": self.member_id} | fields
        self.client.send(sync_request(self.group, assignments=assignments, **known), version)

    def sync(self, assignments: dict[str, bytes] | None = None, version: int = 5, **fields: Any) -> Any:
        self.send_sync(assignments, version, **fields)
        return self.client.receive()

    def heartbeat(self, version: int = 4, **fields: Any) -> Any:
        known: dict[str, Any] = {"generation_id": self.generation, "member_id": self.member_id} | fields
        return self.client.call(HeartbeatRequest(group_id=self.group, **known), version)

    def leave(self, version: int = 5) -> Any:
        return self.client.call(leave_request(self.group, (self.member_id, None)), version)


def describe(client: WireClient, group: str, version: int = 6) -> Any:
    answer = client.call(DescribeGroupsRequest([group]), version)
    for described in answer.groups:
        described.members.sort(key=lambda member: (bytes(member.member_metadata), member.member_id))
    return answer


def await_state(client: WireClient, group: str, state: str, members: int | None = None) -> None:
    """Until the requests that were sent on other connections show in the group."""

    def is_there(answer: Any) -> bool:
        described = answer.groups[0]
        return described.group_state == state and members in (None, len(described.members))

    answer = when_settled(lambda: describe(client, group), is_there)
    assert is_there(answer), answer
