"""A blocking connection to one broker: the shell around `ConnectionCore` that owns a socket and waits.

Several requests may be under way (`send`, then as many `receive`); `call` is the two in one. Whatever goes
wrong with the connection closes it.
"""

from __future__ import annotations

import math
import socket
import time
from collections import deque
from typing import Any

from mainstem.wire.core import Answer, Close, ConnectionCore, Effect, Send
from mainstem.wire.errors import ConnectionLost, SecurityError
from mainstem.wire.frames import ReceiveBuffer
from mainstem.wire.mechanisms import Mechanism, mechanism_of
from mainstem.wire.options import ClientOptions, OAuthBearerOptions

# A read may wait a little longer than what is left for its answer.
_TIMEOUT_KEPT = 0.95


class Connection:
    """One broker. Not for several threads at a time."""

    def __init__(self, host: str, port: int, options: ClientOptions) -> None:
        self.address = address_text(host, port)
        self._options = options
        self._core = ConnectionCore(self.address, options, _mechanism(options))
        self._answers: deque[Any] = deque()
        self._socket = self._dial(host, port)
        try:
            self._carry_out(self._core.connected(time.monotonic()))
            while not self._core.is_ready:
                self._wait()
        except BaseException as error:
            self.close()
            if isinstance(error, SecurityError) and isinstance(options.sasl, OAuthBearerOptions):
                from mainstem.wire.tokens import login_of

                login_of(options.sasl.source).forget()  # what was refused is not shown again
            raise

    def close(self) -> None:
        self._core.close(ConnectionLost(self.address, "the connection is closed"))
        self._socket.close()

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def features(self) -> dict[str, int]:
        """The finalized feature levels of the cluster."""
        return self._core.features

    @property
    def requests_under_way(self) -> int:
        return self._core.requests_under_way

    @property
    def usable(self) -> bool:
        """Whether a request may be sent: it is open, and its authentication has not nearly run out."""
        return self._core.is_ready and time.monotonic() < self._core.expires_at

    def version_of(self, api_key: int) -> int | None:
        """The version in which this API is spoken here, or None where the broker does not serve it."""
        return self._core.version_of(api_key)

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

    def send(self, request: Any, *, version_max: int | None = None, answered: bool = True) -> None:
        """Send a request, in `version_max` at most."""
        self._check_open()
        effect = self._core.request(request, 0.0, math.inf, version_max=version_max, answered=answered)
        self._write(effect.data)

    def receive(self, *, timeout_s: float | None = None, buffer: ReceiveBuffer | None = None) -> Any:
        """The response to the oldest request that has none yet.

        Records in it are views of `buffer`, valid until the buffer is used again; without one they have
        memory of their own.
        """
        self._check_open()
        self._core.frames.buffer = buffer
        self._core.wait(
            time.monotonic(), self._options.request_timeout_ms / 1000 if timeout_s is None else timeout_s
        )
        while not self._answers:
            self._wait()
        return self._answers.popleft()

    def _check_open(self) -> None:
        if self._core.is_closed:
            raise ConnectionLost(self.address, "the connection is closed")

    def _dial(self, host: str, port: int) -> socket.socket:
        timeout_s = self._options.connect_timeout_ms / 1000
        try:
            sock = socket.create_connection((host, port), timeout_s)
        except (OSError, OverflowError) as error:
            raise ConnectionLost(self.address, reason(error)) from None
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._options.uses_tls:
            from mainstem.wire.tls import secure  # not at import: few connections need OpenSSL

            try:
                sock = secure(sock, host, self.address, self._options.tls)
            except BaseException as error:
                sock.close()
                if isinstance(error, OSError):
                    raise ConnectionLost(self.address, reason(error)) from None
                raise
        return sock

    def _wait(self) -> None:
        """Let bytes come until a frame is whole, or its time is up."""
        core, deadline, timeout_s = self._core, self._core.deadline, math.inf
        effects: list[Effect] = []
        while not effects:
            now = time.monotonic()
            left_s = deadline - now
            try:
                if left_s <= 0:
                    effects = core.time_passed(now)
                    continue
                if left_s < timeout_s * _TIMEOUT_KEPT:
                    # Not for every piece of a large frame: each time is a call of the kernel.
                    timeout_s = left_s
                    self._socket.settimeout(timeout_s)
                effects = core.received(self._socket.recv_into(core.frames.room()), now)
            except TimeoutError:
                pass  # seen by the clock
            except OSError as error:
                effects = self._lost(error)
        self._carry_out(effects)

    def _carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Answer):
                self._answers.append(effect.message)
            elif isinstance(effect, Send):
                self._write(effect.data)
            elif isinstance(effect, Close):
                self._socket.close()
                raise effect.error

    def _write(self, data: bytes) -> None:
        try:
            self._socket.settimeout(self._options.request_timeout_ms / 1000)
            self._socket.sendall(data)
        except OSError as error:
            self._carry_out(self._lost(error))

    def _lost(self, error: OSError) -> list[Effect]:
        if self._options.uses_tls:
            from mainstem.wire.tls import refusal

            if refused := refusal(self.address, error):
                return self._core.close(refused)
        return self._core.lost(reason(error))


def address_text(host: str, port: int) -> str:
    """For people."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def reason(error: Exception) -> str:
    """Why a connection could not be made or was lost, in a few words."""
    if strerror := getattr(error, "strerror", None):
        return str(strerror).lower()
    return str(error) or type(error).__name__


def _mechanism(options: ClientOptions) -> Mechanism | None:
    if not options.uses_sasl:
        return None
    if options.sasl is None:
        raise SecurityError(f"{options.security_protocol} needs a login (sasl.mechanism)")
    return mechanism_of(options.sasl)
