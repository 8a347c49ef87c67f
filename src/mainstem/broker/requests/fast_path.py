"""The short way for requests that come again and again on one connection and hardly differ.

The first of them goes the ordinary way. If the module of its API names a kind of route (`ROUTE`) and the
request can have one, the connection remembers it by how the frame begins, up to where its like differ. A
later frame that begins the same, byte for byte, skips header, decoder, handler and encoder. A route answers
nothing but ordinary successes: whatever is unusual it leaves to the ordinary way.

Only what was allowed is ever remembered, and it is forgotten when the metadata or the authorizer's rules
change, so that a yes costs nothing per request. Under a quota the answer says how long the client has to
wait, as the ordinary one does.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, Self

from mainstem.broker.network.connection import CLOSE, Close, Connection, Parked
from mainstem.broker.requests.context import RequestContext
from mainstem.logs import about
from mainstem.protocol import codec
from mainstem.protocol.headers import encode_response_header

if TYPE_CHECKING:
    from mainstem.broker.shared_server import SharedServer

logger = logging.getLogger(__name__)

_API_AND_CORRELATION: Final = Struct(">ii").unpack_from  # the key and version of an API are one number here
_THROTTLE_TIME: Final = Struct(">i")
_ROUTES_MAX: Final = 64  # of one API on one connection
_PREFIX_BYTES_MAX: Final = 1024  # what begins with more is not a usual request, and would be kept for nothing


class Template:
    """An answer behind its correlation id, and where its `throttle_time_ms` stands."""

    __slots__ = ("answer", "throttle_at")

    def __init__(self, key: int, version: int, response: Any) -> None:
        header = encode_response_header(key, version, 0)[4:]
        response.throttle_time_ms = -1  # every byte of it differs from 0
        throttled = header + codec.encode(response, version)
        response.throttle_time_ms = 0
        self.answer = header + codec.encode(response, version)
        # -1 in the old versions that do not tell.
        self.throttle_at = next(_places_that_differ(throttled, self.answer), -1)


def _places_that_differ(one: bytes, other: bytes) -> Iterator[int]:
    return (place for place, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)


class Route(ABC):
    """How requests with a certain beginning are answered. An API's kind of route is a class of this."""

    __slots__ = ("_client_id", "_throttle", "_throttle_at", "authorizer_generation", "generation")

    def __init__(self, ctx: RequestContext, throttle_at: int) -> None:
        self._throttle = ctx.server.throttle
        self._throttle_at = throttle_at
        self._client_id = ctx.client_id  # it stands at the beginning of the frame, so that all have the same
        self.generation = ctx.server.metadata_cache.generation
        self.authorizer_generation = ctx.server.authorizer.generation

    @classmethod
    @abstractmethod
    def prefix_length(
        cls, ctx: RequestContext, request: Any, response: Any, frame: memoryview, start: int, end: int
    ) -> int:
        """How far the frames of requests like this one, which was just handled, are all the same but for
        their correlation id; 0 when there is no short way for it.
        """

    @classmethod
    @abstractmethod
    def learn(cls, ctx: RequestContext, request: Any, response: Any, rest: memoryview) -> Self | None:
        """The route for a request that can have one; `rest` is its frame behind the prefix."""

    @abstractmethod
    def try_answer(
        self, connection: Connection, correlation_id: int, frame: memoryview, pos: int, end: int
    ) -> bytes | Parked | None:
        """The answer to a request whose frame goes on at `pos`, which may be behind its end; None when it
        has to go the ordinary way.
        """

    def throttled(self, connection: Connection, answer: bytes) -> bytes:
        """The answer as it goes out under a quota; the connection is muted for as long as it says."""
        throttle_ms = self._throttle.time_ms(connection, self._client_id)
        if not throttle_ms:
            return answer
        connection.mute(throttle_ms)
        if self._throttle_at < 0:
            return answer
        at = 8 + self._throttle_at  # behind size and correlation id
        return answer[:at] + _THROTTLE_TIME.pack(throttle_ms) + answer[at + _THROTTLE_TIME.size :]


class RouteTable:
    """The routes of one API in one version on one connection, by how their frames begin."""

    __slots__ = ("by_prefix", "prefix_length")

    def __init__(self, prefix_length: int) -> None:
        self.by_prefix: dict[bytes, Route] = {}
        self.prefix_length = prefix_length


class FastPath:
    """Takes the short way where a connection remembers one, and has it remember new ones."""

    def __init__(self, server: "SharedServer") -> None:
        self._server = server
        self._metadata = server.metadata_cache
        self._throttle = server.throttle

    def try_answer(
        self, connection: Connection, frame: memoryview, start: int, end: int
    ) -> bytes | Parked | Close | None:
        """The answer on the short way; None when the request has to go the ordinary one."""
        routes = connection.routes
        if routes is None:
            return None
        api, correlation_id = _API_AND_CORRELATION(frame, start)
        table = routes.get(api)
        if table is None:
            return None
        pos = start + table.prefix_length
        prefix = bytes(frame[start + 8 : pos])
        route = table.by_prefix.get(prefix)
        if route is None:
            return None
        if (
            route.generation != self._metadata.generation
            or route.authorizer_generation != self._server.authorizer.generation
        ):
            del table.by_prefix[prefix]
            return None
        try:
            answer = route.try_answer(connection, correlation_id, frame, pos, end)
        except Exception:
            host = connection.client_host
            logger.exception(
                "a frame of api key %d failed; closing %s", api >> 16, host, extra=about(client=host)
            )
            return CLOSE
        if self._throttle.active and type(answer) is bytes:
            return route.throttled(connection, answer)
        return answer

    def learn(
        self, ctx: RequestContext, kind: type[Route], request: Any, response: Any, frame: memoryview,
        start: int, end: int,
    ) -> None:  # fmt: skip
        """Have the connection remember the way of a request that the ordinary handler has let through."""
        prefix_length = kind.prefix_length(ctx, request, response, frame, start, end)
        if not 0 < prefix_length <= _PREFIX_BYTES_MAX:
            return
        api, _ = _API_AND_CORRELATION(frame, start)
        routes = ctx.connection.routes
        if routes is None:
            routes = ctx.connection.routes = {}
        table = routes.get(api)
        prefix = bytes(frame[start + 8 : start + prefix_length])
        if table is not None and prefix in table.by_prefix:
            return  # the request was an unusual one
        route = kind.learn(ctx, request, response, frame[start + prefix_length : end])
        if route is None:
            return
        if table is None or table.prefix_length != prefix_length or len(table.by_prefix) >= _ROUTES_MAX:
            table = routes[api] = RouteTable(prefix_length)
        table.by_prefix[prefix] = route
