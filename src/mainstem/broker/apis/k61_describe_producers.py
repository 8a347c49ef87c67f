"""DescribeProducers (key 61), version 0: which producers a partition remembers, and their open transactions
(KIP-664).
"""

from typing import Final

from mainstem.broker.apis import Api
from mainstem.broker.requests.context import RequestContext
from mainstem.cluster.topic_names import name_problem
from mainstem.protocol.apis.k61_describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.security.authorizer import Operation, ResourceType

API: Final = Api("broker")


def handle(ctx: RequestContext, request: DescribeProducersRequest) -> DescribeProducersResponse:
    response = DescribeProducersResponse()
    for topic in request.topics:
        problem = _topic_problem(ctx, topic.name)
        result = TopicResponse(name=topic.name)
        for index in topic.partition_indexes:
            if problem is not None:
                answer = PartitionResponse(
                    partition_index=index, error_code=problem.code, error_message=problem.message
                )
            else:
                answer = _describe(ctx, topic.name, index)
            result.partitions.append(answer)
        response.topics.append(result)
    return response


def _topic_problem(ctx: RequestContext, topic: str) -> KafkaError | None:
    """Why none of the topic's partitions can be described."""
    problem = name_problem(topic)
    if problem:
        return KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    code = ErrorCode.NONE
    if not ctx.authorize(Operation.READ, ResourceType.TOPIC, topic):
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    elif topic not in ctx.broker.image.topics_by_name:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return KafkaError(code, code.message) if code else None


def _describe(ctx: RequestContext, topic: str, index: int) -> PartitionResponse:
    answer = PartitionResponse(partition_index=index)
    try:
        partition = ctx.broker.replicas.by_topic(topic, index)
        partition.check_leader()
    except KafkaError as error:
        answer.error_code = error.code
        return answer
    answer.active_producers = [
        ProducerState(
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            last_sequence=producer.last_sequence,
            last_timestamp=producer.last_timestamp,
            coordinator_epoch=producer.coordinator_epoch,
            current_txn_start_offset=producer.current_txn_start_offset,
        )
        for producer in partition.log.producers.active()
    ]
    return answer
