"""One broker's part of a stream: the positions that it leads, and the request under way."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from mainstem.protocol.apis.k01_fetch import PartitionData
from mainstem.protocol.resources import TopicPartition
from mainstem.wire.brokers import Leader
from mainstem.wire.connection import Connection
from mainstem.wire.errors import WireError, name_of
from mainstem.wire.fetching import Asked, FetchSettings, fetch_request, partitions_of
from mainstem.wire.frames import ReceiveBuffer

# Beyond what the rest of a range is thought to need.
_SPARE_FACTOR = 1.25
_SPARE_BYTES = 64 * 1024


@dataclass(eq=False, slots=True)
class Position:
    """Where the reading of one range has come to."""

    partition: TopicPartition
    offset: int
    end: int
    partition_bytes: int
    leader: Leader | None = None
    unknown_since: float | None = None  # when the brokers began not to know it
    offset_bytes: float = 0.0  # what an offset takes on average, 0 before the first answer

    def grow(self, needed_bytes: int, limit: int) -> None:
        """Ask for more: the batch at the offset does not fit."""
        if needed_bytes > limit:
            raise WireError(
                f"the batch of {name_of(self.partition)} at offset {self.offset} has {needed_bytes} bytes, "
                f"at most {limit} are taken in one answer"
            )
        self.partition_bytes = min(limit, max(needed_bytes, 2 * self.partition_bytes))

    def advance(self, next_offset: int, size: int) -> None:
        if size:
            self.offset_bytes = size / (next_offset - self.offset)
        self.offset = next_offset

    def wanted_bytes(self) -> int:
        """The limit of the next request: near the end of a range no more than the rest of it may need."""
        if not self.offset_bytes:
            return self.partition_bytes
        rest = int(self.offset_bytes * (self.end - self.offset) * _SPARE_FACTOR) + _SPARE_BYTES
        return min(self.partition_bytes, rest)


class Channel:
    """A connection with at most one Fetch under way."""

    def __init__(self, node_id: int, connection: Connection) -> None:
        self.node_id = node_id
        self.connection = connection
        # In the order in which they are asked for: whoever was served goes to the end, so that none starves.
        self.positions: dict[TopicPartition, Position] = {}
        self.asked: list[tuple[Position, int]] = []
        self.answer_due = 0.0

    def send(self, settings: FetchSettings, timeout_ms: int) -> None:
        """Ask for all positions, unless an answer is awaited or there are none."""
        if self.asked or not self.positions:
            return
        asked = {
            position.partition: Asked(position.leader, position.offset, position.wanted_bytes())
            for position in self.positions.values()
            if position.leader is not None
        }
        largest = max(part.partition_bytes for part in asked.values())
        if largest > settings.max_bytes:
            settings = replace(settings, max_bytes=largest)
        request, version_max = fetch_request(settings, asked)
        self.connection.send(request, version_max=version_max)
        self.asked = [(position, position.offset) for position in self.positions.values()]
        self.answer_due = time.monotonic() + (settings.max_wait_ms + timeout_ms) / 1000

    def receive(
        self, buffer: ReceiveBuffer, timeout_s: float
    ) -> tuple[list[tuple[Position, int]], dict[TopicPartition, PartitionData]]:
        """What was asked, and the answer by partition, in the memory of `buffer`."""
        asked, self.asked = self.asked, []
        answer = self.connection.receive(timeout_s=timeout_s, buffer=buffer)
        names = {position.leader.topic_id: position.partition[0] for position, _ in asked if position.leader}
        wanted = {position.partition: position for position, _ in asked}
        return asked, partitions_of(answer, wanted, names)

    def to_the_end(self, position: Position) -> None:
        if self.positions.pop(position.partition, None) is not None and position.offset < position.end:
            self.positions[position.partition] = position
