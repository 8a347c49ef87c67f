"""A produce request from its append to its answer: it waits until every batch has what `acks` asks for.

A batch is in the log when it is waited for, and is never appended again. The answer leaves with the last one
that is committed or fails, or when the request times out.
"""

from asyncio import TimerHandle
from typing import Final

from mainstem.broker.logs.partition import Partition
from mainstem.broker.requests.context import RequestContext
from mainstem.broker.requests.current_leader import NAMES_LEADER, current_leader
from mainstem.protocol.apis.k00_produce import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
)
from mainstem.protocol.errors import ErrorCode

ACKS_ALL: Final = -1
_LEADERS_SINCE: Final = 10


class WaitingProduce:
    """The answer of one request in the making."""

    __slots__ = ("_acks", "_ctx", "_timeout_ms", "_timer", "_waiting", "response")

    def __init__(self, ctx: RequestContext, acks: int, timeout_ms: int) -> None:
        self._ctx = ctx
        self._acks = acks
        self._timeout_ms = timeout_ms
        self._timer: TimerHandle | None = None
        # By partition, in the order of their offsets: a request may name a partition twice.
        self._waiting: dict[Partition, list[PartitionProduceResponse]] = {}
        self.response = ProduceResponse()

    def wait_for(self, partition: Partition, last_offset: int, response: PartitionProduceResponse) -> None:
        """The batch that ends there is not committed yet; its part of the answer says so if it never is."""
        self._waiting.setdefault(partition, []).append(response)
        partition.add_ack_waiter(last_offset, self._acks, self)

    def fail(self, partition: Partition, response: PartitionProduceResponse, error: ErrorCode) -> None:
        """Say why a batch that was appended is not committed."""
        response.error_code = error
        if error != ErrorCode.REQUEST_TIMED_OUT:  # then it is in the log all the same, and where is told
            response.error_message = error.message
            response.base_offset = -1
            self.name_leader(response, partition.topic, partition.topic_id)

    def name_leader(self, response: PartitionProduceResponse, topic: str, topic_id: bytes) -> None:
        """Tell the client of an error where the partition is led, if it reads that."""
        if self._ctx.version < _LEADERS_SINCE or response.error_code not in NAMES_LEADER:
            return
        leader = current_leader(self._ctx, topic, topic_id, response.index)
        if leader is None:
            return
        response.current_leader = LeaderIdAndEpoch(leader.leader_id, leader.leader_epoch)
        if leader.endpoint is not None:
            node = NodeEndpoint(leader.leader_id, leader.endpoint.host, leader.endpoint.port, leader.rack)
            if node not in self.response.node_endpoints:
                self.response.node_endpoints.append(node)

    def park(self) -> bool:
        """All is appended: answer later, unless there is nothing to wait for (any more)."""
        if not self._waiting:
            return False
        ctx = self._ctx
        self._timer = ctx.broker.loop.call_later(max(0, self._timeout_ms) / 1000, self._expire)
        ctx.connection.waiter = self
        return True

    def acknowledged(self, partition: Partition, error: ErrorCode) -> None:
        """One of the batches is done, well or not."""
        responses = self._waiting[partition]
        response = responses.pop(0)
        if not responses:
            del self._waiting[partition]
        if error != ErrorCode.NONE:
            self.fail(partition, response, error)
        if not self._waiting and self._timer is not None:  # else some are not even appended
            self._timer.cancel()
            self._ctx.reply(self.response)

    def _expire(self) -> None:
        for partition, responses in self._waiting.items():
            for response in responses:
                self.fail(partition, response, ErrorCode.REQUEST_TIMED_OUT)
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
