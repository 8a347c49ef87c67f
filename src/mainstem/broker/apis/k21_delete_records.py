"""DeleteRecords (key 21), versions 0 to 2: moves a partition's log start offset forward."""

from typing import Final

from mainstem.broker.apis import Api
from mainstem.broker.coordination.internal_topics import is_internal
from mainstem.broker.requests.context import RequestContext
from mainstem.protocol.apis.k21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.security.authorizer import Operation, ResourceType

API: Final = Api("broker")
_HIGH_WATERMARK: Final = -1


def handle(ctx: RequestContext, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    response = DeleteRecordsResponse()
    for topic in request.topics:
        result = DeleteRecordsTopicResult(name=topic.name)
        result.partitions = [_delete(ctx, topic.name, part) for part in topic.partitions]
        response.topics.append(result)
    return response


def _delete(ctx: RequestContext, topic: str, part: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
    result = DeleteRecordsPartitionResult(partition_index=part.partition_index, low_watermark=-1)
    try:
        if not ctx.authorize(Operation.DELETE, ResourceType.TOPIC, topic):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if is_internal(topic):
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} is the broker's own")
        partition = ctx.broker.replicas.by_topic(topic, part.partition_index)
        partition.check_leader()
        log = partition.log
        if log.config.compact and not log.config.delete:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION, f"{topic} is compacted only; its records cannot be deleted"
            )
        high_watermark = partition.high_watermark
        offset = high_watermark if part.offset == _HIGH_WATERMARK else part.offset
        if offset < 0:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {part.offset} is negative")
        log.advance_log_start_offset(offset, high_watermark)
        result.low_watermark = log.log_start_offset
    except KafkaError as error:
        result.error_code = error.code
        return result
    partition.tell_subscribers()
    return result
