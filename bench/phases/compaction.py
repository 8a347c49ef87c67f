"""Compaction of a large topic: how quickly it is done, and what a producer of another topic feels of it."""

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from random import Random
from statistics import median

from confluent_kafka import Producer
from confluent_kafka.admin import ResourceType

from bench.errors import BenchError
from bench.peers import Peer
from bench.phases.model import Bench, Phase
from bench.stats import Metric, Target
from bench.topics import create_topics, delete_topics, set_config, topic, wait_for_leaders

_SIZE_1K = 1024
_RATE_PER_S = 1_000
_WINDOW_MESSAGES = 1_000
_WINDOWS_MAX = 100
_WINDOWS_BEFORE = 10
_TIMEOUT_S = 300.0
_CHECKPOINT = "cleaner-offset-checkpoint"
_POLL_S = 0.02
# Nothing is ever dirty enough, until the measurement begins.
_CONFIGS = {
    "cleanup.policy": "compact",
    "segment.bytes": str(128 << 20),
    "min.cleanable.dirty.ratio": "1.0",
}


def _compaction(bench: Bench) -> dict[str, float]:
    peer, sizes = bench.peer, bench.sizes
    set_config(peer, ResourceType.BROKER, "1", "log.cleaner.backoff.ms", "100")
    with topic(peer, "compaction", 1, _CONFIGS) as name, _windows(bench) as window:
        _fill(peer, name, sizes.compaction_messages_1k, sizes.compaction_keys)
        os.sync()  # else the disk is busy with what was just written, and so is whoever swaps files
        before = [window() for _ in range(_WINDOWS_BEFORE)]
        with ThreadPoolExecutor(1) as pool:
            seconds: Future[float] = pool.submit(_compact, peer, name)
            during = [window()]
            while not seconds.done():
                during.append(window())
        # The last window is mostly without compaction, unless it is the only one.
        p99_before, p99_during = median(before), median(during[:-1] or during)
        return {
            "mb_per_s": sizes.compaction_messages_1k * _SIZE_1K / 1e6 / seconds.result(),
            "p99_before_ms": p99_before,
            "p99_during_ms": p99_during,
            "p99_rise": p99_during / p99_before,
        }


def _fill(peer: Peer, name: str, messages: int, keys: int) -> None:
    """Values for keys in any order; each key comes many times."""
    random, value = Random(1), os.urandom(_SIZE_1K)
    settings = {"bootstrap.servers": peer.bootstrap, "linger.ms": 20, "queue.buffering.max.messages": 200_000}
    producer = Producer({**settings, "acks": 1, "batch.size": 900_000})
    for _ in range(messages):
        while True:
            try:
                producer.produce(name, value, b"key %d" % random.randrange(keys))
                break
            except BufferError:
                producer.poll(0.01)
    if producer.flush(_TIMEOUT_S):
        raise BenchError(f"{peer.name} has not taken all messages")


@contextmanager
def _windows(bench: Bench) -> Iterator[Callable[[], float]]:
    """Measures the p99 of a second or so, each time on a topic of its own: the load reads from the start."""
    names = [f"beside-compaction-{number}" for number in range(_WINDOWS_MAX)]
    create_topics(bench.peer, names, 1)
    wait_for_leaders(bench.peer, names, 1)
    left = iter(names)

    def window() -> float:
        name = next(left, None)
        if name is None:
            raise BenchError(f"{bench.peer.name} takes too long to compact")
        return bench.load.end_to_end(name, _RATE_PER_S, _WINDOW_MESSAGES, _WINDOW_MESSAGES // 10)["p99_ms"]

    try:
        yield window
    finally:
        delete_topics(bench.peer, names)


def _compact(peer: Peer, name: str) -> float:
    """Let the topic be cleaned up to its active segment; the seconds that it takes."""
    active = max(int(path.stem) for path in (peer.data_dir / f"{name}-0").glob("*.log"))
    started = time.monotonic()
    set_config(peer, ResourceType.TOPIC, name, "min.cleanable.dirty.ratio", "0.01")
    while _cleaned_up_to(peer.data_dir / _CHECKPOINT, name) < active:
        if time.monotonic() - started > _TIMEOUT_S:
            raise BenchError(f"{peer.name} has not compacted {name} in {_TIMEOUT_S:.0f} s")
        time.sleep(_POLL_S)
    return time.monotonic() - started


def _cleaned_up_to(checkpoint: Path, name: str) -> int:
    try:
        lines = checkpoint.read_text().splitlines()
    except FileNotFoundError:
        return 0
    offsets = [line.split()[2] for line in lines if line.startswith(f"{name} 0 ")]
    return int(offsets[0]) if offsets else 0


def _warm_up(bench: Bench) -> None:
    set_config(bench.peer, ResourceType.BROKER, "1", "log.cleaner.backoff.ms", "100")
    with topic(bench.peer, "warm-up-cleaner", 1, _CONFIGS) as name:
        _fill(bench.peer, name, 300_000, 10_000)
        _compact(bench.peer, name)


PHASES = (
    Phase(
        "compaction",
        "compaction of 1 KB records, each key 20 times, and records going from end to end beside it",
        (
            Metric("mb_per_s", "MB/s", (Target("ratio_min", 1.0),)),
            Metric("p99_before_ms", "ms"),
            Metric("p99_during_ms", "ms"),
            Metric("p99_rise", "x", (Target("value_max", 2.0),)),
        ),
        _compaction,
        warm_up=_warm_up,
    ),
)
