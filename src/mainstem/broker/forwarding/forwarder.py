"""The broker's side of forwarding: a client's request goes to the active controller, and its answer back.

Both travel in an Envelope. Header and body stay the bytes that they were, so that the client reads what the
controller wrote; only when no controller could be asked does this broker answer on its own.
"""

import logging
import socket
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from mainstem.broker.metadata.controller_channel import ControllerChannel
from mainstem.broker.requests.context import RequestContext
from mainstem.protocol.apis.k58_envelope import EnvelopeRequest
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.security.principal_data import encode_principal

if TYPE_CHECKING:
    from mainstem.broker.shared_server import SharedServer

logger = logging.getLogger(__name__)

_SIZE: Final = Struct(">i")


class ForwardingContext(RequestContext):
    """The request on whose behalf the controller is asked."""

    __slots__ = ()

    def reply(self, response: Any) -> None:
        """What the controller has written goes out as it is."""
        if not isinstance(response, bytes):
            super().reply(response)
        elif not self.connection.closed:
            self.connection.reply(_SIZE.pack(len(response)) + response)


class Forwarder:
    """Has a connection of its own: what clients want must not wait behind what the node itself wants."""

    def __init__(self, server: "SharedServer") -> None:
        self._server = server
        self._channel = ControllerChannel(server)

    async def forward(self, ctx: RequestContext, frame: bytes, request: Any) -> Any:
        """The raw response, or this API's own form of the error why there is none."""
        envelope = EnvelopeRequest(
            request_data=frame,
            request_principal=encode_principal(ctx.principal),
            client_host_address=_packed(ctx.client_host),
        )
        timeout_s = self._server.config.get("request.timeout.ms") / 1000
        try:
            answer = await self._channel.call(envelope, timeout_s=timeout_s)
        except KafkaError as error:
            return ctx.api.refuse(request, error)
        if answer.error_code or answer.response_data is None:
            # What is wrong between nodes is none of the client's business.
            logger.error(
                "the controller refuses a forwarded %s request with error %d", ctx.api.name, answer.error_code
            )
            return ctx.api.refuse(request, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
        return bytes(answer.response_data)

    def close(self) -> None:
        self._channel.close()


def _packed(host: str) -> bytes:
    """The address in network order, 4 or 16 bytes."""
    address, _, _scope = host.partition("%")
    return socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)
