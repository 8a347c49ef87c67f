"""The controller's side of forwarding: the request in an Envelope is handled as if its client had come here.

It is authorised with the principal and the address that the broker names, which is why only brokers may send
one. An answer that says NOT_CONTROLLER becomes the Envelope's own: the broker then looks for the right one.
"""

import asyncio
import socket
from collections.abc import Callable
from functools import cache
from types import CoroutineType
from typing import TYPE_CHECKING, Any

from mainstem.broker.apis import MODULES
from mainstem.broker.monitoring.error_counts import error_codes
from mainstem.broker.network.connection import PARKED
from mainstem.broker.requests.context import RequestContext
from mainstem.broker.requests.dispatch import ApiVersion
from mainstem.protocol import codec, registry
from mainstem.protocol.apis.k58_envelope import EnvelopeRequest, EnvelopeResponse
from mainstem.protocol.errors import ErrorCode, KafkaError, ProtocolError
from mainstem.protocol.headers import RequestHeader, decode_request_header, encode_response_header
from mainstem.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from mainstem.security.principal_data import decode_principal

if TYPE_CHECKING:
    from mainstem.broker.network.connection import Connection
    from mainstem.broker.shared_server import SharedServer


class ForwardedContext(RequestContext):
    """A request that came in an Envelope; who asks, and from where, is what the broker says."""

    __slots__ = ("_answer", "_client_host")

    def __init__(
        self,
        server: "SharedServer",
        connection: "Connection",
        api: ApiVersion,
        header: RequestHeader,
        principal: str,
        client_host: str,
    ) -> None:
        super().__init__(server, connection, api, header.correlation_id, header.client_id)
        self.principal = principal
        self._client_host = client_host
        self._answer: asyncio.Future[Any] | None = None

    @property
    def client_host(self) -> str:
        return self._client_host

    async def later_answer(self) -> Any:
        """What a request that was parked is answered."""
        self._answer = self.server.loop.create_future()
        return await self._answer

    def reply(self, response: Any) -> None:
        if self._answer is not None and not self._answer.done():  # else nobody waits for it any more
            self._answer.set_result(response)

    def authorize(self, operation: Operation, resource: ResourceType, name: str) -> bool:
        return self.server.authorizer.authorize(self.principal, self._client_host, operation, resource, name)


async def answer(ctx: RequestContext, request: EnvelopeRequest) -> EnvelopeResponse:
    """The response of what the Envelope holds, with its header; or the error of the Envelope itself."""
    try:
        if not ctx.authorize(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        if not ctx.server.is_active_controller:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        inner, body = _opened(ctx, request)
        response: Any = inner.api.handler(inner, body)
        if type(response) is CoroutineType:
            response = await response
        if response is PARKED:
            response = await inner.later_answer()
        codes_of = _codes_of(inner.api.key)
        if codes_of is not None and ErrorCode.NOT_CONTROLLER in codes_of(response):
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
    except KafkaError as error:
        return EnvelopeResponse(error_code=error.code)
    header = encode_response_header(inner.api.key, inner.api.version, inner.correlation_id)
    return EnvelopeResponse(response_data=header + codec.encode(response, inner.version))


def _opened(ctx: RequestContext, request: EnvelopeRequest) -> tuple[ForwardedContext, Any]:
    """The request in the Envelope; KafkaError when there is none that may be there."""
    try:
        principal = decode_principal(request.request_principal or b"")
    except ProtocolError as error:
        raise KafkaError(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE, str(error)) from error
    data = request.request_data
    try:
        header, position = decode_request_header(data, 0, len(data))
        api = _forwarded_api(header.api_key, header.api_version)
        body, _ = api.decode(data, position, len(data))
    except ProtocolError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from error
    host = _host(request.client_host_address)
    return ForwardedContext(ctx.server, ctx.connection, api, header, principal, host), body


@cache
def _forwarded_api(key: int, version: int) -> ApiVersion:
    info = registry.API_KEYS.get(key)
    if key not in MODULES or info is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"api key {key} is not served here")
    if not info.min_version <= version <= info.max_version:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"{info.name} version {version} is not served here")
    api = ApiVersion(key, version)
    if not api.forwarded:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{info.name} is not for the controller to answer")
    return api


@cache
def _codes_of(key: int) -> Callable[[Any], list[int]] | None:
    return error_codes(registry.response_class(key))


def _host(address: bytes) -> str:
    try:
        return socket.inet_ntop(socket.AF_INET if len(address) == 4 else socket.AF_INET6, address)
    except ValueError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the client's address is not one") from error
