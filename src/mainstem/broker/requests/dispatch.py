"""From a frame to its handler and back: header, decoder, handler, encoder, framing.

The table of (API, version) fills on first use, because compiling every codec at start would cost more
than the whole start-up. A request that cannot be parsed costs its sender the connection, and nobody else
anything.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from importlib import import_module
from struct import Struct
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final

from mainstem.broker.apis import MODULES, Api
from mainstem.broker.errors import CloseConnection
from mainstem.broker.network.connection import CLOSE, PARKED, Close, Connection, FrameHandler, Parked, Reply
from mainstem.broker.network.output import Chunk
from mainstem.broker.requests.context import EncodedBody, RequestContext
from mainstem.broker.requests.fast_path import FastPath, Route
from mainstem.logs import about
from mainstem.protocol import codec, registry
from mainstem.protocol.errors import KafkaError, ProtocolError
from mainstem.protocol.headers import decode_request_header, encode_response_header
from mainstem.storage.files.file_range import FileRange

if TYPE_CHECKING:
    from mainstem.broker.forwarding.forwarder import Forwarder
    from mainstem.broker.monitoring.meters import Meters
    from mainstem.broker.shared_server import SharedServer

logger = logging.getLogger(__name__)

_FIXED_HEADER: Final = Struct(">hhi")
_SIZE: Final = Struct(">i")
_API_VERSIONS: Final = 18

Handler = Callable[[RequestContext, Any], Any]
# The response that says one error of everything that a request asks for.
Refuse = Callable[[Any, KafkaError], Any]


class ApiVersion:
    """One API in one version: everything needed to serve a request of it."""

    __slots__ = (
        "declared",
        "decode",
        "encode",
        "forwarded",
        "handler",
        "key",
        "name",
        "refuse",
        "route",
        "version",
    )

    def __init__(self, key: int, version: int) -> None:
        module: Any = import_module(f"mainstem.broker.apis.{MODULES[key]}")
        self.key = key
        self.version = version
        self.name = registry.API_KEYS[key].name
        self.declared: Api = module.API
        self.forwarded = self.declared.forwarded
        self.handler: Handler = module.handle
        self.route: type[Route] | None = getattr(module, "ROUTE", None)  # the short way that it may take
        self.refuse: Refuse = getattr(module, "refuse", self._refuse)
        self.decode = codec.decoder(registry.request_class(key), version)
        self.encode = codec.encoder(registry.response_class(key), version)

    def _refuse(self, _request: Any, error: KafkaError) -> Any:
        """That of an API whose responses have an error for the whole of it."""
        response = registry.response_class(self.key)(error_code=error.code)
        if hasattr(response, "error_message"):
            response.error_message = error.message or error.code.message
        return response

    def frame(self, ctx: RequestContext, response: Any) -> Reply:
        """The response as it goes out: size, header, body; bytes where it holds no file range."""
        if type(response) is EncodedBody:
            chunks: list[Any] = response.chunks
        else:
            throttle_ms = ctx.server.throttle.time_ms(ctx.connection, ctx.client_id)
            if throttle_ms:
                response.throttle_time_ms = throttle_ms
                ctx.connection.mute(throttle_ms)
            chunks = self.encode(response)
        header = encode_response_header(self.key, self.version, ctx.correlation_id)
        size = len(header)
        plain = True
        for chunk in chunks:
            if type(chunk) is FileRange:
                size += chunk.length
                plain = False
            else:
                size += len(chunk)
        if plain:
            return _SIZE.pack(size) + header + b"".join(chunks)
        return _merged([_SIZE.pack(size), header, *chunks])


def _merged(chunks: list[Any]) -> list[Chunk]:
    """Join neighbouring byte chunks, so that a response of many partitions is not a system call for each."""
    merged: list[Chunk] = []
    run: list[bytes] = []
    for chunk in chunks:
        if type(chunk) is FileRange:
            if run:
                merged.append(b"".join(run))
                run = []
            merged.append(chunk)
        else:
            run.append(chunk)
    if run:
        merged.append(b"".join(run))
    return merged


class Dispatcher:
    """Answers complete frames on behalf of a node."""

    def __init__(self, server: "SharedServer", meters: "Meters | None" = None) -> None:
        self._server = server
        self.meters = meters
        self._fast_path = FastPath(server)
        self._forwarder: Forwarder | None = None  # until something is forwarded
        self.handle_frame: FrameHandler = self._handle_frame
        if meters is not None:
            self.handle_frame = meters.around(self._fast_path.try_answer, self._answer_frame)
        self._apis: dict[int, ApiVersion] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    def _handle_frame(
        self, connection: Connection, frame: memoryview, start: int, end: int
    ) -> Reply | Parked | Close:
        answer = self._fast_path.try_answer(connection, frame, start, end)
        return answer if answer is not None else self._answer_frame(connection, frame, start, end)

    def _answer_frame(
        self, connection: Connection, frame: memoryview, start: int, end: int
    ) -> Reply | Parked | Close:
        key, version, correlation_id = _FIXED_HEADER.unpack_from(frame, start)
        try:
            api = self._apis.get(key << 16 | version & 0xFFFF)
            if api is None:
                api = self._resolve(key, version)
                if api is None:
                    return self._unsupported_api_versions(connection, correlation_id)
            if not api.declared.is_served_on(connection.listener):
                raise CloseConnection(f"{api.name} is not served on the listener {connection.listener.name}")
            header, pos = decode_request_header(frame, start, end)
            request, _ = api.decode(frame, pos, end)
        except (ProtocolError, CloseConnection) as error:
            _log_closing(connection, error)
            return CLOSE
        except Exception:
            return _frame_failed(connection, key)
        if api.forwarded and self._is_decided_elsewhere(connection):
            return self._forward(connection, api, correlation_id, header.client_id, frame[start:end], request)
        ctx = RequestContext(self._server, connection, api, correlation_id, header.client_id)
        try:
            response: Any = api.handler(ctx, request)
            if api.route is not None:
                self._fast_path.learn(ctx, api.route, request, response, frame, start, end)
            return self._reply(ctx, api, response)
        except CloseConnection as error:
            _log_closing(connection, error)
        except Exception:
            _log_failure(connection, api)
        return CLOSE

    def _reply(self, ctx: RequestContext, api: ApiVersion, response: Any) -> Reply | Parked:
        if isinstance(response, Parked):
            return response
        if response is None:
            return b""
        if type(response) is CoroutineType:
            self._spawn(ctx, api, response)
            return PARKED
        return api.frame(ctx, response)

    # ---- what another node decides

    def _is_decided_elsewhere(self, connection: Connection) -> bool:
        """Whoever asks a controller itself is told when it is the wrong one."""
        return not connection.listener.is_controller and not self._server.is_active_controller

    def _forward(
        self,
        connection: Connection,
        api: ApiVersion,
        correlation_id: int,
        client_id: str | None,
        frame: memoryview,
        request: Any,
    ) -> Parked:
        from mainstem.broker.forwarding.forwarder import Forwarder, ForwardingContext  # only in a cluster

        if self._forwarder is None:
            self._forwarder = Forwarder(self._server)
        ctx = ForwardingContext(self._server, connection, api, correlation_id, client_id)
        # The connection reads on into the frame's memory.
        self._spawn(ctx, api, self._forwarder.forward(ctx, bytes(frame), request))
        return PARKED

    def close(self) -> None:
        """Cancel the requests that are still being worked on; their connections are closed."""
        for task in self._tasks:
            task.cancel()
        if self._forwarder is not None:
            self._forwarder.close()

    def _spawn(self, ctx: RequestContext, api: ApiVersion, response: Coroutine[Any, Any, Any]) -> None:
        # The task is the handler's own coroutine: one around it, cancelled before it began, would leave it
        # unawaited.
        task = self._server.loop.create_task(response)
        self._tasks.add(task)
        task.add_done_callback(partial(self._answer_spawned, ctx, api))

    def _answer_spawned(self, ctx: RequestContext, api: ApiVersion, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        try:
            ctx.reply(task.result())
        except CloseConnection as error:
            _log_closing(ctx.connection, error)
            ctx.connection.close()
        except Exception:
            _log_failure(ctx.connection, api)
            ctx.connection.close()

    def _resolve(self, key: int, version: int) -> ApiVersion | None:
        """Load the API on its first use. None: ApiVersions in a version from the future, which has an
        answer.
        """
        info = registry.API_KEYS.get(key)
        if key not in MODULES or info is None:
            raise CloseConnection(f"api key {key} is not served here")
        if not info.min_version <= version <= info.max_version:
            if key == _API_VERSIONS:
                return None
            raise CloseConnection(f"{info.name} version {version} is not served here")
        api = ApiVersion(key, version)
        if self.meters is not None:
            from mainstem.broker.monitoring.error_counts import counting

            api.encode = counting(api.encode, registry.response_class(key), self.meters.by_key[key])
        self._apis[key << 16 | version] = api
        return api

    def _unsupported_api_versions(self, connection: Connection, correlation_id: int) -> Reply:
        from mainstem.broker.apis.k18_api_versions import unsupported_version

        api = ApiVersion(_API_VERSIONS, 0)
        ctx = RequestContext(self._server, connection, api, correlation_id, None)
        return api.frame(ctx, unsupported_version())


def _log_closing(connection: Connection, error: Exception) -> None:
    host = connection.client_host
    logger.warning("closing %s: %s", host, error, extra=about(client=host))


def _frame_failed(connection: Connection, key: int) -> Close:
    host = connection.client_host
    logger.exception("a frame of api key %d failed; closing %s", key, host, extra=about(client=host))
    return CLOSE


def _log_failure(connection: Connection, api: ApiVersion) -> None:
    host = connection.client_host
    logger.exception(
        "%s v%d failed; closing %s", api.name, api.version, host, extra=about(client=host, api=api.name)
    )
