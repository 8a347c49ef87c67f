"""DescribeLogDirs (key 35), versions 1 to 5: sizes per log directory and partition, also of those that are on
their way there or could not be made; v4 disk totals (KIP-827).
"""

import os
from typing import Final

from mainstem.broker.apis import Api
from mainstem.broker.logs.partition import Partition
from mainstem.broker.requests.context import RequestContext
from mainstem.cluster.directories import directory_of
from mainstem.protocol.apis.k35_describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from mainstem.storage.directories.log_dir import LogDir
from mainstem.storage.directories.log_manager import LogManager

API: Final = Api("broker")

_NO_OFFSETS: Final = -1  # how far a replica is behind that has no log


def handle(ctx: RequestContext, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    if not ctx.authorize(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        return DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    wanted = None
    if request.topics is not None:
        wanted = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    manager = ctx.broker.log_manager
    by_dir: dict[LogDir, list[tuple[str, DescribeLogDirsPartition]]] = {}
    for partition in ctx.broker.replicas.all():
        key = (partition.topic, partition.index)
        if wanted is not None and key not in wanted:
            continue
        here = DescribeLogDirsPartition(partition_index=partition.index, partition_size=partition.log.size)
        if request.include_log_state:
            _add_state(ctx, partition, here)
        by_dir.setdefault(manager.dir_of(partition.log), []).append((partition.topic, here))
        move = manager.moves.get(key)
        if move is not None:
            coming = DescribeLogDirsPartition(partition.index, move.size, move.offset_lag, True)
            by_dir.setdefault(move.target, []).append((partition.topic, coming))
    for unmade in ctx.broker.replicas.unmade:
        if wanted is None or (unmade.topic, unmade.part.partition) in wanted:
            absent = DescribeLogDirsPartition(unmade.part.partition, offset_lag=_NO_OFFSETS)
            if request.include_log_state:
                absent.offline = unmade.problem.message
            place = _place_of(directory_of(unmade.part, ctx.broker.node_id), manager)
            by_dir.setdefault(place, []).append((unmade.topic, absent))
    return DescribeLogDirsResponse(
        results=[
            _describe(log_dir, by_dir.get(log_dir, []), log_dir in manager.cordoned)
            for log_dir in manager.dirs
        ]
    )


def _place_of(directory_id: bytes | None, manager: LogManager) -> LogDir:
    """The directory in which a log belongs that could not be made; where none is known, one that works."""
    for log_dir in manager.dirs:
        if log_dir.meta is not None and log_dir.meta.directory_id == directory_id:
            return log_dir
    return (manager.online_dirs or manager.dirs)[0]


def _add_state(ctx: RequestContext, partition: Partition, described: DescribeLogDirsPartition) -> None:
    """What Kafka has no field for: how far retention and compaction are. Only who asks for it gets it."""
    log, cleaner = partition.log, ctx.broker.cleaner
    described.segment_count = len(log.segments)
    try:
        if log.size:
            described.oldest_segment_timestamp = log.segments[0].largest_timestamp()
        state = cleaner.state_of(partition)
    except (OSError, KafkaError, ValueError):
        return  # whoever needs the files will find out, and say so
    if state is not None:
        described.clean_bytes, described.cleanable_bytes = state.clean_bytes, state.cleanable_bytes
        described.uncleanable = cleaner.uncleanable.get(log)


def _describe(
    log_dir: LogDir, partitions: list[tuple[str, DescribeLogDirsPartition]], is_cordoned: bool
) -> DescribeLogDirsResult:
    result = DescribeLogDirsResult(log_dir=str(log_dir.path.absolute()), is_cordoned=is_cordoned)
    if log_dir.health.failure is not None:
        result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        return result
    topics: dict[str, DescribeLogDirsTopic] = {}
    for name, partition in partitions:
        topics.setdefault(name, DescribeLogDirsTopic(name=name)).partitions.append(partition)
    result.topics = list(topics.values())
    try:
        disk = os.statvfs(log_dir.path)
    except OSError:
        return result
    result.total_bytes = disk.f_blocks * disk.f_frsize
    result.usable_bytes = disk.f_bavail * disk.f_frsize
    return result
