"""What metrics cost: the same loads on two brokers of the same kind by turns, one that counts and one that
does not; and a scrape of ten thousand partitions, seen by a client that asks something small meanwhile.

Only Mainstem is measured: Apache Kafka always counts.
"""

import multiprocessing
import re
import socket
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

from bench import procfs
from bench.loads import Loader
from bench.peers import Mainstem, Peer
from bench.phases.model import PARTITIONS, Bench, Phase
from bench.stats import Metric, Target
from bench.topics import create_topics, topic, wait_for_leaders
from bench.wire import free_port, receive_frame, small_frame

_TOPICS_PER_REQUEST = 10
_SCRAPES = 5
# Two processes of the same program differ by several percent of CPU, and so do two moments of one process.
# So each pair of brokers is new, does a few short rounds by turns, and there are many pairs.
_PAIRS = 24
_ROUNDS = 3
_REQUESTS = 10_000
_ROUND_SECONDS_MAX = 5
_BULK_BYTES = 128 * 1024**2

Load = Callable[[Loader, str], tuple[float, float]]  # units of work, and how many of them in a second


def _cost(bench: Bench) -> dict[str, float]:
    if not isinstance(bench.peer, Mainstem):
        return {}

    def requests(load: Loader, name: str) -> tuple[float, float]:
        done = load.requests(name, PARTITIONS, _ROUND_SECONDS_MAX, _REQUESTS)
        return done["requests"], done["requests_per_s"]

    def produce(load: Loader, name: str) -> tuple[float, float]:
        bench.warm_pages(2 * _BULK_BYTES)  # what the kernel takes for new ones would hide the rest
        done = load.bulk(name, PARTITIONS, _BULK_BYTES // 1024, 1024)
        return done.gigabytes, done.megabytes_per_s

    small = _compare(bench, requests)
    bulk = _compare(bench, produce)
    return {
        "requests_cpu_percent": 100 * (small[0] - 1),
        "requests_rate_percent": 100 * small[1],
        "produce_cpu_percent": 100 * (bulk[0] - 1),
        "produce_rate_percent": 100 * bulk[1],
    }


def _compare(bench: Bench, load: Load) -> tuple[float, float]:
    """CPU of a broker that counts for a unit of work, and its rate, as multiples of one that does not: the
    medians over all pairs of brokers.
    """
    found = [_compare_pair(bench, load, bench.peer.folder / f"pair-{number}") for number in range(_PAIRS)]
    return median(cost for cost, _ in found), median(rate for _, rate in found)


def _compare_pair(bench: Bench, load: Load, folder: Path) -> tuple[float, float]:
    plain, counting = Mainstem(folder / "plain"), Mainstem(folder / "counting", ("--metrics-port", "0"))
    costs, rates = [], []
    try:
        plain.start()
        counting.start()
        for number in range(1 + _ROUNDS):
            measured: dict[Peer, tuple[float, float]] = {}
            for peer in (plain, counting) if number % 2 else (counting, plain):
                with topic(peer, f"metrics-{number}", PARTITIONS) as name:
                    before_ns = procfs.cpu_ns(peer.pid)
                    units, rate = load(Loader(bench.load.tools, peer), name)
                    measured[peer] = ((procfs.cpu_ns(peer.pid) - before_ns) / units, rate)
            if number:  # the first round warms up
                costs.append(measured[counting][0] / measured[plain][0])
                rates.append(measured[counting][1] / measured[plain][1])
    finally:
        plain.remove()
        counting.remove()
    return median(costs), median(rates)


def _scrape(bench: Bench) -> dict[str, float]:
    if not isinstance(bench.peer, Mainstem):
        return {}
    port = free_port()
    peer = Mainstem(bench.peer.folder / "scraped", ("--metrics-port", str(port)))
    sizes = bench.sizes
    names = [f"many-{number:04d}" for number in range(sizes.many_topics)]
    try:
        peer.start()
        for first in range(0, sizes.many_topics, _TOPICS_PER_REQUEST):
            some = names[first : first + _TOPICS_PER_REQUEST]
            create_topics(peer, some, sizes.partitions_per_topic, timeout_s=600.0)
        wait_for_leaders(peer, names, sizes.partitions_per_topic, timeout_s=600.0)
        time.sleep(sizes.settle_s)
        return _scraped(peer, f"http://127.0.0.1:{port}/metrics", sizes.idle_groups_seconds)
    finally:
        peer.remove()


def _scraped(peer: Peer, url: str, idle_seconds: float) -> dict[str, float]:
    before = procfs.cpu_seconds(peer.pid)
    time.sleep(idle_seconds)
    idle_percent = 100 * (procfs.cpu_seconds(peer.pid) - before) / idle_seconds
    # A process of its own: a thread would keep the client that measures from running, not the broker.
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        pool.submit(_scrapes, url, 1).result()
        quiet_ms = _longest_ms(peer.port, pool.submit(time.sleep, 2.0))
        scraping = pool.submit(_scrapes, url, _SCRAPES)
        stall_ms = _longest_ms(peer.port, scraping)
        taken_s, texts = scraping.result()
    return {
        "scrape_ms": 1000 * median(taken_s),
        "scrape_busy_ms": 1000 * (_busy_seconds(texts[-1]) - _busy_seconds(texts[0])) / (_SCRAPES - 1),
        "scrape_kb": len(texts[-1]) / 1000,
        "longest_ms": stall_ms,
        "longest_quiet_ms": quiet_ms,
        "idle_percent": idle_percent,
    }


def _scrapes(url: str, count: int) -> tuple[list[float], list[bytes]]:
    """How long each of some scrapes took, and their texts."""
    taken_s: list[float] = []
    texts: list[bytes] = []
    for _ in range(count):
        started = time.monotonic()
        with urllib.request.urlopen(url, timeout=60) as answer:
            texts.append(answer.read())
        taken_s.append(time.monotonic() - started)
        time.sleep(15 * taken_s[-1])  # until then the same text is given out
    return taken_s, texts


def _busy_seconds(text: bytes) -> float:
    """What all scrapes before this one took of the event loop."""
    (line,) = re.findall(rb"(?m)^mainstem_scrape_busy_seconds_total (.+)$", text)
    return float(line)


def _longest_ms(port: int, work: Future[Any]) -> float:
    """The longest time that a small request took until the work was done."""
    longest_s = 0.0
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        while not work.done():
            started = time.monotonic()
            connection.sendall(small_frame(1))
            receive_frame(connection)
            longest_s = max(longest_s, time.monotonic() - started)
            time.sleep(0.001)
    return 1000 * longest_s


PHASES = (
    Phase(
        "metrics_cost",
        "the same load with and without metrics",
        (
            Metric("requests_cpu_percent", "% more CPU", (Target("value_max", 2.0),)),
            Metric("requests_rate_percent", "% of the rate"),
            Metric("produce_cpu_percent", "% more CPU", (Target("value_max", 2.0),)),
            Metric("produce_rate_percent", "% of the rate"),
        ),
        _cost,
        fresh=True,
    ),
    Phase(
        "metrics_scrape",
        "a scrape of 10,000 partitions, beside a client with small requests",
        (
            Metric("scrape_ms", "ms"),
            Metric("scrape_busy_ms", "ms of the event loop"),
            Metric("scrape_kb", "KB"),
            Metric("longest_ms", "ms", (Target("value_max", 20.0),)),
            Metric("longest_quiet_ms", "ms"),
            Metric("idle_percent", "% CPU", (Target("value_max", 2.0),)),
        ),
        _scrape,
        fresh=True,
        repeats_max=1,
    ),
)
