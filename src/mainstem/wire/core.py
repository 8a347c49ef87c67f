"""A client's side of one connection to a broker, as a state machine: what happens and the time go in, what
is to be done comes out. It does no I/O, reads no clock and makes nothing up.

The shell around it (blocking in `connection.py`, on the event loop in the broker's `network/peers.py`) owns
the socket. It tells the core that it is connected, how many bytes came, that the connection was lost or that
time has passed, and carries the effects out in their order: send bytes, hand over an answer, close.

A connection first asks what the broker serves (ApiVersions), then proves who it is if that is wanted, then is
`Ready`. Requests may be under way together; their answers come in their order. An answer to anything else
than the oldest of them ends the connection, because nobody could tell which one comes next, and so does
every other byte that is no answer.
"""

from __future__ import annotations

import math
from collections import deque
from enum import Enum, auto
from typing import Any, NamedTuple

import mainstem
from mainstem.protocol import codec, registry
from mainstem.protocol.apis.k17_sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from mainstem.protocol.apis.k18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from mainstem.protocol.apis.k36_sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from mainstem.protocol.errors import ErrorCode, ProtocolError
from mainstem.protocol.headers import decode_response_header, encode_request_header
from mainstem.wire.errors import NO_ANSWER, ConnectionLost, NotServed, SecurityError, WireError, check
from mainstem.wire.frames import FrameReader, framed
from mainstem.wire.mechanisms import Mechanism, refused_authentication, refused_handshake
from mainstem.wire.options import ClientOptions

# The first version with the finalized features; every broker since Kafka 2.4 has it.
_API_VERSIONS_VERSION = 3
# A broker closes a connection whose authentication has run out; a new one is made before that.
_LIFETIME_USED = 0.85
_CORRELATION_ID_MAX = 2**31 - 1


class Send(NamedTuple):
    """These bytes are to be sent."""

    data: bytes


class Ready(NamedTuple):
    """The broker is known and knows us: requests may be sent."""


class Answer(NamedTuple):
    """The answer to the oldest request that had none. Records in it are views of the receive buffer."""

    message: Any


class Close(NamedTuple):
    """The connection is over, and with it every request under way. The socket is to be closed."""

    error: WireError


Effect = Send | Ready | Answer | Close


class _Phase(Enum):
    NEGOTIATING = auto()
    AUTHENTICATING = auto()
    READY = auto()
    CLOSED = auto()


class _Request:
    """A request that has no answer yet."""

    __slots__ = ("api_key", "correlation_id", "deadline", "timeout_s", "version")

    def __init__(self, api_key: int, version: int, correlation_id: int) -> None:
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id

    def expect(self, now: float, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self.deadline = now + timeout_s

    @property
    def api_name(self) -> str:
        return registry.API_KEYS[self.api_key].name


class ConnectionCore:
    """`now` and every deadline are seconds of one clock, the shell's."""

    def __init__(self, address: str, options: ClientOptions, mechanism: Mechanism | None) -> None:
        self.address = address
        self.served: dict[int, tuple[int, int]] = {}
        self.features: dict[str, int] = {}
        # When the authentication has nearly run out.
        self.expires_at = math.inf
        self.frames = FrameReader(options.answer_bytes_max)
        self._client_id = options.client_id
        self._timeout_s = options.request_timeout_ms / 1000  # for what is asked before it is ready
        self._mechanism = mechanism
        self._phase = _Phase.NEGOTIATING
        self._correlation_id = 0
        self._under_way: deque[_Request] = deque()
        # True between what a broker tells to everybody and the first answer that it gives to us.
        self._is_on_trial = False

    # ---- what the shell asks

    @property
    def is_ready(self) -> bool:
        return self._phase is _Phase.READY

    @property
    def is_closed(self) -> bool:
        return self._phase is _Phase.CLOSED

    @property
    def requests_under_way(self) -> int:
        return len(self._under_way)

    @property
    def deadline(self) -> float:
        """When `time_passed` has to be called at the latest."""
        under_way = self._under_way
        if len(under_way) == 1:
            return under_way[0].deadline
        return min((request.deadline for request in under_way), default=math.inf)

    def version_of(self, api_key: int) -> int | None:
        """The newest version of this API that both sides know, or None where there is none."""
        info = registry.API_KEYS[api_key]
        lowest, highest = self.served.get(api_key, (0, -1))
        version = min(info.max_version, highest)
        return version if version >= max(info.min_version, lowest) else None

    # ---- what the shell tells

    def connected(self, now: float) -> list[Effect]:
        """The socket is connected."""
        return [self._ask_versions(_API_VERSIONS_VERSION, now)]

    def request(
        self,
        request: Any,
        now: float,
        timeout_s: float,
        *,
        version_min: int = 0,
        version_max: int | None = None,
        answered: bool = True,
    ) -> Send:
        """A request in the newest version that both sides know, from `version_min` to `version_max`.
        `NotServed` where there is none. The answer has to be there in this time.
        """
        api_key = request.SCHEMA.api_key
        version = self.version_of(api_key)
        if version is not None and version_max is not None:
            version = min(version, version_max)
        if version is None or version < max(version_min, self.served[api_key][0]):
            raise NotServed(self.address, registry.API_KEYS[api_key].name)
        return self._encode(request, version, now, timeout_s, answered)

    def wait(self, now: float, timeout_s: float) -> None:
        """Let the oldest request have this time from now on: a blocking shell counts only while it waits."""
        self._under_way[0].expect(now, timeout_s)

    def received(self, count: int, now: float) -> list[Effect]:
        """So many bytes were put into `frames.room()`; none says that the broker sends no more."""
        if self._phase is _Phase.CLOSED:
            return []
        if not count:
            return self.lost("the broker closed the connection")
        try:
            frame = self.frames.received(count)
            return [] if frame is None else self._take(frame, now)
        except ProtocolError as error:
            return self.close(ConnectionLost(self.address, str(error)))
        except WireError as error:
            return self.close(error)

    def time_passed(self, now: float) -> list[Effect]:
        """It is so late now."""
        for request in self._under_way:
            if request.deadline <= now:
                problem = f"{NO_ANSWER} {request.api_name} in {request.timeout_s:g} s"
                return self.close(ConnectionLost(self.address, problem))
        return []

    def lost(self, problem: str) -> list[Effect]:
        """The other side has ended the connection."""
        if self._is_on_trial and self._mechanism is None:
            problem += "; does this port want SASL (security.protocol)?"
        return self.close(ConnectionLost(self.address, problem))

    def close(self, error: WireError) -> list[Effect]:
        if self._phase is _Phase.CLOSED:
            return []
        self._phase = _Phase.CLOSED
        self._under_way.clear()
        return [Close(error)]

    # ---- the way of a request and of its answer

    def _encode(self, request: Any, version: int, now: float, timeout_s: float, answered: bool) -> Send:
        api_key = request.SCHEMA.api_key
        self._correlation_id = (self._correlation_id + 1) & _CORRELATION_ID_MAX
        header = encode_request_header(api_key, version, self._correlation_id, self._client_id)
        chunks: Any = codec.encoder(type(request), version)(request)
        if answered:
            expected = _Request(api_key, version, self._correlation_id)
            expected.expect(now, timeout_s)
            self._under_way.append(expected)
        return Send(framed([header, *chunks]))

    def _take(self, frame: memoryview, now: float) -> list[Effect]:
        if not self._under_way:
            raise ProtocolError("an answer that was not asked for")
        request = self._under_way.popleft()
        answered, position = decode_response_header(request.api_key, request.version, frame, 0, len(frame))
        if answered != request.correlation_id:
            raise ProtocolError(
                f"an answer that was not asked for: to request {answered} instead of "
                f"{request.correlation_id}, {request.api_name}"
            )
        if self._phase is _Phase.NEGOTIATING:
            return self._negotiated(request, frame, position, now)
        message = _decode(request.api_key, request.version, frame, position)
        if self._phase is _Phase.AUTHENTICATING:
            return self._authenticating(message, now)
        self._is_on_trial = False
        return [Answer(message)]

    # ---- what the broker serves

    def _ask_versions(self, version: int, now: float) -> Send:
        question = ApiVersionsRequest("mainstem", mainstem.__version__)
        return self._encode(question, version, now, self._timeout_s, True)

    def _negotiated(self, request: _Request, frame: memoryview, position: int, now: float) -> list[Effect]:
        """A broker that is too old for our question answers it in version 0, and is asked again in that."""
        too_old = frame[position : position + 2] == ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")
        if too_old and request.version:
            return [self._ask_versions(0, now)]
        answer: ApiVersionsResponse = _decode(request.api_key, request.version, frame, position)
        check(answer.error_code, f"ask {self.address} what it serves")
        self.served = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
        self.features = {feature.name: feature.max_version_level for feature in answer.finalized_features}
        if self._mechanism is None:
            self._phase = _Phase.READY
            self._is_on_trial = True
            return [Ready()]
        self._phase = _Phase.AUTHENTICATING
        return [self.request(SaslHandshakeRequest(self._mechanism.name), now, self._timeout_s)]

    # ---- who we are

    def _authenticating(
        self, answer: SaslHandshakeResponse | SaslAuthenticateResponse, now: float
    ) -> list[Effect]:
        mechanism = self._mechanism
        assert mechanism is not None
        if isinstance(answer, SaslHandshakeResponse):
            if answer.error_code != ErrorCode.NONE:
                raise SecurityError(refused_handshake(self.address, mechanism, answer))
            message = mechanism.first()
        else:
            if answer.error_code != ErrorCode.NONE:
                raise SecurityError(refused_authentication(self.address, mechanism, answer))
            following = mechanism.next(answer.auth_bytes)
            if following is None:
                if answer.session_lifetime_ms > 0:
                    self.expires_at = now + answer.session_lifetime_ms / 1000 * _LIFETIME_USED
                self._phase = _Phase.READY
                return [Ready()]
            message = following
        return [self.request(SaslAuthenticateRequest(message), now, self._timeout_s)]


def _decode(api_key: int, version: int, frame: memoryview, position: int) -> Any:
    cls = registry.response_class(api_key)
    try:
        message, end = codec.decoder(cls, version)(frame, position, len(frame))
        if end != len(frame):
            raise ProtocolError(f"{cls.__name__} v{version} is followed by {len(frame) - end} bytes")
    except ProtocolError as error:
        raise ProtocolError(f"an answer that cannot be read: {error}") from None
    return message
