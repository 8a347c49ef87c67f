"""A connection to one broker: each API in the newest version that both sides know, answers in their order.

Several requests may be under way (`send`, then as many `receive`); `call` is the two in one. Whatever goes
wrong with the connection closes it, because nobody could tell which answer comes next.
"""

from __future__ import annotations

import socket
import time
from collections import deque
from typing import Any, cast

import mainstem
from mainstem.protocol import codec, registry
from mainstem.protocol.apis.k18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from mainstem.protocol.errors import ErrorCode, ProtocolError
from mainstem.protocol.headers import decode_response_header, encode_request_header
from mainstem.protocol.primitives import Buffer
from mainstem.wire.errors import ConnectionLost, NotServed, SecurityError, WireError, check
from mainstem.wire.options import ClientOptions
from mainstem.wire.socket_io import FrameSocket, ReceiveBuffer

_API_VERSIONS_KEY = ApiVersionsRequest.SCHEMA.api_key
# The first version with the finalized features; every broker since Kafka 2.4 has it.
_API_VERSIONS_VERSION = 3
# A broker closes a connection whose authentication has run out; a new one is made before that.
_LIFETIME_USED = 0.85


class Connection:
    """One broker. Not for several threads at a time."""

    def __init__(self, host: str, port: int, options: ClientOptions) -> None:
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._options = options
        self._correlation_id = 0
        self._expected: deque[tuple[int, int, int]] = deque()
        self._served: dict[int, tuple[int, int]] = {}
        self.features: dict[str, int] = {}
        self.closed = False
        self._expires_at = float("inf")
        # True between what a broker tells to everybody and the first answer that it gives to us.
        self._is_on_trial = False
        self._frames = self._dial(host, port)
        try:
            self._negotiate()
            self._expires_at = self._authenticate()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self.closed = True
        self._expected.clear()
        self._frames.close()

    def fileno(self) -> int:
        return self._frames.fileno()

    @property
    def requests_under_way(self) -> int:
        return len(self._expected)

    @property
    def usable(self) -> bool:
        """Whether a request may be sent: it is open, and its authentication has not nearly run out."""
        return not self.closed and time.monotonic() < self._expires_at

    def version_of(self, api_key: int) -> int | None:
        """The version in which this API is spoken here, or None where the broker does not serve it."""
        info = registry.API_KEYS[api_key]
        lowest, highest = self._served.get(api_key, (0, -1))
        version = min(info.max_version, highest)
        return version if version >= max(info.min_version, lowest) else None

    def call(
        self,
        request: Any,
        *,
        version_max: int | None = None,
        timeout_s: float | None = None,
        buffer: ReceiveBuffer | None = None,
    ) -> Any:
        """Send a request and wait for its response."""
        self.send(request, version_max=version_max)
        return self.receive(timeout_s=timeout_s, buffer=buffer)

    def send(self, request: Any, *, version_max: int | None = None, answered: bool = True) -> int:
        """Send a request, in `version_max` at most; returns the version that it was sent in."""
        api_key = request.SCHEMA.api_key
        version = self.version_of(api_key)
        if version is not None and version_max is not None:
            version = min(version, version_max)
        if version is None or version < self._served[api_key][0]:
            raise NotServed(self.address, registry.API_KEYS[api_key].name)
        self._send(request, version, answered)
        return version

    def receive(self, *, timeout_s: float | None = None, buffer: ReceiveBuffer | None = None) -> Any:
        """The response to the oldest request that has none yet.

        Records in it are views of `buffer`, valid until the buffer is used again; without one they have
        memory of their own.
        """
        if self.closed:
            raise ConnectionLost(self.address, "the connection is closed")
        api_key, version, _ = self._expected[0]
        frame, position = self._receive(buffer or ReceiveBuffer(), timeout_s)
        return self._decode(registry.response_class(api_key), version, frame, position)

    def _dial(self, host: str, port: int) -> FrameSocket:
        timeout_s = self._options.connect_timeout_ms / 1000
        try:
            sock = socket.create_connection((host, port), timeout_s)
        except (OSError, OverflowError) as error:
            raise ConnectionLost(self.address, _reason(error)) from None
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._options.uses_tls:
            from mainstem.wire.tls import secure  # not at import: few connections need OpenSSL

            try:
                sock = secure(sock, host, self.address, self._options.tls)
            except BaseException as error:
                sock.close()
                if isinstance(error, OSError):
                    raise ConnectionLost(self.address, _reason(error)) from None
                raise
        return FrameSocket(sock, self._options.answer_bytes_max)

    def _negotiate(self) -> None:
        """Learn what the broker serves. One that is too old for our question answers it in version 0."""
        request = ApiVersionsRequest("mainstem", mainstem.__version__)
        self._send(request, _API_VERSIONS_VERSION, True)
        frame, position = self._receive(ReceiveBuffer(), None)
        if frame[position : position + 2] == ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big"):
            self._send(request, 0, True)
            frame, position = self._receive(ReceiveBuffer(), None)
            answer = self._decode(ApiVersionsResponse, 0, frame, position)
        else:
            answer = self._decode(ApiVersionsResponse, _API_VERSIONS_VERSION, frame, position)
        check(answer.error_code, f"ask {self.address} what it serves")
        self._served = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
        self.features = {feature.name: feature.max_version_level for feature in answer.finalized_features}
        self._is_on_trial = True

    def _authenticate(self) -> float:
        """Prove who we are; when that has to be done again, which takes a new connection."""
        if not self._options.uses_sasl:
            return float("inf")
        from mainstem.wire.sasl import authenticate

        if self._options.sasl is None:
            raise SecurityError(f"{self._options.security_protocol} needs a user and a password")
        lifetime_s = authenticate(self, self._options.sasl)
        if lifetime_s is None:
            return float("inf")
        return time.monotonic() + lifetime_s * _LIFETIME_USED

    def _send(self, request: Any, version: int, answered: bool) -> None:
        if self.closed:
            raise ConnectionLost(self.address, "the connection is closed")
        api_key = request.SCHEMA.api_key
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        header = encode_request_header(api_key, version, self._correlation_id, self._options.client_id)
        chunks = cast("list[Buffer]", codec.encoder(type(request), version)(request))
        try:
            self._frames.send([header, *chunks], self._options.request_timeout_ms / 1000)
        except OSError as error:
            self.close()
            raise self._failure(error) from None
        if answered:
            self._expected.append((api_key, version, self._correlation_id))

    def _receive(self, buffer: ReceiveBuffer, timeout_s: float | None) -> tuple[memoryview, int]:
        """The next frame, and where its body starts."""
        api_key, version, correlation_id = self._expected.popleft()
        if timeout_s is None:
            timeout_s = self._options.request_timeout_ms / 1000
        try:
            frame = self._frames.receive(buffer, timeout_s)
            answered, position = decode_response_header(api_key, version, frame, 0, len(frame))
            if answered != correlation_id:
                raise ProtocolError("an answer that was not asked for")
        except TimeoutError:
            self.close()
            problem = f"it did not answer {registry.API_KEYS[api_key].name} in {timeout_s:g} s"
            raise ConnectionLost(self.address, problem) from None
        except (OSError, ProtocolError) as error:
            self.close()
            raise self._failure(error) from None
        self._is_on_trial = False
        return frame, position

    def _failure(self, error: OSError | ProtocolError) -> WireError:
        if self._options.uses_tls and isinstance(error, OSError):
            from mainstem.wire.tls import refusal

            if refused := refusal(self.address, error):
                return refused
        problem = _reason(error)
        if self._is_on_trial and not self._options.uses_sasl:
            problem += "; does this port want SASL (security.protocol)?"
        return ConnectionLost(self.address, problem)

    def _decode(self, cls: type[Any], version: int, frame: memoryview, position: int) -> Any:
        try:
            message, end = codec.decoder(cls, version)(frame, position, len(frame))
            if end != len(frame):
                raise ProtocolError(f"{cls.__name__} v{version} is followed by {len(frame) - end} bytes")
        except ProtocolError as error:
            self.close()
            raise ConnectionLost(self.address, f"an answer that cannot be read: {error}") from None
        return message


def _reason(error: Exception) -> str:
    if strerror := getattr(error, "strerror", None):
        return str(strerror).lower()
    return str(error) or type(error).__name__
