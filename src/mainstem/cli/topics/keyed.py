"""Does a topic hold messages with keys? Asked before its partitions grow, because hashing then changes.

It samples the newest messages of each partition; it never reads a topic through.
"""

from __future__ import annotations

from mainstem.cli.clusters.records import records_of
from mainstem.records.record import RecordError
from mainstem.wire import EARLIEST, LATEST, Cluster, TopicMetadata, WireError

SAMPLE_PER_PARTITION = 50


def has_keys(cluster: Cluster, topic: TopicMetadata) -> bool:
    """True when one of the newest messages has a key; False too when they cannot be read."""
    partitions = [(topic.name, number) for number in topic.partitions]
    try:
        starts = cluster.list_offsets(dict.fromkeys(partitions, EARLIEST))
        ends = cluster.list_offsets(dict.fromkeys(partitions, LATEST))
        samples = {
            part: max(starts[part], ends[part] - SAMPLE_PER_PARTITION)
            for part in partitions
            if ends[part] > starts[part]
        }
        fetched = cluster.fetch(samples, max_wait_ms=0) if samples else {}
        return any(record.key is not None for part in fetched.values() for record in records_of(part))
    except (WireError, RecordError):
        return False
