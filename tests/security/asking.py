"""A request asked of a broker whose authorizer says no to something."""

import asyncio
from typing import Any

from mainstem.protocol import codec, registry
from mainstem.protocol.headers import decode_response_header, encode_request_header
from mainstem.security.authorizer import Operation, ResourceType
from mainstem.testing.in_process import InProcessBroker
from mainstem.wire.frames import framed

Resource = tuple[Operation, ResourceType, str]


class Deny:
    """Says no to these operations on these resources."""

    generation = 0

    def __init__(self, *denied: Resource) -> None:
        self._denied = denied

    def authorize(
        self, principal: str, host: str, operation: Operation, resource: ResourceType, name: str
    ) -> bool:
        return (operation, resource, name) not in self._denied


async def call(broker: InProcessBroker, request: Any, version: int) -> Any:
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.port)
    key = request.SCHEMA.api_key
    writer.write(framed([encode_request_header(key, version, 1, None), codec.encode(request, version)]))
    size = int.from_bytes(await reader.readexactly(4), "big")
    payload = await reader.readexactly(size)
    writer.close()
    _, position = decode_response_header(key, version, payload, 0, size)
    return codec.decode(registry.response_class(key), version, payload[position:])
