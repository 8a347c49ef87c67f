"""How far a micro-batch reads: `maxOffsetsPerTrigger`, `minOffsetsPerTrigger` and `maxTriggerDelay`.

No clock and no socket: the time is given, and the answer is the offsets at which the batch ends.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from mainstem.protocol.resources import TopicPartition
from mainstem.spark.source.partitions import Offsets


def rate_limit(
    most: int, start: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]
) -> Offsets:
    """End offsets for about `most` records, shared out by what each partition has; none is starved.

    A partition that has no start is left as it is.
    """
    sizes = {
        partition: end - start[partition]
        for partition, end in latest.items()
        if partition in start and end > start[partition]
    }
    total = sum(sizes.values())
    if total <= most:
        return dict(latest)
    limited = dict(latest)
    for partition, size in sizes.items():
        share = most * (size / total)
        records = math.ceil(share) if share < 1 else math.floor(share)
        limited[partition] = min(latest[partition], start[partition] + records)
    return limited


@dataclass
class BatchDelay:
    """Holds a batch back until there is enough to read, or until the last one is long enough ago."""

    least: int
    max_delay_ms: int
    last_batch_ms: float | None = None

    def holds_back(
        self, now_ms: float, start: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]
    ) -> bool:
        available = sum(end - start.get(partition, 0) for partition, end in latest.items())
        waited = self.last_batch_ms is None or now_ms - self.last_batch_ms >= self.max_delay_ms
        if waited or available >= self.least:
            self.last_batch_ms = now_ms
            return False
        return True
