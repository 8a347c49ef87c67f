"""ListOffsets (key 2), versions 1 to 11.

Earliest (-2), latest (-1) and by timestamp in all versions; v2 isolation levels: for readers of committed
records the last stable offset is the end; v4 leader epochs; v7 the offset of the
largest timestamp (-3, KIP-734); v8 earliest local (-4), v9 latest tiered (-5) and v11 earliest pending
upload (-6), which are answered as Kafka answers them for a topic without tiered storage.
"""

from collections import Counter
from typing import Final

from mainstem.broker.apis import Api
from mainstem.broker.logs.partition import Partition
from mainstem.broker.requests.context import RequestContext
from mainstem.protocol.apis.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.replication.leader_state import LeaderState
from mainstem.security.authorizer import Operation, ResourceType

API: Final = Api("broker")
LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6
_STARTS: Final = (EARLIEST, EARLIEST_LOCAL)

_READ_COMMITTED: Final = 1
_CONSUMER: Final = -1
_DEBUGGER: Final = -2  # it may ask any replica, as Kafka's tools do
_OFFSET_NOT_AVAILABLE_SINCE: Final = 5

_SERVED_SINCE: Final = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}


def handle(ctx: RequestContext, request: ListOffsetsRequest) -> ListOffsetsResponse:
    response = ListOffsetsResponse()
    counts = Counter(
        (topic.name, part.partition_index) for topic in request.topics for part in topic.partitions
    )
    for topic in request.topics:
        result = ListOffsetsTopicResponse(name=topic.name)
        for part in topic.partitions:
            count = counts.pop((topic.name, part.partition_index), 0)
            if count > 1:  # named more than once: one entry, and it is an error
                code = ErrorCode.INVALID_REQUEST
                answer = ListOffsetsPartitionResponse(partition_index=part.partition_index, error_code=code)
                result.partitions.append(answer)
            elif count == 1:
                result.partitions.append(_list_partition(ctx, request, topic.name, part))
        response.topics.append(result)
    return response


def _list_partition(
    ctx: RequestContext, request: ListOffsetsRequest, topic: str, part: ListOffsetsPartition
) -> ListOffsetsPartitionResponse:
    answer = ListOffsetsPartitionResponse(partition_index=part.partition_index)
    try:
        if not ctx.authorize(Operation.DESCRIBE, ResourceType.TOPIC, topic):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if part.timestamp < 0 and ctx.version < _SERVED_SINCE.get(part.timestamp, 32767):
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
        partition = ctx.broker.replicas.by_topic(topic, part.partition_index)
        if request.replica_id == _DEBUGGER:
            partition.check_replica(part.current_leader_epoch)
        else:
            partition.check_leader(part.current_leader_epoch)
        found = _find_offset(partition, part.timestamp, _end_offset(partition, request))
        if part.timestamp not in _STARTS and request.replica_id == _CONSUMER:
            _check_end_is_known(ctx, partition, is_found=found is not None and part.timestamp != LATEST)
    except KafkaError as error:
        answer.error_code = error.code
        return answer
    if found is not None:
        answer.timestamp, answer.offset, answer.leader_epoch = found
    return answer


def _end_offset(partition: Partition, request: ListOffsetsRequest) -> int:
    """Before which the one who asks finds records."""
    if request.replica_id != _CONSUMER:
        return partition.log.log_end_offset
    if request.isolation_level == _READ_COMMITTED:
        return partition.last_stable_offset
    return partition.high_watermark


def _check_end_is_known(ctx: RequestContext, partition: Partition, *, is_found: bool) -> None:
    """A leader of a new epoch may not know yet up to where all is committed: what was told before could seem
    to be gone.
    """
    role = partition.role
    if not is_found and isinstance(role, LeaderState) and partition.high_watermark < role.epoch_start_offset:
        raise KafkaError(
            ErrorCode.OFFSET_NOT_AVAILABLE
            if ctx.version >= _OFFSET_NOT_AVAILABLE_SINCE
            else ErrorCode.LEADER_NOT_AVAILABLE
        )


def _find_offset(partition: Partition, timestamp: int, end_offset: int) -> tuple[int, int, int] | None:
    """(timestamp, offset, leader epoch) of what was asked for, or None when there is no such record."""
    log = partition.log
    if timestamp == LATEST:
        return -1, end_offset, partition.leader_epoch
    if timestamp in _STARTS:
        return -1, log.log_start_offset, log.leader_epochs.epoch_for_offset(log.log_start_offset)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return None
    found = log.max_timestamp_offset() if timestamp == MAX_TIMESTAMP else log.offset_for_timestamp(timestamp)
    if found is None or found[1] >= end_offset:
        return None
    return found
