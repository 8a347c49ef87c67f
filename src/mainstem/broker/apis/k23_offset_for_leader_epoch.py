"""OffsetForLeaderEpoch (key 23), versions 2 to 4: where an epoch ended, so that a client can find a
truncation.
"""

from typing import Final

from mainstem.broker.apis import Api
from mainstem.broker.requests.context import RequestContext
from mainstem.protocol.apis.k23_offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.security.authorizer import Operation, ResourceType

API: Final = Api("broker")


def handle(ctx: RequestContext, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
    response = OffsetForLeaderEpochResponse()
    for topic in request.topics:
        result = OffsetForLeaderTopicResult(topic=topic.topic)
        result.partitions = [_end_offset(ctx, topic.topic, part) for part in topic.partitions]
        response.topics.append(result)
    return response


def _end_offset(ctx: RequestContext, topic: str, part: OffsetForLeaderPartition) -> EpochEndOffset:
    answer = EpochEndOffset(partition=part.partition)
    try:
        if not ctx.authorize(Operation.DESCRIBE, ResourceType.TOPIC, topic):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        partition = ctx.broker.replicas.by_topic(topic, part.partition)
        partition.check_leader(part.current_leader_epoch)
    except KafkaError as error:
        answer.error_code = error.code
        return answer
    answer.leader_epoch, answer.end_offset = partition.log.end_offset_for_epoch(part.leader_epoch)
    return answer
