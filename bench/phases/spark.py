"""The data pipeline: `format("mainstem")` beside Spark's own Kafka connector, on each broker in turn.

Both connectors do the same work in the same session by turns, so that a machine that gets slower or faster
meanwhile does not show.
"""

import os
from collections.abc import Callable
from itertools import count
from statistics import median

from bench import procfs
from bench.errors import BenchError
from bench.phases.model import PARTITIONS, Bench, Phase
from bench.spark.asking import OURS, SPARKS, spark
from bench.stats import Metric, Target, TargetKind
from bench.topics import records_in, topic

_SIZE_1K = 1024
_SIZE_100B = 100
_BY_TURNS = (OURS, SPARKS, SPARKS, OURS)
_WARM_UP_MESSAGES = 300_000
_MEMORY_LOOK_S = 0.2
_numbers = count()  # of topics that nobody has written to before


def _warm_up_spark(bench: Bench) -> None:
    """A round of every kind of work on both connectors."""
    where = {"bootstrap": bench.peer.bootstrap}
    with topic(bench.peer, "spark-warm-up", PARTITIONS) as name:
        bench.load.produce(name, _WARM_UP_MESSAGES, _SIZE_100B)
        for connector in (OURS, SPARKS):
            spark().ask("read", connector=connector, topic=name, **where)
            spark().ask("stream", connector=connector, topic=name, **where)
            spark().ask("write", connector=connector, topic=name, rows=50_000, size_bytes=_SIZE_100B, **where)


def _read(bench: Bench, size_bytes: int, messages: int) -> dict[str, float]:
    with topic(bench.peer, f"spark-read-{size_bytes}", PARTITIONS) as name:
        where = {"bootstrap": bench.peer.bootstrap, "topic": name}
        bench.warm_pages()
        bench.load.produce(name, messages, size_bytes)
        os.sync()  # else the quicker of the brokers to write is read while the kernel still saves its pages
        for connector in (OURS, SPARKS):  # the first reader pays for what is not warm
            _check(connector, spark().ask("count", connector=connector, **where)["rows"], messages)
        return _rates(messages, lambda connector: _seconds("read", connector=connector, **where))


def _stream(bench: Bench) -> dict[str, float]:
    messages = bench.sizes.spark_messages_100b
    with topic(bench.peer, "spark-stream", PARTITIONS) as name:
        bench.warm_pages()
        bench.load.produce(name, messages, _SIZE_100B)
        os.sync()

        def seconds(connector: str) -> float:
            done = spark().ask("stream", connector=connector, bootstrap=bench.peer.bootstrap, topic=name)
            _check(connector, done["rows"], messages)
            return float(done["seconds"])

        seconds(OURS)  # the first reader pays for what is not warm
        return _rates(messages, seconds)


def _write(bench: Bench) -> dict[str, float]:
    """Each to a topic of its own, so that both write to new files. Under a name of its own, too: a connector
    that keeps its producers has a topic made again that it wrote to a while ago.
    """
    rows = bench.sizes.spark_rows_written

    def seconds(connector: str) -> float:
        with topic(bench.peer, f"spark-write-{next(_numbers)}", PARTITIONS) as name:
            bench.warm_pages()
            where = {"bootstrap": bench.peer.bootstrap, "topic": name}
            taken_s = _seconds("write", connector=connector, rows=rows, size_bytes=_SIZE_100B, **where)
            _check(connector, records_in(bench.peer, name, PARTITIONS), rows)
        return taken_s

    for connector in (OURS, SPARKS):  # the first writer pays for what is not warm
        seconds(connector)
    return _rates(rows, seconds)


def _micro_batch(bench: Bench) -> dict[str, float]:
    with topic(bench.peer, "spark-micro", PARTITIONS) as name:
        found: dict[str, list[float]] = {OURS: [], SPARKS: []}
        for connector in _BY_TURNS:
            done = spark().ask(
                "micro_batches",
                connector=connector,
                bootstrap=bench.peer.bootstrap,
                topic=name,
                partitions=PARTITIONS,
                seconds=bench.sizes.spark_micro_seconds,
            )
            found[connector] += done["durations_ms"]
    if not found[OURS] or not found[SPARKS]:
        raise BenchError("a query had no micro-batch with rows")
    ours, sparks = median(found[OURS]), median(found[SPARKS])
    return {"trigger_ms": ours, "connector_trigger_ms": sparks, "times_connector": ours / sparks}


def _memory(bench: Bench) -> dict[str, float]:
    """One query over one topic. The records are compressed in the log, because no phase may fill the page
    cache; what is read, decompressed and handed to Spark is all of them.
    """
    messages = bench.sizes.spark_memory_messages_1k
    with topic(bench.peer, "spark-memory", PARTITIONS) as name:
        bench.load.produce(name, messages, _SIZE_1K, codec="lz4")
        samples: list[tuple[float, float]] = []
        done = spark().watch(
            lambda: samples.append(memory_of_spark(spark().pid)),
            _MEMORY_LOOK_S,
            "read",
            connector=OURS,
            bootstrap=bench.peer.bootstrap,
            topic=name,
        )
    if len(samples) < 2:
        raise BenchError("the read ended before its memory could be looked at twice")
    drivers, workers = zip(*samples, strict=True)
    return {
        "mb_per_s": messages * _SIZE_1K / 1e6 / done["seconds"],
        "workers_peak_mb": max(workers),
        "workers_growth_percent": growth_percent(workers),
        "driver_peak_mb": max(drivers),
        "driver_growth_percent": growth_percent(drivers),
    }


def memory_of_spark(pid: int) -> tuple[float, float]:
    """The resident memory of the driver, which is Python's and Java's process, and of the Python workers."""
    tree = procfs.process_tree(pid)
    driver = [member for member in tree if member == pid or procfs.command(member) == "java"]
    workers = [member for member in tree if member not in driver]
    return procfs.resident_mb(driver), procfs.resident_mb(workers)


def growth_percent(samples: tuple[float, ...]) -> float:
    """How much higher the second half's peak is than that of the first, in which all is loaded and warm."""
    half = len(samples) // 2
    first, second = max(samples[:half]), max(samples[half:])
    return 100 * (second - first) / first if first else 0.0


def _seconds(work: str, **request: object) -> float:
    return float(spark().ask(work, **request)["seconds"])


def _check(connector: str, found: int, expected: int) -> None:
    if found != expected:
        raise BenchError(f"format {connector} came to {found} rows of {expected}")


def _rates(rows: int, seconds: Callable[[str], float]) -> dict[str, float]:
    taken = [(connector, seconds(connector)) for connector in _BY_TURNS]
    ours = rows / median(taken_s for connector, taken_s in taken if connector == OURS)
    sparks = rows / median(taken_s for connector, taken_s in taken if connector == SPARKS)
    return {"rows_per_s": ours, "connector_rows_per_s": sparks, "times_connector": ours / sparks}


def _metrics(name: str, unit: str, kind: TargetKind, bound: float) -> tuple[Metric, ...]:
    return (
        Metric(name, unit),
        Metric(f"connector_{name}", unit),
        Metric("times_connector", "x", (Target(kind, bound),)),
    )


PHASES = (
    Phase(
        "spark_read_100b",
        "Spark reads 100 B to noop, 4 partitions, local[2]",
        _metrics("rows_per_s", "rows/s", "each_min", 3.0),
        lambda bench: _read(bench, _SIZE_100B, bench.sizes.spark_messages_100b),
        warm_up=_warm_up_spark,
    ),
    Phase(
        "spark_read_1k",
        "the same with 1 KB",
        _metrics("rows_per_s", "rows/s", "each_min", 2.0),
        lambda bench: _read(bench, _SIZE_1K, bench.sizes.spark_messages_1k),
        warm_up=_warm_up_spark,
    ),
    Phase(
        "spark_stream_100b",
        "a streaming query with availableNow, 100 B, start and end included",
        _metrics("rows_per_s", "rows/s", "each_min", 2.5),
        _stream,
        warm_up=_warm_up_spark,
    ),
    Phase(
        "spark_write_100b",
        "Spark writes 100 B, acks=all, idempotent",
        _metrics("rows_per_s", "rows/s", "each_min", 2.0),
        _write,
        warm_up=_warm_up_spark,
    ),
    Phase(
        "spark_micro_batch",
        "a running query's micro-batch, few records on 4 partitions",
        _metrics("trigger_ms", "ms", "each_max", 1.5),
        _micro_batch,
        warm_up=_warm_up_spark,
    ),
    Phase(
        "spark_memory",
        "memory of Spark while format mainstem reads 10 GB of 1 KB",
        (
            Metric("mb_per_s", "MB/s"),
            Metric("workers_peak_mb", "MB"),
            Metric("workers_growth_percent", "%", (Target("each_max", 10.0),)),
            Metric("driver_peak_mb", "MB"),
            Metric("driver_growth_percent", "%", (Target("each_max", 10.0),)),
        ),
        _memory,
        repeats_max=2,
        warm_up=_warm_up_spark,
    ),
)
