"""A Metadata request over a raw socket: when a broker is useful, and how long listing its partitions takes.

Kept apart from any client library, whose back-off and connection set-up would be measured instead.
"""

import socket
import struct
import time
from typing import NamedTuple

from bench.errors import BenchError

_METADATA = 3
_API_VERSIONS = 18
_VERSION = 1  # the oldest with a controller id; not flexible, so easily read
_ALL_TOPICS = struct.pack(">i", -1)


class MetadataAnswer(NamedTuple):
    brokers: int
    controller_id: int
    topics: int
    partitions_with_leader: int

    @property
    def is_useful(self) -> bool:
        """A client can go on from here: there is a broker to talk to, and a controller."""
        return self.brokers > 0 and self.controller_id >= 0


def metadata_frame(correlation_id: int) -> bytes:
    header = struct.pack(">hhih5s", _METADATA, _VERSION, correlation_id, 5, b"bench")
    return struct.pack(">i", len(header) + len(_ALL_TOPICS)) + header + _ALL_TOPICS


def parse_metadata(body: bytes) -> MetadataAnswer:
    """The answer without its size field."""
    reader = _Reader(body)
    reader.skip(4)
    brokers = reader.int32()
    for _ in range(brokers):
        reader.skip(4)
        reader.string()
        reader.skip(4)
        reader.string()
    controller_id = reader.int32()
    topics = reader.int32()
    with_leader = sum(_leaders_of_topic(reader) for _ in range(topics))
    return MetadataAnswer(brokers, controller_id, topics, with_leader)


def ask_metadata(port: int, timeout_s: float = 30.0) -> MetadataAnswer:
    return parse_metadata(fetch_metadata(port, timeout_s))


def fetch_metadata(port: int, timeout_s: float = 30.0) -> bytes:
    """The raw answer on a new connection; raises OSError when there is none."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout_s) as connection:
        connection.sendall(metadata_frame(1))
        return receive_frame(connection)


def small_frame(correlation_id: int) -> bytes:
    """About the smallest request that there is: which versions of which APIs are there?"""
    header = struct.pack(">hhih5s", _API_VERSIONS, 0, correlation_id, 5, b"bench")
    return struct.pack(">i", len(header)) + header


def receive_frame(connection: socket.socket) -> bytes:
    (size,) = struct.unpack(">i", _receive(connection, 4))
    return _receive(connection, size)


def leader_ports(port: int, topic: str) -> dict[int, int]:
    """At which port each partition of a topic is led, as far as it is."""
    reader = _Reader(fetch_metadata(port))
    reader.skip(4)
    ports: dict[int, int] = {}
    for _ in range(reader.int32()):
        node = reader.int32()
        reader.string()
        ports[node] = reader.int32()
        reader.string()
    reader.skip(4)
    for _ in range(reader.int32()):
        reader.skip(2)
        name = reader.string()
        reader.skip(1)
        leaders = {}
        for _ in range(reader.int32()):
            reader.skip(2)
            partition, leader = reader.int32(), reader.int32()
            for _ in range(2):  # replicas and those in sync
                reader.skip(4 * reader.int32())
            if leader in ports:
                leaders[partition] = ports[leader]
        if name == topic.encode():
            return leaders
    return {}


def wait_for_metadata(port: int, deadline: float, partitions: int = 0) -> None:
    """Until a useful answer, with leaders for so many partitions; `deadline` is of time.monotonic()."""
    while time.monotonic() < deadline:
        try:
            answer = ask_metadata(port, timeout_s=5.0)
        except OSError:
            answer = None
        if answer is not None and answer.is_useful and answer.partitions_with_leader >= partitions:
            return
        # A millisecond: short beside every start-up time, long enough to leave the cores to the broker.
        time.sleep(0.001 if partitions == 0 else 0.05)
    raise BenchError(f"no useful Metadata answer on port {port} in time")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def skip(self, count: int) -> None:
        self._at += count

    def int32(self) -> int:
        (value,) = struct.unpack_from(">i", self._data, self._at)
        self._at += 4
        return int(value)

    def string(self) -> bytes:
        (length,) = struct.unpack_from(">h", self._data, self._at)
        start = self._at + 2
        self._at = start + max(0, length)
        return self._data[start : self._at]


def _leaders_of_topic(reader: _Reader) -> int:
    reader.skip(2)
    reader.string()
    reader.skip(1)
    with_leader = 0
    for _ in range(reader.int32()):
        reader.skip(2 + 4)
        with_leader += reader.int32() >= 0
        reader.skip(4 * reader.int32())
        reader.skip(4 * reader.int32())
    return with_leader


def _receive(connection: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        chunk = connection.recv(count - len(data))
        if not chunk:
            raise ConnectionError("the broker closed the connection")
        data += chunk
    return bytes(data)
