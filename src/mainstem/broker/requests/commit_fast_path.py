"""The short way for a consumer that commits the same partition again and again.

Such requests differ only in correlation id, offset and leader epoch. The first one goes the ordinary way;
what its frame looks like around the offset, and the answer to it, is remembered on the connection. A later
frame that matches byte for byte skips header, decoder, handler and encoder. Whatever is not an ordinary
success goes the ordinary way.
"""

from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from mainstem.broker.network.connection import Connection
from mainstem.coordinator.effects import Token
from mainstem.coordinator.group.coordinator import GroupCoordinator
from mainstem.coordinator.group.offsets import refused_commit
from mainstem.coordinator.group.single_commit import SingleCommit
from mainstem.protocol import codec
from mainstem.protocol.apis.k08_offset_commit import OffsetCommitRequest
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.headers import encode_response_header, is_flexible

if TYPE_CHECKING:
    from mainstem.broker.node import Node

_KEY: Final = 8
_FIRST_VERSION: Final = 6  # from here on there is a leader epoch behind the offset
_OFFSET_AND_EPOCH: Final = Struct(">qi")
_SIZE_AND_CORRELATION: Final = Struct(">ii")
_ROUTES_PER_CONNECTION_MAX: Final = 64
_FRAME_BYTES_MAX: Final = 1024


class CommitRoute:
    """A request of a known shape."""

    __slots__ = ("after", "answer", "commit", "generation", "partition", "request", "version")

    def __init__(
        self,
        node: "Node",
        request: OffsetCommitRequest,
        version: int,
        after: bytes,
    ) -> None:
        self.request = request
        self.version = version
        self.after = after
        self.commit = SingleCommit(request, version)
        self.partition = node.groups.partition_of(request.group_id)
        self.generation = node.generation
        self.answer = self.encode(ErrorCode.NONE)

    def encode(self, error: ErrorCode) -> bytes:
        """The answer behind its correlation id."""
        body = codec.encode(refused_commit(self.request, error), self.version)
        return encode_response_header(_KEY, self.version, 0)[4:] + body


class CommitRoutes:
    """Those of one connection; `offset_at` is where the offset begins in their frames."""

    __slots__ = ("_node", "by_prefix", "offset_at")

    def __init__(self, node: "Node") -> None:
        self._node = node
        self.by_prefix: dict[bytes, CommitRoute] = {}
        self.offset_at = 0

    def try_commit(
        self,
        connection: Connection,
        version: int,
        correlation_id: int,
        frame: memoryview,
        start: int,
        end: int,
    ) -> bool:
        """Whether the commit is under way; if not, it has to go the ordinary way."""
        node = self._node
        pos = start + self.offset_at
        route = self.by_prefix.get(bytes(frame[start + 8 : pos]))
        if (
            route is None
            or route.generation != node.generation
            or route.version != version
            or bytes(frame[pos + _OFFSET_AND_EPOCH.size : end]) != route.after
            or node.throttle.active
        ):
            return False
        offset, epoch = _OFFSET_AND_EPOCH.unpack_from(frame, pos)
        commit = _Commit(connection, route, correlation_id, offset, epoch)
        node.groups.shell.submit(route.partition, commit, commit.run)
        if commit.accepted:
            commit.parked = True
        return commit.accepted


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
        connection = self._connection
        if not connection.closed:
            connection.reply(_SIZE_AND_CORRELATION.pack(len(response) + 4, self._correlation_id) + response)

    def fail(self, error: ErrorCode) -> None:
        if self.parked:
            self.reply(self._route.encode(error))
        else:
            self.accepted = False  # the ordinary way will be told the same


def learn_commit(
    node: "Node",
    connection: Connection,
    version: int,
    request: OffsetCommitRequest,
    frame: memoryview,
    start: int,
    end: int,
) -> None:
    """Remember a request that the ordinary handler let through, if another one could take the short way."""
    if version < _FIRST_VERSION or end - start > _FRAME_BYTES_MAX:
        return
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        return
    part = request.topics[0].partitions[0]
    if part.committed_metadata:
        return  # its length would have to be checked each time
    body = codec.encode(request, version)
    if bytes(frame[end - len(body) : end]) != body:
        return  # the handler has refused a part of it, or there are tagged fields
    after = body[-4:] if is_flexible(_KEY, version) else body[-2:]
    offset_at = end - start - len(after) - _OFFSET_AND_EPOCH.size
    routes = connection.commit_routes
    if routes is None:
        routes = connection.commit_routes = CommitRoutes(node)
    if routes.offset_at != offset_at or len(routes.by_prefix) >= _ROUTES_PER_CONNECTION_MAX:
        routes.by_prefix.clear()
        routes.offset_at = offset_at
    prefix = bytes(frame[start + 8 : start + offset_at])
    routes.by_prefix[prefix] = CommitRoute(node, request, version, after)
