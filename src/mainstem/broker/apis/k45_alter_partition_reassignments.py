"""AlterPartitionReassignments (key 45), versions 0 to 1: the brokers that keep a partition.

One broker is the whole cluster, so the only assignment that can be asked for is the one that is there; no
reassignment is ever under way. Kafka's ReassignPartitionsCommand asks it before it moves replicas between log
directories (AlterReplicaLogDirs).
"""

from typing import Final

from mainstem.broker.apis import Api
from mainstem.broker.requests.context import RequestContext
from mainstem.cluster.controller.partitions import check_manual_assignment
from mainstem.protocol.apis.k45_alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.security.authorizer import CLUSTER_NAME, Operation, ResourceType

API: Final = Api("broker", "controller", forwarded=True)


def handle(
    ctx: RequestContext, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change, error_message=None
    )
    if not ctx.authorize(Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME):
        response.error_code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        response.error_message = ErrorCode.CLUSTER_AUTHORIZATION_FAILED.message
        return response
    for topic in request.topics:
        results = [_alter(ctx, topic.name, part) for part in topic.partitions]
        response.responses.append(ReassignableTopicResponse(name=topic.name, partitions=results))
    return response


def _alter(ctx: RequestContext, topic: str, part: ReassignablePartition) -> ReassignablePartitionResponse:
    result = ReassignablePartitionResponse(partition_index=part.partition_index, error_message=None)
    try:
        if ctx.server.image.partition(topic, part.partition_index) is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {topic}-{part.partition_index}"
            )
        if part.replicas is None:
            raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
        check_manual_assignment(ctx.server.image.brokers, part.replicas, None)
    except KafkaError as error:
        result.error_code = error.code
        result.error_message = error.message or error.code.message
    return result
