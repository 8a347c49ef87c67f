"""What a broker costs before and beside its work: start-up, memory, many partitions, idle connections."""

import time
from statistics import median

from bench import procfs
from bench.phases.model import PARTITIONS, Bench, Phase
from bench.stats import Metric, Target
from bench.topics import create_topics, topic, wait_for_leaders
from bench.wire import fetch_metadata, parse_metadata

_TOPICS_PER_REQUEST = 10
_CREATE_TIMEOUT_S = 600.0
_IDLE_TAKES = 3


def _startup(bench: Bench) -> dict[str, float]:
    return {"startup_s": bench.peer.start()}


def _memory(bench: Bench) -> dict[str, float]:
    peer, load, sizes = bench.peer, bench.load, bench.sizes
    peer.start()
    time.sleep(sizes.settle_s)
    idle = procfs.memory(peer.pid)
    for size_bytes, messages in ((1024, sizes.messages_1k), (100, sizes.messages_100b)):
        with topic(peer, f"memory-{size_bytes}", PARTITIONS) as name:
            load.produce(name, messages, size_bytes)
            load.consume(name, PARTITIONS, messages, size_bytes)
    with topic(peer, "memory-requests", PARTITIONS) as name:
        load.requests(name, PARTITIONS, sizes.requests_seconds)
    time.sleep(sizes.settle_s)
    loaded = procfs.memory(peer.pid)
    return {"idle_mb": idle.resident_mb, "loaded_mb": loaded.resident_mb, "peak_mb": loaded.peak_mb}


def _many_partitions(bench: Bench) -> dict[str, float]:
    peer, sizes = bench.peer, bench.sizes
    partitions = sizes.many_topics * sizes.partitions_per_topic
    peer.start()
    empty_mb = procfs.memory(peer.pid).resident_mb
    started = time.monotonic()
    names = [f"many-{number:04d}" for number in range(sizes.many_topics)]
    for first in range(0, sizes.many_topics, _TOPICS_PER_REQUEST):
        some = names[first : first + _TOPICS_PER_REQUEST]
        create_topics(peer, some, sizes.partitions_per_topic, timeout_s=_CREATE_TIMEOUT_S)
    wait_for_leaders(peer, names, sizes.partitions_per_topic, timeout_s=_CREATE_TIMEOUT_S)
    create_s = time.monotonic() - started
    list_ms = _list_ms(peer.port, partitions)
    created_mb = procfs.memory(peer.pid).resident_mb
    stop_s = peer.stop()
    started = time.monotonic()
    peer.start(partitions)
    wait_for_leaders(peer, names, sizes.partitions_per_topic)
    restart_s = time.monotonic() - started
    return {
        "create_s": create_s,
        "list_ms": list_ms,
        "added_mb": created_mb - empty_mb,
        "stop_s": stop_s,
        "restart_s": restart_s,
        "restarted_mb": procfs.memory(peer.pid).resident_mb,
    }


def _list_ms(port: int, partitions: int) -> float:
    """One Metadata answer with everything in it; the second, since the first may fill caches."""
    fetch_metadata(port)
    started = time.monotonic()
    answer = fetch_metadata(port)
    taken_ms = (time.monotonic() - started) * 1000
    assert parse_metadata(answer).partitions_with_leader >= partitions
    return taken_ms


def _rate(bench: Bench) -> float:
    with topic(bench.peer, "idle-beside", PARTITIONS) as name:
        bench.warm_pages()
        return bench.load.produce(name, bench.sizes.idle_messages_1k, 1024).megabytes_per_s


def _idle_connections(bench: Bench) -> dict[str, float]:
    peer, load, sizes = bench.peer, bench.load, bench.sizes
    # Before and after, so that a machine that gets slower or faster meanwhile does not show.
    alone = [_rate(bench) for _ in range(_IDLE_TAKES)]
    before_mb = procfs.memory(peer.pid).resident_mb
    with load.idle_connections(sizes.idle_connections) as held:
        held_mb = procfs.memory(peer.pid).resident_mb
        beside = [_rate(bench) for _ in range(2 * _IDLE_TAKES)]
    alone += [_rate(bench) for _ in range(_IDLE_TAKES)]
    return {
        "rate_kept_percent": 100 * median(beside) / median(alone),
        "held_percent": 100 * held.still_open / sizes.idle_connections,
        "opening_s": held.opening_seconds,
        "kb_per_connection": (held_mb - before_mb) * 1000 / sizes.idle_connections,
    }


STARTUP = Phase(
    "startup",
    "start to the first useful Metadata answer",
    (Metric("startup_s", "s", (Target("ratio_max", 0.2), Target("value_max", 0.5))),),
    _startup,
    fresh=True,
)
MEMORY = Phase(
    "memory",
    "resident memory",
    (
        Metric("idle_mb", "MB", (Target("value_max", 60.0),)),
        Metric("loaded_mb", "MB", (Target("value_max", 150.0),)),
        Metric("peak_mb", "MB"),
    ),
    _memory,
    fresh=True,
    repeats_max=3,
)
MANY_PARTITIONS = Phase(
    "partitions_10k",
    "10,000 partitions: create, list, restart",
    (
        Metric("create_s", "s"),
        Metric("list_ms", "ms"),
        Metric("added_mb", "MB"),
        Metric("stop_s", "s"),
        Metric("restart_s", "s"),
        Metric("restarted_mb", "MB"),
    ),
    _many_partitions,
    fresh=True,
    repeats_max=1,
)
IDLE_CONNECTIONS = Phase(
    "idle_connections",
    "5,000 idle connections beside one producer of 1 KB",
    (
        Metric("rate_kept_percent", "%", (Target("value_min", 80.0),)),
        Metric("held_percent", "%", (Target("value_min", 100.0),)),
        Metric("opening_s", "s"),
        Metric("kb_per_connection", "KB"),
    ),
    _idle_connections,
)
PHASES = (IDLE_CONNECTIONS, STARTUP, MEMORY, MANY_PARTITIONS)
