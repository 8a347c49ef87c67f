"""OffsetCommit (key 8), versions 2 to 10.

v2 to v4 may ask for a retention time of their own; v6 leader epochs; v7 static members; v9 members of the
consumer protocol (KIP-848); v10 names topics by id. As in Kafka, partitions that are refused here come first
in the answer, then those that the coordinator answered for.
"""

from typing import Any, Final

from mainstem.broker.apis import Api
from mainstem.broker.requests.commit_fast_path import CommitRoute
from mainstem.broker.requests.context import RequestContext
from mainstem.cluster.image import TopicImage
from mainstem.coordinator.effects import Token
from mainstem.coordinator.group.coordinator import GroupCoordinator
from mainstem.coordinator.group.offsets import refused_commit
from mainstem.protocol.apis.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.security.authorizer import Operation, ResourceType

API: Final = Api("broker")
_TOPIC_ID_VERSION = 10
_Refused = dict[tuple[str, bytes], OffsetCommitResponseTopic]

ROUTE: Final = CommitRoute


def handle(ctx: RequestContext, request: OffsetCommitRequest) -> Any:
    if not ctx.authorize(Operation.READ, ResourceType.GROUP, request.group_id):
        return refused_commit(request, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    refused: _Refused = {}
    accepted: list[OffsetCommitRequestTopic] = []
    for topic in request.topics:
        image, error = _find(ctx, topic)
        if image is None:
            _add(refused, topic, topic.partitions, error)
            continue
        topic.name, topic.topic_id = image.name, image.topic_id
        count = len(image.partitions)
        known = [part for part in topic.partitions if 0 <= part.partition_index < count]
        if len(known) < len(topic.partitions):
            unknown = [part for part in topic.partitions if not 0 <= part.partition_index < count]
            _add(refused, topic, unknown, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            topic.partitions = known
        if known:
            accepted.append(topic)
    if not accepted:
        return OffsetCommitResponse(topics=list(refused.values()))
    request.topics = accepted
    version = ctx.version

    def commit(machine: GroupCoordinator, token: Token, now_ms: int) -> None:
        machine.offsets.commit(request, version, token, now_ms)

    def fail(error: ErrorCode) -> OffsetCommitResponse:
        return refused_commit(request, error)

    if not refused:
        return ctx.broker.groups.submit(ctx, request.group_id, commit, fail)
    parts = [(request.group_id, commit, fail)]
    return ctx.broker.groups.gather(ctx, parts, lambda answers: _merge(refused, answers[0]))


def _find(ctx: RequestContext, topic: OffsetCommitRequestTopic) -> tuple[TopicImage | None, ErrorCode]:
    """The topic that is meant, if the client may read it."""
    image = ctx.broker.image
    if ctx.version >= _TOPIC_ID_VERSION:
        found = image.topics_by_id.get(topic.topic_id)
        if found is None:
            return None, ErrorCode.UNKNOWN_TOPIC_ID
        name = found.name
    else:
        name = topic.name
        found = image.topics_by_name.get(name)
    if not ctx.authorize(Operation.READ, ResourceType.TOPIC, name):
        return None, ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return found, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _add(
    refused: _Refused,
    topic: OffsetCommitRequestTopic,
    partitions: list[OffsetCommitRequestPartition],
    error: ErrorCode,
) -> None:
    answers = [OffsetCommitResponsePartition(part.partition_index, error) for part in partitions]
    _join(refused, OffsetCommitResponseTopic(topic.name, topic.topic_id, answers))


def _merge(refused: _Refused, answer: OffsetCommitResponse) -> OffsetCommitResponse:
    for topic in answer.topics:
        _join(refused, topic)
    return OffsetCommitResponse(topics=list(refused.values()))


def _join(topics: _Refused, topic: OffsetCommitResponseTopic) -> None:
    """Partitions of one topic stand under one entry."""
    known = topics.setdefault((topic.name, topic.topic_id), topic)
    if known is not topic:
        known.partitions += topic.partitions
