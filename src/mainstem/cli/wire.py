"""A connection that speaks the Kafka protocol itself, for the few requests that librdkafka has no call for.

It sends one request at a time and waits for its answer. What librdkafka can ask is asked through `client.py`.
"""

from __future__ import annotations

import socket
import struct
from typing import Any

from mainstem.cli.client import CONNECT_TIMEOUT_S, REQUEST_TIMEOUT_S, unreachable
from mainstem.cli.errors import CommandError
from mainstem.protocol import codec, registry
from mainstem.protocol.apis.k18_api_versions import ApiVersionsRequest
from mainstem.protocol.errors import ProtocolError
from mainstem.protocol.headers import decode_response_header, encode_request_header, frame

CLIENT_ID = "mainstem-cli"
RESPONSE_BYTES_MAX = 100 * 1024 * 1024


class Connection:
    """One broker; each API is spoken in the newest version that both sides know."""

    def __init__(self, host: str, port: int) -> None:
        self._address = f"{host}:{port}"
        self._correlation_id = 0
        try:
            self._socket = socket.create_connection((host, port), CONNECT_TIMEOUT_S)
        except OSError as error:
            raise unreachable(self._address, (error.strerror or str(error)).lower()) from None
        self._socket.settimeout(REQUEST_TIMEOUT_S)
        answer = self._exchange(ApiVersionsRequest(), 0)
        self._served = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}

    def close(self) -> None:
        self._socket.close()

    def version_of(self, api_key: int) -> int | None:
        """The version in which this API is spoken here, or None where the broker does not serve it."""
        info = registry.API_KEYS[api_key]
        lowest, highest = self._served.get(api_key, (0, -1))
        version = min(info.max_version, highest)
        return version if version >= max(info.min_version, lowest) else None

    def call(self, request: Any) -> Any:
        """Send a request and wait for its response."""
        api_key = request.SCHEMA.api_key
        version = self.version_of(api_key)
        if version is None:
            raise CommandError(
                f"the broker at {self._address} does not serve {registry.API_KEYS[api_key].name}",
                "this command needs a broker that does: a newer one, or another with -b HOST:PORT",
            )
        return self._exchange(request, version)

    def _exchange(self, request: Any, version: int) -> Any:
        api_key = request.SCHEMA.api_key
        self._correlation_id += 1
        header = encode_request_header(api_key, version, self._correlation_id, CLIENT_ID)
        try:
            self._socket.sendall(frame([header, codec.encode(request, version)]))
            (size,) = struct.unpack(">i", self._receive(4))
            if not 4 <= size <= RESPONSE_BYTES_MAX:
                raise ProtocolError("that is no answer of a Kafka broker")
            answer = self._receive(size)
            correlation_id, position = decode_response_header(api_key, version, answer, 0, size)
            if correlation_id != self._correlation_id:
                raise ProtocolError("an answer that was not asked for")
            return codec.decode(registry.response_class(api_key), version, answer[position:])
        except (OSError, ProtocolError) as error:
            raise unreachable(self._address, str(error)) from None

    def _receive(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            chunk = self._socket.recv(size - len(received))
            if not chunk:
                raise ProtocolError("the broker closed the connection")
            received += chunk
        return bytes(received)
