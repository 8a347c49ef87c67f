"""The short way for a consumer that commits the same partition again and again.

Such requests differ only in correlation id, offset and leader epoch.
"""

from struct import Struct
from typing import Any, Final, Self

from mainstem.broker.network.connection import PARKED, Connection, Parked
from mainstem.broker.requests.context import RequestContext
from mainstem.broker.requests.fast_path import Route, Template
from mainstem.coordinator.effects import Token
from mainstem.coordinator.group.coordinator import GroupCoordinator
from mainstem.coordinator.group.offsets import refused_commit
from mainstem.coordinator.group.single_commit import SingleCommit
from mainstem.protocol import codec
from mainstem.protocol.apis.k08_offset_commit import OffsetCommitRequest
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.headers import is_flexible

_KEY: Final = 8
_FIRST_VERSION: Final = 6  # from here on there is a leader epoch behind the offset
_OFFSET_AND_EPOCH: Final = Struct(">qi")
_SIZE_AND_CORRELATION: Final = Struct(">ii")


class CommitRoute(Route):
    """Hands the commits of one group and partition to its coordinator."""

    __slots__ = ("_after", "_groups", "_request", "_version", "answer", "commit", "partition")

    def __init__(self, ctx: RequestContext, request: OffsetCommitRequest, after: bytes) -> None:
        self._request = request
        self._version = ctx.version
        template = self._template(ErrorCode.NONE)
        super().__init__(ctx, template.throttle_at)
        self.answer = template.answer
        self._after = after
        self._groups = ctx.broker.groups
        self.commit = SingleCommit(request, ctx.version)
        self.partition = self._groups.partition_of(request.group_id)

    def _template(self, error: ErrorCode) -> Template:
        return Template(_KEY, self._version, refused_commit(self._request, error))

    @classmethod
    def prefix_length(
        cls,
        ctx: RequestContext,
        request: OffsetCommitRequest,
        response: Any,
        frame: memoryview,
        start: int,
        end: int,
    ) -> int:
        """Up to the offset."""
        if response is not PARKED or ctx.version < _FIRST_VERSION:
            return 0
        if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
            return 0
        if request.topics[0].partitions[0].committed_metadata:
            return 0  # its length would have to be checked each time
        body = codec.encode(request, ctx.version)
        if bytes(frame[end - len(body) : end]) != body:
            return 0  # the handler has refused a part of it, or there are tagged fields
        after_length = 4 if is_flexible(_KEY, ctx.version) else 2
        return end - start - after_length - _OFFSET_AND_EPOCH.size

    @classmethod
    def learn(
        cls, ctx: RequestContext, request: OffsetCommitRequest, response: Any, rest: memoryview
    ) -> Self:
        return cls(ctx, request, bytes(rest[_OFFSET_AND_EPOCH.size :]))

    def try_answer(
        self, connection: Connection, correlation_id: int, frame: memoryview, pos: int, end: int
    ) -> Parked | None:
        if bytes(frame[pos + _OFFSET_AND_EPOCH.size : end]) != self._after:
            return None
        offset, epoch = _OFFSET_AND_EPOCH.unpack_from(frame, pos)
        commit = _Commit(connection, self, correlation_id, offset, epoch)
        self._groups.shell.submit(self.partition, commit, commit.run)
        if not commit.accepted:
            return None
        commit.parked = True
        return PARKED

    def reply(self, connection: Connection, correlation_id: int, answer: bytes) -> None:
        """Answer a commit that was parked; `answer` is what stands behind the correlation id."""
        framed = _SIZE_AND_CORRELATION.pack(len(answer) + 4, correlation_id) + answer
        connection.reply(self.throttled(connection, framed))

    def refuse(self, connection: Connection, correlation_id: int, error: ErrorCode) -> None:
        self.reply(connection, correlation_id, self._template(error).answer)


class _Commit:
    """One commit on the short way: event and token in one."""

    __slots__ = ("_connection", "_correlation_id", "_epoch", "_offset", "_route", "accepted", "parked")

    def __init__(
        self, connection: Connection, route: CommitRoute, correlation_id: int, offset: int, epoch: int
    ) -> None:
        self._connection = connection
        self._route = route
        self._correlation_id = correlation_id
        self._offset = offset
        self._epoch = epoch
        self.accepted = False
        self.parked = False

    def run(self, machine: GroupCoordinator, token: Token, now_ms: int) -> None:
        self.accepted = self._route.commit.apply(
            machine.state, machine.offsets, self._offset, self._epoch, self, self._route.answer, now_ms
        )

    def reply(self, response: Any) -> None:
        if not self._connection.closed:
            self._route.reply(self._connection, self._correlation_id, response)

    def fail(self, error: ErrorCode) -> None:
        if not self.parked:
            self.accepted = False  # the ordinary way will be told the same
        elif not self._connection.closed:
            self._route.refuse(self._connection, self._correlation_id, error)
