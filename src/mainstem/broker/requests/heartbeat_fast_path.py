"""The short way for a member whose group is at rest: it sends the same heartbeat again and again.

Such requests differ in nothing but the correlation id, and so do the answers. The first one goes the ordinary
way; its frame and its answer are remembered on the connection. A later frame that is the same byte for byte
skips header, decoder, handler and encoder, if its coordinator finds that nothing is new on either side.
"""

from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from mainstem.broker.requests.context import RequestContext
from mainstem.coordinator.group.coordinator import GroupCoordinator
from mainstem.coordinator.group.state import Client
from mainstem.protocol.apis.k12_heartbeat import HeartbeatRequest
from mainstem.protocol.apis.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

if TYPE_CHECKING:
    from mainstem.broker.node import Node

_SIZE_AND_CORRELATION: Final = Struct(">ii")
_FRAME_BYTES_MAX: Final = 1024


class HeartbeatRoute:
    """The last heartbeat that came through a connection and was answered with all being well."""

    __slots__ = ("_answer", "_client", "_frame", "_generation", "_node", "_partition", "_request")

    def __init__(
        self,
        node: "Node",
        client: Client | None,
        request: HeartbeatRequest | ConsumerGroupHeartbeatRequest,
        known: bytes,
        answer: bytes,
    ) -> None:
        self._node = node
        self._client = client
        self._request: Any = request
        self._frame = known
        self._answer = answer
        self._partition = node.groups.partition_of(request.group_id)
        self._generation = node.generation

    def try_beat(self, correlation_id: int, frame: memoryview, start: int, end: int) -> bytes | None:
        """The answer; None when the request has to go the ordinary way."""
        node = self._node
        if (
            self._generation == node.generation
            and _without_correlation_id(frame, start, end) == self._frame
            and not node.throttle.active
            and node.groups.shell.try_at_once(self._partition, self._beat)
        ):
            answer = self._answer
            return _SIZE_AND_CORRELATION.pack(len(answer) + 4, correlation_id) + answer
        return None

    def _beat(self, machine: GroupCoordinator, now_ms: int) -> bool:
        if self._client is None:
            return machine.classic.try_heartbeat(self._request, now_ms)
        return machine.consumer.try_heartbeat(self._request, self._client, now_ms)


def learn_heartbeat(
    ctx: RequestContext,
    request: HeartbeatRequest | ConsumerGroupHeartbeatRequest,
    response: Any,
    reply: bytes,
    frame: memoryview,
    start: int,
    end: int,
) -> None:
    """Remember a heartbeat that the ordinary handler let through."""
    if response.error_code or response.throttle_time_ms or end - start > _FRAME_BYTES_MAX:
        return
    client: Client | None = None
    if isinstance(request, ConsumerGroupHeartbeatRequest):
        if response.assignment is not None or response.member_epoch != request.member_epoch:
            return
        client = Client(ctx.client_id or "", "/" + ctx.connection.client_host)
    known = _without_correlation_id(frame, start, end)
    ctx.connection.heartbeat = HeartbeatRoute(ctx.node, client, request, known, reply[8:])


def _without_correlation_id(frame: memoryview, start: int, end: int) -> bytes:
    return bytes(frame[start : start + 4]) + frame[start + 8 : end]
