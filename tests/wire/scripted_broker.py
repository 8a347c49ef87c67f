"""A broker that answers as a test tells it to, for what no real one does on request.

It moves leaders, cuts answers off, lies, or keeps silent.
"""

import socket
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from mainstem.protocol import codec, registry
from mainstem.protocol.apis.k01_fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from mainstem.protocol.apis.k03_metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from mainstem.protocol.apis.k18_api_versions import ApiVersion, ApiVersionsResponse
from mainstem.protocol.headers import decode_request_header, encode_response_header

TOPIC, TOPIC_ID = "scripted", b"scripted-topic-1"
API_VERSIONS, METADATA, FETCH = 18, 3, 1

# A response; bytes to send instead, which end the connection; a `Frame`, which does not; None for silence.
Answer = Any
Script = Callable[[Any], Answer]


@dataclass(frozen=True)
class Frame:
    """An answer whose bytes are given."""

    payload: bytes


class ScriptedBroker:
    """Listens on a free port, one thread for each connection. Use as a context manager."""

    def __init__(self, scripts: Mapping[int, Script]) -> None:
        self._scripts = {API_VERSIONS: lambda _: served(), **scripts}
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._connections: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self.requests: list[Any] = []

    @property
    def port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        # A listener that is only closed would leave its thread in accept().
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._threads[0].join(30)
        for connection in self._connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for thread in self._threads[1:]:
            thread.join(30)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            try:
                while length := stream.read(4):
                    if not self._answer(connection, stream.read(struct.unpack(">i", length)[0])):
                        return
            except OSError:
                return

    def _answer(self, connection: socket.socket, frame: bytes) -> bool:
        header, position = decode_request_header(frame, 0, len(frame))
        request = codec.decode(registry.request_class(header.api_key), header.api_version, frame[position:])
        self.requests.append(request)
        answer = self._scripts[header.api_key](request)
        if isinstance(answer, bytes):
            connection.sendall(answer)
            return False
        if isinstance(answer, Frame):
            connection.sendall(struct.pack(">i", len(answer.payload)) + answer.payload)
        elif answer is not None:
            payload = encode_response_header(header.api_key, header.api_version, header.correlation_id)
            payload += codec.encode(answer, header.api_version)
            connection.sendall(struct.pack(">i", len(payload)) + payload)
        return True


def served() -> ApiVersionsResponse:
    """All that the protocol code knows."""
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(info.key, info.min_version, info.max_version) for info in registry.API_KEYS.values()
        ]
    )


def metadata(
    nodes: Mapping[int, int], leader: int, epoch: int = 0, topic_id: bytes = TOPIC_ID
) -> MetadataResponse:
    """A topic of one partition; `nodes` are the ports of the brokers by their ids."""
    partition = MetadataResponsePartition(leader_id=leader, leader_epoch=epoch)
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id, "127.0.0.1", port) for node_id, port in nodes.items()],
        topics=[MetadataResponseTopic(name=TOPIC, topic_id=topic_id, partitions=[partition])],
    )


def fetch_answer(records: bytes = b"", code: int = 0) -> FetchResponse:
    data = PartitionData(error_code=code, high_watermark=1000, records=memoryview(records))
    return FetchResponse(responses=[FetchableTopicResponse(TOPIC, TOPIC_ID, [data])])


def asked_offset(request: FetchRequest) -> int:
    return request.topics[0].partitions[0].fetch_offset
