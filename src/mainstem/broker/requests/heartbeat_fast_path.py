"""The short way for a member whose group is at rest: it sends the same heartbeat again and again.

Such requests differ in nothing but the correlation id, and so do the answers, as long as the coordinator
finds that nothing is new on either side.
"""

from abc import abstractmethod
from struct import Struct
from typing import Any, ClassVar, Final, Self

from mainstem.broker.network.connection import Connection
from mainstem.broker.requests.context import RequestContext
from mainstem.broker.requests.fast_path import Route, Template
from mainstem.coordinator.group.coordinator import GroupCoordinator
from mainstem.coordinator.group.state import Client
from mainstem.protocol.apis.k12_heartbeat import HeartbeatRequest, HeartbeatResponse
from mainstem.protocol.apis.k68_consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

_SIZE_AND_CORRELATION: Final = Struct(">ii")


class HeartbeatRoute(Route):
    """Tells a member's coordinator that it is alive, and the member that all is well."""

    __slots__ = ("_answer", "_client", "_groups", "_partition", "_request")
    KEY: ClassVar[int]

    def __init__(self, ctx: RequestContext, request: Any, response: Any) -> None:
        template = Template(self.KEY, ctx.version, response)
        super().__init__(ctx, template.throttle_at)
        self._answer = template.answer
        self._request = request
        self._client = Client(ctx.client_id or "", "/" + ctx.connection.client_host)
        self._groups = ctx.broker.groups
        self._partition = self._groups.partition_of(request.group_id)

    @classmethod
    def prefix_length(
        cls, ctx: RequestContext, request: Any, response: Any, frame: memoryview, start: int, end: int
    ) -> int:
        """The whole frame."""
        return end - start if cls.all_is_well(request, response) else 0

    @classmethod
    def learn(cls, ctx: RequestContext, request: Any, response: Any, rest: memoryview) -> Self:
        return cls(ctx, request, response)

    def try_answer(
        self, connection: Connection, correlation_id: int, frame: memoryview, pos: int, end: int
    ) -> bytes | None:
        if pos != end or not self._groups.shell.try_at_once(self._partition, self._beat):
            return None
        answer = self._answer
        return _SIZE_AND_CORRELATION.pack(len(answer) + 4, correlation_id) + answer

    @staticmethod
    @abstractmethod
    def all_is_well(request: Any, response: Any) -> bool:
        """Whether that is all that the answer says."""

    @abstractmethod
    def _beat(self, machine: GroupCoordinator, now_ms: int) -> bool: ...


class ClassicHeartbeatRoute(HeartbeatRoute):
    """That of a member of a classic group."""

    __slots__ = ()
    KEY = 12

    @staticmethod
    def all_is_well(request: HeartbeatRequest, response: Any) -> bool:
        return isinstance(response, HeartbeatResponse) and not response.error_code

    def _beat(self, machine: GroupCoordinator, now_ms: int) -> bool:
        return machine.classic.try_heartbeat(self._request, now_ms)


class ConsumerHeartbeatRoute(HeartbeatRoute):
    """That of a member of a consumer group."""

    __slots__ = ()
    KEY = 68

    @staticmethod
    def all_is_well(request: ConsumerGroupHeartbeatRequest, response: Any) -> bool:
        return (
            isinstance(response, ConsumerGroupHeartbeatResponse)
            and not response.error_code
            and response.assignment is None
            and response.member_epoch == request.member_epoch
        )

    def _beat(self, machine: GroupCoordinator, now_ms: int) -> bool:
        return machine.consumer.try_heartbeat(self._request, self._client, now_ms)
