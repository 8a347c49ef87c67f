"""Transactions: small ones one after the other, bulk produce inside of them, reading what is committed."""

import os
from statistics import median

from bench.members.coordination import commit_once, delete_groups, wait_for_coordinators
from bench.phases.model import PARTITIONS, Bench, Phase, cpu_of
from bench.stats import Metric, Target
from bench.topics import topic

_SIZE_1K = 1024
_TRANSACTION_MS = 100
_MANY_PRODUCERS = 16


def _warm_up_transactions(bench: Bench) -> None:
    """A round of every kind of work on transactions."""
    _small(bench, 1, seconds=2)
    _small(bench, _MANY_PRODUCERS, seconds=2)
    with topic(bench.peer, "warm-up-transactions", PARTITIONS) as name:
        for transaction_ms in (_TRANSACTION_MS, 0):
            bench.load.produce_idempotent(name, 50_000, _SIZE_1K, transaction_ms)


def _small(bench: Bench, producers: int, seconds: int) -> dict[str, float]:
    port = bench.peer.port
    groups = [f"transactions-{number}" for number in range(producers)]
    wait_for_coordinators(port, groups)
    with topic(bench.peer, "transactions", PARTITIONS) as name:
        for group in groups:
            commit_once(port, group, name)
        with cpu_of(bench.peer) as cpu:
            done = bench.load.transactions(name, PARTITIONS, "transactions", producers, seconds)
    delete_groups(port, groups)
    return {
        "per_s": done["transactions_per_s"],
        "cpu_us": cpu.seconds * 1e6 / done["transactions"],
        "commit_p50_ms": done["p50_ms"],
        "commit_p99_ms": done["p99_ms"],
    }


def _transactions(bench: Bench) -> dict[str, float]:
    seconds = bench.sizes.transactions_seconds
    one, many = _small(bench, 1, seconds), _small(bench, _MANY_PRODUCERS, seconds)
    return {
        **{f"one_{name}": value for name, value in one.items()},
        **{f"sixteen_{name}": value for name, value in many.items()},
    }


def _txn_produce(bench: Bench) -> dict[str, float]:
    """In transactions and in none, each on a topic of its own so that both write to new files."""
    messages = bench.sizes.messages_1k // 2

    def rate(transaction_ms: int) -> float:
        with topic(bench.peer, f"txn-produce-{transaction_ms}", PARTITIONS) as name:
            bench.warm_pages()
            return bench.load.produce_idempotent(name, messages, _SIZE_1K, transaction_ms).megabytes_per_s

    # Interleaved, so that a machine that gets slower or faster meanwhile does not show.
    order = (0, _TRANSACTION_MS, _TRANSACTION_MS, 0) * bench.sizes.txn_rounds
    rates = [(transaction_ms, rate(transaction_ms)) for transaction_ms in order]
    return _kept("txn", [value for ms, value in rates if ms], [value for ms, value in rates if not ms])


def _read_committed(bench: Bench) -> dict[str, float]:
    messages = bench.sizes.messages_1k
    with topic(bench.peer, "read-committed", PARTITIONS) as name:
        bench.warm_pages()
        bench.load.produce_idempotent(name, messages, _SIZE_1K, _TRANSACTION_MS)
        os.sync()  # else the quicker of the brokers to write is read while the kernel still saves its pages

        def rate(isolation: str) -> float:
            done = bench.load.consume_side_by_side(name, PARTITIONS, messages, _SIZE_1K, None, isolation)
            return done.megabytes_per_s

        committed, uncommitted = "read_committed", "read_uncommitted"
        rate(committed)  # the first reader pays for what is not warm
        order = (uncommitted, committed, committed, uncommitted) * bench.sizes.consume_rounds
        rates = [(isolation, rate(isolation)) for isolation in order]
    return _kept(
        "committed",
        [value for isolation, value in rates if isolation == committed],
        [value for isolation, value in rates if isolation == uncommitted],
    )


def _kept(name: str, rates: list[float], plain_rates: list[float]) -> dict[str, float]:
    rate, plain = median(rates), median(plain_rates)
    return {
        f"{name}_mb_per_s": rate,
        "plain_mb_per_s": plain,
        "rate_kept_percent": 100 * rate / plain,
    }


def _small_metrics(prefix: str) -> tuple[Metric, ...]:
    return (
        Metric(f"{prefix}_per_s", "tx/s", (Target("ratio_min", 1.5),)),
        Metric(f"{prefix}_cpu_us", "CPU us/tx"),
        Metric(f"{prefix}_commit_p50_ms", "ms"),
        Metric(f"{prefix}_commit_p99_ms", "ms", (Target("ratio_max", 1.0),)),
    )


PHASES = (
    Phase(
        "transactions",
        "10 records of 100 B over 4 partitions and an offset in each; one producer, then 16",
        _small_metrics("one") + _small_metrics("sixteen"),
        _transactions,
        warm_up=_warm_up_transactions,
    ),
    Phase(
        "txn_produce_1k",
        "produce 1 KB in transactions of 100 ms, and idempotent without",
        (
            Metric("txn_mb_per_s", "MB/s", (Target("ratio_min", 2.0),)),
            Metric("plain_mb_per_s", "MB/s"),
            Metric("rate_kept_percent", "%", (Target("value_min", 95.0),)),
        ),
        _txn_produce,
        warm_up=_warm_up_transactions,
    ),
    Phase(
        "read_committed",
        "consume 1 KB of transactions with read_committed, and with read_uncommitted",
        (
            Metric("committed_mb_per_s", "MB/s"),
            Metric("plain_mb_per_s", "MB/s"),
            Metric("rate_kept_percent", "%", (Target("value_min", 95.0),)),
        ),
        _read_committed,
        warm_up=_warm_up_transactions,
    ),
)
