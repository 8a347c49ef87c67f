"""One connection to whichever node is the active controller, for requests that must not wait behind others.

It asks again while there is no controller, while one cannot be reached and when the asked one says that it is
not (any more), with pauses that grow, until the request's time is over; a new leader ends a pause at once,
and what the old one has not answered is asked again of the new one. Where this node is itself the active
controller, its own controller role answers, and nothing is encoded.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from mainstem.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from mainstem.broker.controller_role import ControllerRole
    from mainstem.broker.network.peers import PeerConnection
    from mainstem.broker.shared_server import SharedServer

_PAUSE_FIRST_MS: Final = 20
_PAUSE_MAX_MS: Final = 500
_CONNECT_TIMEOUT_MS: Final = 2_000

Address = tuple[str, int]


Here = Callable[["ControllerRole"], Awaitable[Any]]


class _NotAnswered(Exception):
    """This attempt came to nothing; another one may do."""


class ControllerChannel:
    """Made for one purpose, so that what is asked for another does not wait for its answers."""

    def __init__(self, server: "SharedServer") -> None:
        self._server = server
        self._peer: PeerConnection | None = None
        self._address: Address | None = None
        self._leader_changed = asyncio.Event()
        self._closed = False
        server.quorum.subscribe(self._on_leader_changed)

    async def call(self, request: Any, *, timeout_s: float, here: Here | None = None) -> Any:
        """The response of the active controller; KafkaError with REQUEST_TIMED_OUT when none has answered.
        `here` has this node's own role answer where it is the active one; without it the node dials itself.
        """
        loop = self._server.loop
        deadline = loop.time() + timeout_s
        pause_ms = _PAUSE_FIRST_MS
        while True:
            changed = self._leader_changed
            try:
                return await self._attempt(request, deadline - loop.time(), here)
            except _NotAnswered as failure:
                problem = str(failure)
            remaining_s = deadline - loop.time()
            if remaining_s <= 0 or self._closed:
                raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"no controller has answered: {problem}")
            with suppress(TimeoutError):
                async with asyncio.timeout(min(pause_ms / 1000, remaining_s)):
                    await changed.wait()
            pause_ms = min(2 * pause_ms, _PAUSE_MAX_MS)

    def close(self) -> None:
        """Whatever has no answer fails, and so does what is asked later."""
        self._closed = True
        self._on_leader_changed()
        self._hang_up()

    async def _attempt(self, request: Any, timeout_s: float, here: Here | None) -> Any:
        role = self._server.controller_role
        if here is not None and role is not None and self._server.is_active_controller:
            try:
                response = await here(role)
            except KafkaError as error:
                if error.code is not ErrorCode.NOT_CONTROLLER:
                    raise
                raise _NotAnswered("this node is not the active controller any more") from error
        elif here is not None and self._server.quorum.leader_id == self._server.node_id:
            raise _NotAnswered("this node leads the quorum, and is about to decide")
        else:
            response = await self._ask_remote(request, timeout_s)
        if getattr(response, "error_code", 0) == ErrorCode.NOT_CONTROLLER:
            raise _NotAnswered("the one that was asked is not the active controller")
        return response

    async def _ask_remote(self, request: Any, timeout_s: float) -> Any:
        from mainstem.wire.errors import NotServed, WireError

        address = self._server.quorum.leader_address()
        if address is None:
            raise _NotAnswered("no controller leads the quorum")
        try:
            return await self._peer_at(address).call(request, timeout_s=max(timeout_s, 0.001))
        except NotServed as error:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, str(error)) from error
        except WireError as error:
            raise _NotAnswered(str(error)) from error

    def _peer_at(self, address: Address) -> "PeerConnection":
        if self._peer is None or self._address != address:
            from mainstem.broker.network.peers import PeerConnection, PeerOptions  # only in a cluster
            from mainstem.wire.options import ClientOptions

            self._hang_up()
            server = self._server
            client = ClientOptions(client_id=str(server.node_id), connect_timeout_ms=_CONNECT_TIMEOUT_MS)
            options = PeerOptions(client, _PAUSE_FIRST_MS, _PAUSE_MAX_MS)
            self._peer = PeerConnection(server.loop, address, options, server.randomness.fraction)
            self._address = address
        return self._peer

    def _on_leader_changed(self, *_: object) -> None:
        if self._address is not None and self._server.quorum.leader_address() != self._address:
            self._hang_up()
        self._leader_changed.set()
        self._leader_changed = asyncio.Event()

    def _hang_up(self) -> None:
        if self._peer is not None:
            self._peer.close()
        self._peer = self._address = None
