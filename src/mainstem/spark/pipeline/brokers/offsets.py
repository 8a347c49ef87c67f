"""Commits a pipeline's offsets to its group on one cluster, and measures how far it is behind there. No Spark
here."""

from __future__ import annotations

import time
from collections.abc import Mapping

from mainstem.protocol.resources import TopicPartition
from mainstem.records import batch as record_batch
from mainstem.spark.pipeline.metrics.progress import TopicLag
from mainstem.spark.source.options import ReadOptions
from mainstem.wire import EARLIEST, LATEST, Cluster, CommittedOffset, from_kafka_options

_ONE_BATCH_BYTES = 64 * 1024
_NOTE = "mainstem pipeline"

Offsets = Mapping[TopicPartition, int]


class OffsetsView:
    """Reaches a cluster as a source does that reads there."""

    def __init__(self, options: ReadOptions, group: str) -> None:
        self._client = Cluster(from_kafka_options(options.kafka))
        self._group = group
        self._committed: dict[TopicPartition, int] = {}

    def close(self) -> None:
        self._client.close()

    def commit(self, positions: Offsets) -> None:
        """Commit what is new. A group with members of its own refuses; then nothing is committed."""
        new = {part: offset for part, offset in positions.items() if self._committed.get(part) != offset}
        if new:
            offsets = {part: CommittedOffset(offset, _NOTE) for part, offset in new.items()}
            self._client.offset_commit(self._group, offsets)
            self._committed |= new

    def lags(self, positions: Offsets) -> list[TopicLag]:
        """Records and seconds behind, for each topic."""
        if not positions:
            return []
        ends = self._offsets(dict.fromkeys(positions, LATEST))
        starts = self._offsets(dict.fromkeys(positions, EARLIEST))
        behind = {
            part: max(position, starts[part])
            for part, position in positions.items()
            if part in ends and part in starts and ends[part] > max(position, starts[part])
        }
        times = self._first_times(behind) if behind else {}
        now_ms = time.time() * 1000
        found: list[TopicLag] = []
        for topic in sorted({topic for topic, _ in positions}):
            parts = [part for part in behind if part[0] == topic]
            ages = [max(0.0, now_ms - times[part]) / 1000 for part in parts if part in times]
            records = sum(ends[part] - behind[part] for part in parts)
            seconds = max(ages) if ages else None if parts else 0.0
            found.append(TopicLag(topic, records, seconds))
        return found

    def _offsets(self, at: Offsets) -> Offsets:
        return self._client.list_offsets(at)

    def _first_times(self, behind: Offsets) -> Offsets:
        """The time of the batch that holds the record at each offset."""
        fetched = self._client.fetch(
            behind, partition_bytes=_ONE_BATCH_BYTES, max_bytes=_ONE_BATCH_BYTES * len(behind), max_wait_ms=10
        )
        found: dict[TopicPartition, int] = {}
        for part, answer in fetched.items():
            if len(answer.records) >= record_batch.HEADER_SIZE:
                header = record_batch.read_header(answer.records)
                if header.base_timestamp >= 0:
                    found[part] = header.base_timestamp
        return found
