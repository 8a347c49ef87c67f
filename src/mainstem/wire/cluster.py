"""A Kafka cluster as its clients see it: the one object that Spark's tasks, its driver and tools talk to.

Every method here is a few words about another file; retries, leaders and coordinators are looked after there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from mainstem.wire.attempts import Attempts
from mainstem.wire.brokers import Brokers
from mainstem.wire.errors import ConnectionLost, TopicPartition
from mainstem.wire.fetching import READ_UNCOMMITTED, Fetched, FetchSettings, fetch
from mainstem.wire.list_offsets import ListedOffset, list_offsets
from mainstem.wire.metadata import TopicMetadata
from mainstem.wire.options import ClientOptions
from mainstem.wire.producing import Batch, ProduceSettings, produce
from mainstem.wire.stream import FetchStream

STREAM_MAX_BYTES = 16 * 1024 * 1024
STREAM_PARTITION_BYTES = 8 * 1024 * 1024
# Spark's kafkaConsumer.pollTimeoutMs is its spark.network.timeout.
STREAM_PROGRESS_TIMEOUT_MS = 120_000


class Cluster:
    """Use as a context manager, in one thread at a time."""

    def __init__(self, options: ClientOptions) -> None:
        self.options = options
        self._brokers = Brokers(options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._brokers.close()

    def metadata(self, topics: Iterable[str] | None = None) -> dict[str, TopicMetadata]:
        """These topics, or all. One that does not exist has an error; none is created."""
        wanted = None if topics is None else list(topics)
        attempts = Attempts(self.options)
        while True:
            try:
                return self._brokers.refresh(wanted)
            except ConnectionLost as error:
                attempts.pause(error)

    def list_offsets(
        self, at: Mapping[TopicPartition, int], isolation: int = READ_UNCOMMITTED
    ) -> dict[TopicPartition, ListedOffset]:
        """The offset of each partition at a timestamp in ms, or at LATEST, EARLIEST or MAX_TIMESTAMP."""
        return list_offsets(self._brokers, at, isolation)

    def fetch(
        self,
        positions: Mapping[TopicPartition, int],
        *,
        max_bytes: int = 50 * 1024 * 1024,
        partition_bytes: int = 1024 * 1024,
        max_wait_ms: int = 500,
        min_bytes: int = 1,
        isolation: int = READ_UNCOMMITTED,
    ) -> dict[TopicPartition, Fetched]:
        """What each leader has from these offsets on, asked once; records have memory of their own."""
        settings = FetchSettings(max_bytes, partition_bytes, max_wait_ms, min_bytes, isolation)
        return fetch(self._brokers, positions, settings)

    def stream(
        self,
        ranges: Mapping[TopicPartition, tuple[int, int]],
        *,
        max_bytes: int = STREAM_MAX_BYTES,
        partition_bytes: int = STREAM_PARTITION_BYTES,
        max_wait_ms: int = 500,
        isolation: int = READ_UNCOMMITTED,
        progress_timeout_ms: int = STREAM_PROGRESS_TIMEOUT_MS,
    ) -> FetchStream:
        """Read each partition's offsets [start, end); see `FetchStream` for how long records are valid."""
        settings = FetchSettings(max_bytes, partition_bytes, max_wait_ms, 1, isolation)
        return FetchStream(self._brokers, ranges, settings, progress_timeout_ms)

    def produce(
        self,
        batches: Mapping[TopicPartition, Sequence[Batch]],
        *,
        acks: int = -1,
        timeout_ms: int = 30_000,
        transactional_id: str | None = None,
    ) -> dict[TopicPartition, int]:
        """Append record batches in order; the offset of the first record of each partition."""
        return produce(self._brokers, batches, ProduceSettings(acks, timeout_ms, transactional_id))

    def call(self, node_id: int, request: Any, version_max: int | None = None) -> Any:
        """A request of any kind to one broker, without retries."""
        return self._brokers.connection(node_id).call(request, version_max=version_max)
