"""DeleteRecords (key 21), versions 0 to 2: moves a partition's log start offset forward.

It is answered when the logs of all replicas whose brokers are there start at the offset, or when the time is
over. They hear of it with their fetches.
"""

from asyncio import TimerHandle
from typing import Final

from mainstem.broker.apis import Api
from mainstem.broker.coordination.internal_topics import is_internal
from mainstem.broker.logs.partition import Partition
from mainstem.broker.network.connection import PARKED, Parked
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


def handle(ctx: RequestContext, request: DeleteRecordsRequest) -> DeleteRecordsResponse | Parked:
    deletion = Deletion(ctx, request)
    return PARKED if deletion.park() else deletion.response


class Deletion:
    """The answer of one request in the making."""

    def __init__(self, ctx: RequestContext, request: DeleteRecordsRequest) -> None:
        self._ctx = ctx
        self._timeout_ms = request.timeout_ms
        self._timer: TimerHandle | None = None
        # By partition, in the order of their offsets: a request may name a partition twice.
        self._waiting: dict[Partition, list[DeleteRecordsPartitionResult]] = {}
        self.response = DeleteRecordsResponse()
        for topic in request.topics:
            result = DeleteRecordsTopicResult(name=topic.name)
            result.partitions = [self._delete(topic.name, part) for part in topic.partitions]
            self.response.topics.append(result)

    def _delete(self, topic: str, part: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
        result = DeleteRecordsPartitionResult(partition_index=part.partition_index, low_watermark=-1)
        try:
            partition = self._find(topic, part.partition_index)
            offset = partition.high_watermark if part.offset == _HIGH_WATERMARK else part.offset
            if offset < 0:
                raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {part.offset} is negative")
            partition.log.advance_log_start_offset(offset, partition.high_watermark)
        except KafkaError as error:
            result.error_code = error.code
            return result
        partition.tell_subscribers()
        result.low_watermark = partition.low_watermark
        if result.low_watermark < offset:
            self._waiting.setdefault(partition, []).append(result)
            partition.add_start_waiter(offset, self)
        return result

    def _find(self, topic: str, index: int) -> Partition:
        ctx = self._ctx
        if not ctx.authorize(Operation.DELETE, ResourceType.TOPIC, topic):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if is_internal(topic):
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} is the broker's own")
        partition = ctx.broker.replicas.by_topic(topic, index)
        partition.check_leader()
        config = partition.log.config
        if config.compact and not config.delete:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION, f"{topic} is compacted only; its records cannot be deleted"
            )
        return partition

    # ---- waiting for other replicas

    def park(self) -> bool:
        """Answer later, unless there is nothing to wait for."""
        if not self._waiting:
            return False
        self._timer = self._ctx.broker.loop.call_later(max(0, self._timeout_ms) / 1000, self._expire)
        self._ctx.connection.waiter = self
        return True

    def acknowledged(self, partition: Partition, error: ErrorCode) -> None:
        """All replicas have followed, or the partition is led elsewhere."""
        results = self._waiting[partition]
        result = results.pop(0)
        if not results:
            del self._waiting[partition]
        result.error_code = error
        result.low_watermark = -1 if error else partition.low_watermark
        if not self._waiting and self._timer is not None:
            self._timer.cancel()
            self._ctx.reply(self.response)

    def _expire(self) -> None:
        for results in self._waiting.values():
            for result in results:
                result.error_code = ErrorCode.REQUEST_TIMED_OUT
        self._leave()
        self._ctx.reply(self.response)

    def cancel(self) -> None:
        assert self._timer is not None
        self._timer.cancel()
        self._leave()

    def _leave(self) -> None:
        for partition in self._waiting:
            partition.remove_ack_waiter(self)
        self._waiting.clear()
