"""The metrics of topics, partitions and log directories: all of them looked up when somebody asks."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from mainstem.broker.monitoring.disk_space import DiskSpace
from mainstem.broker.monitoring.scrape import Collector
from mainstem.metrics import Exposition, label
from mainstem.storage.directories.log_manager import LogManager

if TYPE_CHECKING:
    from mainstem.broker.logs.log_cleaner import LogCleaner
    from mainstem.broker.logs.partition import Partition
    from mainstem.broker.logs.replicas import Replicas

_PARTITIONS_PER_STEP: Final = 16


class _TopicSums:
    """What the partitions of a topic have in sum."""

    __slots__ = ("bytes_in", "bytes_out", "messages_in")

    def __init__(self) -> None:
        self.messages_in = self.bytes_in = self.bytes_out = 0

    def add(self, partition: "Partition") -> None:
        log = partition.log
        # Nothing is counted when a batch is appended: the log knows both already.
        self.messages_in += log.log_end_offset
        self.bytes_in += log.segments.rolled_bytes + log.segments.active.size
        self.bytes_out += partition.bytes_out


def partitions(replicas: "Replicas") -> Collector:
    def collect(out: Exposition) -> Iterator[None]:
        size = out.gauge("mainstem_partition_size_bytes", "Bytes of all segments of a partition.")
        segments = out.gauge("mainstem_partition_segments", "Segments of a partition.")
        start = out.gauge("mainstem_partition_log_start_offset", "The first offset that can be read.")
        end = out.gauge("mainstem_partition_log_end_offset", "The offset of the next record.")
        unstable = out.gauge(
            "mainstem_partition_unstable_records",
            "Records kept from readers of committed ones by an open transaction; only where there are any.",
        )
        sums: dict[str, _TopicSums] = {}
        found = list(replicas.all())
        unmade = len(replicas.unmade)
        offline = unmade
        topic, name, of_topic = "", "", _TopicSums()
        for number, partition in enumerate(found):
            if number % _PARTITIONS_PER_STEP == 0:
                yield
            if partition.topic != topic:
                topic = partition.topic
                name = label("topic", topic)
                of_topic = sums.setdefault(topic, _TopicSums())
            log = partition.log
            labels = f'{name},partition="{partition.index}"'
            size.add(log.size if len(log.segments.bases) > 1 else log.segments.active.size, labels)
            segments.add(len(log.segments.bases), labels)
            start.add(log.log_start_offset, labels)
            end.add(log.log_end_offset, labels)
            high_watermark = partition.high_watermark
            kept_back = high_watermark - log.last_stable_offset(high_watermark)
            if kept_back:
                unstable.add(kept_back, labels)
            offline += log.health.failure is not None
            of_topic.add(partition)
        yield from _topics(out, sums)
        out.gauge("mainstem_topics", "Topics of which this node has a partition.").add(len(sums))
        out.gauge("mainstem_partitions", "Partitions of this node.").add(len(found) + unmade)
        out.gauge(
            "mainstem_partitions_offline",
            "Partitions whose log directory has failed, or whose log could not be made.",
        ).add(offline)

    return collect


def _topics(out: Exposition, sums: dict[str, _TopicSums]) -> Iterator[None]:
    messages = out.counter(
        "mainstem_topic_messages_in_total",
        "Records ever appended, from the offsets: it goes on over restarts.",
    )
    bytes_in = out.counter("mainstem_topic_bytes_in_total", "Bytes of batches appended.")
    bytes_out = out.counter("mainstem_topic_bytes_out_total", "Bytes of batches fetched.")
    for number, (topic, each) in enumerate(sums.items()):
        if number % _PARTITIONS_PER_STEP == 0:
            yield
        name = label("topic", topic)
        messages.add(each.messages_in, name)
        bytes_in.add(each.bytes_in, name)
        bytes_out.add(each.bytes_out, name)


def cleaning(cleaner: "LogCleaner") -> Collector:
    """The compaction. That of one partition shows only when it cannot be done."""

    def collect(out: Exposition) -> Iterator[None]:
        totals = cleaner.totals
        out.gauge("mainstem_cleaner_running", "Partitions that are being compacted now.").add(cleaner.running)
        out.counter("mainstem_cleaner_runs_total", "Partitions compacted.").add(totals.runs)
        out.counter("mainstem_cleaner_seconds_total", "What that took.").add(totals.milliseconds / 1000)
        out.counter("mainstem_cleaner_read_bytes_total", "Bytes read for it.").add(totals.bytes_read)
        out.counter("mainstem_cleaner_written_bytes_total", "Bytes written by it.").add(totals.bytes_written)
        failed = out.gauge(
            "mainstem_partition_uncleanable", "1 for each partition whose compaction was given up."
        )
        uncleanable = list(cleaner.uncleanable)
        for log in uncleanable:
            failed.add(1, f'{label("topic", log.topic)},partition="{log.partition}"')
        out.gauge("mainstem_partitions_uncleanable", "How many those are.").add(len(uncleanable))
        yield

    return collect


def log_dirs(log_manager: LogManager, disk_space: DiskSpace) -> Collector:
    def collect(out: Exposition) -> Iterator[None]:
        online = out.gauge(
            "mainstem_log_dir_online", "1 while the directory can be used, 0 when it has failed."
        )
        total = out.gauge("mainstem_log_dir_total_bytes", "Size of the file system that holds the directory.")
        free = out.gauge("mainstem_log_dir_free_bytes", "What is left on it for the broker.")
        for log_dir in log_manager.dirs:
            name = label("directory", log_dir.path)
            online.add(int(log_dir.health.failure is None), name)
            space = disk_space.known.get(str(log_dir.path))
            if space is not None:
                total.add(space.total_bytes, name)
                free.add(space.free_bytes, name)
        yield

    return collect
