"""DescribeTopicPartitions (key 75), version 0 (KIP-966): topics page by page, in the order of their names.

The page ends at `response_partition_limit` partitions or at `max.request.partition.size.limit`; the
cursor in the answer says where the next one starts.
"""

from typing import Final

from mainstem.broker.apis import Api
from mainstem.broker.coordination.internal_topics import is_internal
from mainstem.broker.requests.context import RequestContext
from mainstem.cluster.image import PartitionImage
from mainstem.cluster.topic_names import name_problem
from mainstem.protocol.apis.k75_describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.security.authorizer import Operation, ResourceType

API: Final = Api("broker")


def handle(ctx: RequestContext, request: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
    image = ctx.broker.image
    asked = {topic.name for topic in request.topics} or {
        name
        for name in image.topics_by_name
        if ctx.authorize(Operation.DESCRIBE, ResourceType.TOPIC, name)  # others are not even named
    }
    first_topic, first_partition = "", 0
    if request.cursor is not None:
        first_topic, first_partition = request.cursor.topic_name, request.cursor.partition_index
    if first_partition < 0:
        return _refused(request)
    limit = min(request.response_partition_limit, ctx.broker.config.get("max.request.partition.size.limit"))
    limit = max(limit, 1)  # every page must lead on to the next
    response = DescribeTopicPartitionsResponse()
    for name in sorted(name for name in asked if name >= first_topic):
        start = first_partition if name == first_topic else 0
        if limit <= 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=start)
            break
        described = _describe(ctx, name, start, limit)
        response.topics.append(described)
        limit -= len(described.partitions)
        end = start + len(described.partitions)
        topic = image.topics_by_name.get(name)
        if topic is not None and end < len(topic.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=end)
            break
    return response


def _refused(request: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
    """The cursor is not one of ours."""
    return DescribeTopicPartitionsResponse(
        topics=[
            DescribeTopicPartitionsResponseTopic(error_code=ErrorCode.INVALID_REQUEST, name=topic.name)
            for topic in request.topics
        ]
    )


def _describe(ctx: RequestContext, name: str, start: int, limit: int) -> DescribeTopicPartitionsResponseTopic:
    described = DescribeTopicPartitionsResponseTopic(name=name)
    if not ctx.authorize(Operation.DESCRIBE, ResourceType.TOPIC, name):
        described.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return described
    described.topic_authorized_operations = ctx.authorized_operations(ResourceType.TOPIC, name)
    topic = ctx.broker.image.topics_by_name.get(name)
    if topic is None:
        invalid = name_problem(name) is not None
        described.error_code = (
            ErrorCode.INVALID_TOPIC_EXCEPTION if invalid else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )
        return described
    described.topic_id = topic.topic_id
    described.is_internal = is_internal(name)
    described.partitions = [_partition(ctx, name, p) for p in topic.partitions[start : start + limit]]
    return described


def _partition(
    ctx: RequestContext, topic: str, part: PartitionImage
) -> DescribeTopicPartitionsResponsePartition:
    return DescribeTopicPartitionsResponsePartition(
        error_code=ErrorCode.NONE if part.leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=part.partition,
        leader_id=part.leader,
        leader_epoch=part.leader_epoch,
        replica_nodes=list(part.replicas),
        isr_nodes=list(part.isr),
        eligible_leader_replicas=list(part.eligible_leader_replicas),
        last_known_elr=list(part.last_known_elr),
        offline_replicas=ctx.broker.offline_replicas(topic, part),
    )
