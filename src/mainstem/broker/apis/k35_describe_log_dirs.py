"""DescribeLogDirs (key 35), versions 1 to 5: sizes per log directory and partition; v4 disk totals
(KIP-827).
"""

import os

from mainstem.broker.context import RequestContext
from mainstem.broker.partition import Partition
from mainstem.protocol.apis.k35_describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.security.authorizer import CLUSTER_NAME, Operation, ResourceType


def handle(ctx: RequestContext, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    if not ctx.authorize(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        return DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    wanted = None
    if request.topics is not None:
        wanted = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    by_dir: dict[str, list[Partition]] = {}
    for partition in ctx.node.replicas.all():
        if wanted is None or (partition.topic, partition.index) in wanted:
            by_dir.setdefault(str(ctx.node.log_manager.dir_of(partition.log).path), []).append(partition)
    return DescribeLogDirsResponse(
        results=[
            _describe(
                str(log_dir.path), log_dir.health.failure is not None, by_dir.get(str(log_dir.path), [])
            )
            for log_dir in ctx.node.log_manager.dirs
        ]
    )


def _describe(path: str, offline: bool, partitions: list[Partition]) -> DescribeLogDirsResult:
    result = DescribeLogDirsResult(log_dir=path)
    if offline:
        result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        return result
    topics: dict[str, DescribeLogDirsTopic] = {}
    for partition in partitions:
        topic = topics.setdefault(partition.topic, DescribeLogDirsTopic(name=partition.topic))
        topic.partitions.append(
            DescribeLogDirsPartition(partition_index=partition.index, partition_size=partition.log.size)
        )
    result.topics = list(topics.values())
    try:
        disk = os.statvfs(path)
    except OSError:
        return result
    result.total_bytes = disk.f_blocks * disk.f_frsize
    result.usable_bytes = disk.f_bavail * disk.f_frsize
    return result
