"""Small requests: one record per request from 50 connections, and the way of a record from end to end."""

from bench.phases.model import PARTITIONS, Bench, Phase, cpu_of
from bench.stats import Metric, Target
from bench.topics import topic

_E2E_RATE_PER_S = 1_000


def _requests(bench: Bench) -> dict[str, float]:
    with topic(bench.peer, "requests", PARTITIONS) as name:
        bench.warm_pages()
        with cpu_of(bench.peer) as cpu:
            done = bench.load.requests(name, PARTITIONS, bench.sizes.requests_seconds)
        return {
            "requests_per_s": done["requests_per_s"],
            "cpu_us_per_request": cpu.seconds * 1e6 / done["requests"],
            **{name: done[name] for name in ("p50_ms", "p99_ms", "p999_ms")},
        }


def _end_to_end(bench: Bench) -> dict[str, float]:
    with topic(bench.peer, "end-to-end", 1) as name:
        with cpu_of(bench.peer) as cpu:
            sizes = bench.sizes
            done = bench.load.end_to_end(name, _E2E_RATE_PER_S, sizes.e2e_messages, sizes.e2e_warmup)
        return {
            **{name: done[name] for name in ("p50_ms", "p99_ms", "p999_ms")},
            "cpu_percent": 100 * cpu.seconds / done["seconds"],
        }


PHASES = (
    Phase(
        "requests",
        "one 100 B record per request, 50 connections",
        (
            Metric("requests_per_s", "req/s", (Target("ratio_min", 1.0),)),
            Metric("cpu_us_per_request", "CPU us/req", (Target("ratio_max", 0.6),)),
            Metric("p50_ms", "ms"),
            Metric("p99_ms", "ms", (Target("ratio_max", 1.0),)),
            Metric("p999_ms", "ms"),
        ),
        _requests,
    ),
    Phase(
        "e2e",
        "end to end at 1,000/s, linger 0, acks=all",
        (
            Metric("p50_ms", "ms", (Target("ratio_max", 1.0),)),
            Metric("p99_ms", "ms", (Target("ratio_max", 0.5), Target("value_max", 10.0))),
            Metric("p999_ms", "ms"),
            Metric("cpu_percent", "% CPU"),
        ),
        _end_to_end,
    ),
)
