"""OffsetDelete (key 47), version 0 (KIP-496).

As in Kafka, partitions that are refused here come first in the answer, and an error of the group comes alone.
"""

from typing import Any, Final

from mainstem.broker.apis import Api
from mainstem.broker.requests.context import RequestContext
from mainstem.protocol.apis.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.security.authorizer import Operation, ResourceType

API: Final = Api("broker")


def handle(ctx: RequestContext, request: OffsetDeleteRequest) -> Any:
    if not ctx.authorize(Operation.DELETE, ResourceType.GROUP, request.group_id):
        return OffsetDeleteResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    refused: list[OffsetDeleteResponseTopic] = []
    accepted: list[OffsetDeleteRequestTopic] = []
    for topic in request.topics:
        error, count = _check(ctx, topic.name)
        known = [part for part in topic.partitions if 0 <= part.partition_index < count]
        unknown = [
            OffsetDeleteResponsePartition(part.partition_index, error)
            for part in topic.partitions
            if not 0 <= part.partition_index < count
        ]
        if unknown or not count:
            refused.append(OffsetDeleteResponseTopic(topic.name, unknown))
        if known:
            accepted.append(OffsetDeleteRequestTopic(topic.name, known))
    if not request.group_id:
        return OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    wanted = OffsetDeleteRequest(request.group_id, accepted)
    part = (
        request.group_id,
        lambda machine, token, now_ms: machine.offsets.delete(wanted, token, now_ms),
        lambda error: OffsetDeleteResponse(error_code=error),
    )
    return ctx.broker.groups.gather(ctx, [part], lambda answers: _merge(refused, answers[0]))


def _check(ctx: RequestContext, topic: str) -> tuple[ErrorCode, int]:
    """The number of partitions that may be touched, and the error for the others."""
    if not ctx.authorize(Operation.READ, ResourceType.TOPIC, topic):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0
    image = ctx.broker.image.topics_by_name.get(topic)
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0 if image is None else len(image.partitions)


def _merge(refused: list[OffsetDeleteResponseTopic], answer: OffsetDeleteResponse) -> OffsetDeleteResponse:
    if answer.error_code or not refused:
        return answer
    by_name = {topic.name: topic for topic in refused}
    for topic in answer.topics:
        known = by_name.get(topic.name)
        if known is None:
            refused.append(topic)
        else:
            known.partitions += topic.partitions
    return OffsetDeleteResponse(topics=refused)
