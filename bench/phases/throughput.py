"""Bulk produce and consume with messages of 1 KB and 100 B on four partitions: with librdkafka's C tool, and
with clients of ours that do no work for a record."""

import os

from bench import procfs
from bench.loads import Throughput
from bench.phases.model import PARTITIONS, Bench, Phase, cpu_of
from bench.stats import Metric, Target
from bench.topics import topic

_SIZE_1K = 1024
_SIZE_100B = 100
_TAKES = 3
_READINGS = 5


def _messages(bench: Bench, size_bytes: int) -> int:
    return bench.sizes.messages_1k if size_bytes == _SIZE_1K else bench.sizes.messages_100b


def _produce(bench: Bench, size_bytes: int) -> dict[str, float]:
    """By librdkafka, which makes every record and takes most of a small machine for that; and, as `raw`, by a
    writer on bare sockets that sends batches which were made before.
    """
    messages = _messages(bench, size_bytes)
    takes, raw, cpu_seconds = [], [], 0.0
    for number in range(_TAKES):
        with topic(bench.peer, f"produce-{size_bytes}-{number}", PARTITIONS) as name:
            bench.warm_pages()
            with cpu_of(bench.peer) as cpu:
                takes.append(bench.load.produce(name, messages, size_bytes))
            cpu_seconds += cpu.seconds
        with topic(bench.peer, f"bulk-{size_bytes}-{number}", PARTITIONS) as name:
            bench.warm_pages()
            raw.append(bench.load.bulk(name, PARTITIONS, messages, size_bytes))
    return {
        **_result(bench, _middle(takes), cpu_seconds / _TAKES),
        "raw_mb_per_s": _middle(raw).megabytes_per_s,
    }


def _consume(bench: Bench, size_bytes: int) -> dict[str, float]:
    """By librdkafka, which unpacks every record and takes most of a small machine for that; and, as `raw`, by
    a reader on bare sockets that only steps from batch to batch.
    """
    messages = _messages(bench, size_bytes)
    with topic(bench.peer, f"consume-{size_bytes}", PARTITIONS) as name:
        bench.warm_pages()
        bench.load.produce(name, messages, size_bytes)
        os.sync()  # else the quicker of the brokers to write is read while the kernel still saves its pages
        raw = [bench.load.fetch(name, PARTITIONS, messages, size_bytes) for _ in range(_READINGS)]
        with cpu_of(bench.peer) as cpu:
            readings = [bench.load.consume(name, PARTITIONS, messages, size_bytes) for _ in range(_READINGS)]
        done = _middle(readings)
        return {
            **_result(bench, done, cpu.seconds / _READINGS),
            "raw_mb_per_s": _middle(raw).megabytes_per_s,
        }


def _middle(runs: list[Throughput]) -> Throughput:
    """One run takes a second or less, in which whatever else the machine does would show."""
    return sorted(runs, key=lambda done: done.seconds)[len(runs) // 2]


def _result(bench: Bench, done: Throughput, cpu_seconds: float) -> dict[str, float]:
    return {
        "mb_per_s": done.megabytes_per_s,
        "msgs_per_s": done.messages_per_s,
        "cpu_s_per_gb": cpu_seconds / done.gigabytes,
        "rss_mb": procfs.memory(bench.peer.pid).resident_mb,
    }


def _metrics(rate_metric: str | None, rate_min: float, cpu_max: float) -> tuple[Metric, ...]:
    """All four numbers; the target for the rate is on the one that the messages' size makes telling."""

    def rate_target(name: str) -> tuple[Target, ...]:
        return (Target("ratio_min", rate_min),) if name == rate_metric else ()

    return (
        Metric("mb_per_s", "MB/s", rate_target("mb_per_s")),
        Metric("msgs_per_s", "msg/s", rate_target("msgs_per_s")),
        Metric("cpu_s_per_gb", "CPU s/GB", (Target("ratio_max", cpu_max),)),
        Metric("rss_mb", "MB"),
    )


PHASES = (
    Phase(
        "produce_1k",
        "produce 1 KB, acks=1, 4 partitions",
        (*_metrics("mb_per_s", 2.0, 0.5), Metric("raw_mb_per_s", "MB/s")),
        lambda bench: _produce(bench, _SIZE_1K),
    ),
    # Here librdkafka is the limit: one thread of it makes the records, some two million a second.
    # So the target is for the load that it is not.
    Phase(
        "produce_100b",
        "produce 100 B, acks=1, 4 partitions",
        (*_metrics(None, 1.2, 0.5), Metric("raw_mb_per_s", "MB/s", (Target("ratio_min", 1.2),))),
        lambda bench: _produce(bench, _SIZE_100B),
    ),
    Phase(
        "consume_1k",
        "consume 1 KB from the start",
        (*_metrics("mb_per_s", 1.0, 1.0), Metric("raw_mb_per_s", "MB/s")),
        lambda bench: _consume(bench, _SIZE_1K),
    ),
    Phase(
        "consume_100b",
        "consume 100 B from the start",
        (*_metrics("msgs_per_s", 1.0, 1.0), Metric("raw_mb_per_s", "MB/s")),
        lambda bench: _consume(bench, _SIZE_100B),
    ),
)
