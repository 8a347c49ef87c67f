"""The words of a scenario about committed offsets: commit, read and delete, as bare requests."""

import struct
import time
from collections.abc import Mapping
from typing import Any

from mainstem.protocol.apis.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from mainstem.protocol.apis.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from mainstem.protocol.apis.k10_find_coordinator import FindCoordinatorRequest
from mainstem.protocol.apis.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from mainstem.protocol.apis.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from mainstem.protocol.apis.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from mainstem.protocol.apis.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.uuids import ZERO_UUID
from tests.support.target import unique_name
from tests.support.wire import WireClient

_READY_SECONDS_MAX = 60
_NOT_READY = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)
# What a topic is called: its name, or its id from the versions that name topics by id.
TopicKey = str | bytes


def new_group(client: WireClient, name: str | None = None) -> str:
    """A group id that nobody else has, whose coordinator is there and loaded."""
    group = unique_name("group") if name is None else name
    deadline = time.monotonic() + _READY_SECONDS_MAX
    while True:
        found = client.call(FindCoordinatorRequest(group), 3).error_code
        if not found:
            found = client.call(offset_fetch(group, {}), 7).error_code
        if found not in _NOT_READY:
            return group
        assert time.monotonic() < deadline
        time.sleep(0.02)


def position(
    index: int = 0, offset: int = 0, metadata: str | None = "", epoch: int = -1
) -> OffsetCommitRequestPartition:
    return OffsetCommitRequestPartition(index, offset, epoch, metadata)


def offset_commit(
    group: str, topics: Mapping[TopicKey, list[OffsetCommitRequestPartition]], **fields: Any
) -> OffsetCommitRequest:
    """`generation`, `member`, `instance` and `retention_time_ms` may be given."""
    return OffsetCommitRequest(
        group,
        fields.get("generation", -1),
        fields.get("member", ""),
        fields.get("instance"),
        fields.get("retention_time_ms", -1),
        [OffsetCommitRequestTopic(*_names(topic), parts) for topic, parts in topics.items()],
    )


def offset_fetch(
    group: str, topics: Mapping[TopicKey, list[int]] | None, *, stable: bool = False, **member: Any
) -> OffsetFetchRequest:
    """Of one group, for every version; None stands for all topics. `member` and `epoch` may be given."""
    old = None if topics is None else [OffsetFetchRequestTopic(_names(k)[0], p) for k, p in topics.items()]
    new = None if topics is None else [OffsetFetchRequestTopics(*_names(k), p) for k, p in topics.items()]
    groups = [OffsetFetchRequestGroup(group, member.get("member"), member.get("epoch", -1), new)]
    return OffsetFetchRequest(group, old, groups, stable)


def in_order(answer: OffsetFetchResponse) -> OffsetFetchResponse:
    """All topics of a group come in the order of a hash table."""
    owners: tuple[Any, ...] = (answer, *answer.groups)
    for owner in owners:
        # Unique names end with a number.
        owner.topics.sort(key=lambda topic: (len(topic.name), topic.name))
        for topic in owner.topics:
            topic.partitions.sort(key=lambda part: part.partition_index)
    return answer


def offset_delete(group: str, topics: Mapping[str, list[int]]) -> OffsetDeleteRequest:
    return OffsetDeleteRequest(
        group,
        [
            OffsetDeleteRequestTopic(name, [OffsetDeleteRequestPartition(index) for index in indexes])
            for name, indexes in topics.items()
        ],
    )


def join(client: WireClient, group: str, topic: str, protocol_type: str = "consumer") -> tuple[str, int]:
    """Become the only member of a classic group, subscribed to one topic. The assignment is not there yet."""
    name = topic.encode()
    subscription = struct.pack(">hih", 0, 1, len(name)) + name + struct.pack(">i", -1)
    protocols = [JoinGroupRequestProtocol("range", subscription)]
    request = JoinGroupRequest(group, 30_000, 30_000, protocol_type=protocol_type, protocols=protocols)
    answer = client.call(request, 3)
    assert answer.error_code == 0, answer
    return answer.member_id, answer.generation_id


def sync(client: WireClient, group: str, member: str, generation: int) -> None:
    assignments = [SyncGroupRequestAssignment(member, b"")]
    answer = client.call(SyncGroupRequest(group, generation, member, assignments=assignments), 3)
    assert answer.error_code == 0, answer


def join_consumer_protocol(client: WireClient, group: str, topic: str) -> tuple[str, int]:
    """Become the only member of a group of the consumer protocol and own the topic's first partition."""
    request = ConsumerGroupHeartbeatRequest(
        group, unique_name("member"), 0, None, None, 60_000, [topic], topic_partitions=[]
    )
    answer = client.call(request, 1)
    assert answer.error_code == 0, answer
    deadline = time.monotonic() + _READY_SECONDS_MAX
    while not (answer.assignment and answer.assignment.topic_partitions):
        assert time.monotonic() < deadline
        time.sleep(0.02)
        request.member_epoch = answer.member_epoch
        answer = client.call(request, 1)
        assert answer.error_code == 0, answer
    return request.member_id, answer.member_epoch


def _names(topic: TopicKey) -> tuple[str, bytes]:
    return (topic, ZERO_UUID) if isinstance(topic, str) else ("", topic)
