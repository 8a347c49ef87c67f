"""AlterReplicaLogDirs (key 34), versions 1 to 2: moves replicas of this broker to another of its log
directories.

The answer leaves when the move has begun; DescribeLogDirs shows how far it is. Naming the directory that a
replica is in calls its move off. As in Kafka, nothing is moved while a directory is offline. Unlike Kafka, a
replica that does not exist yet gets no place in advance.
"""

from typing import Final

from mainstem.broker.apis import Api
from mainstem.broker.requests.context import RequestContext
from mainstem.protocol.apis.k34_alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.security.authorizer import CLUSTER_NAME, Operation, ResourceType

API: Final = Api("broker")


def handle(ctx: RequestContext, request: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
    is_allowed = ctx.authorize(Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME)
    results: dict[str, AlterReplicaLogDirTopicResult] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            result = results.setdefault(topic.name, AlterReplicaLogDirTopicResult(topic_name=topic.name))
            for index in topic.partitions:
                code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
                if is_allowed:
                    code = _alter(ctx, topic.name, index, directory.path)
                result.partitions.append(AlterReplicaLogDirPartitionResult(index, code))
    return AlterReplicaLogDirsResponse(results=list(results.values()))


def _alter(ctx: RequestContext, topic: str, index: int, path: str) -> ErrorCode:
    try:
        ctx.broker.log_dir_moves.alter(topic, index, path)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE
