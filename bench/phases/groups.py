"""Consumer groups: commits, rebalances in both protocols, consumption as members, and many idle groups."""

import time
from collections.abc import Callable
from dataclasses import replace
from statistics import median

from bench import procfs
from bench.members.classic import ClassicGroup
from bench.members.consumer import ConsumerGroup
from bench.members.coordination import commit_once, delete_groups, set_group_config, wait_for_coordinators
from bench.members.driver import Driver
from bench.phases.model import PARTITIONS, Bench, CpuUse, Phase, cpu_of
from bench.stats import Metric, Target
from bench.topics import topic

_COMMIT_GROUPS = 10  # of five consumers each: what one turn of a broker gets belongs to several groups
_COMMIT_PARTITIONS = 5
_SIZE_1K = 1024
_REBALANCE_TIMEOUT_S = 60.0
_IDLE_MEMBERS = 3
_IDLE_HEARTBEAT_S = 3.0  # the default of every client
_FORMING_AT_ONCE = 50


def _warm_up_groups(bench: Bench) -> None:
    """A round of every kind of work on groups."""
    _commit(bench, seconds=4)
    fewer = replace(bench, sizes=replace(bench.sizes, group_members=40, group_partitions=200, rebalances=3))
    _rebalance_classic(fewer)
    _rebalance_consumer(fewer)


def _commit(bench: Bench, seconds: int) -> tuple[dict[str, float], CpuUse]:
    port = bench.peer.port
    groups = [f"commits-{number}" for number in range(_COMMIT_GROUPS)]
    wait_for_coordinators(port, groups)
    with topic(bench.peer, "commits", _COMMIT_PARTITIONS) as name:
        for group in groups:
            commit_once(port, group, name)
        with cpu_of(bench.peer) as cpu:
            done = bench.load.commits(name, _COMMIT_PARTITIONS, "commits", _COMMIT_GROUPS, seconds)
    return done, cpu


def _commits(bench: Bench) -> dict[str, float]:
    done, cpu = _commit(bench, bench.sizes.commits_seconds)
    return {
        "commits_per_s": done["requests_per_s"],
        "cpu_us_per_commit": cpu.seconds * 1e6 / done["requests"],
        **{name: done[name] for name in ("p50_ms", "p99_ms", "p999_ms")},
    }


def _rebalance_classic(bench: Bench) -> dict[str, float]:
    # The coordinator does not look into subscriptions and assignments: a topic need not be there. Members
    # that have synced while others still join find that out by their next heartbeat, so it comes soon.
    def new_group(driver: Driver, group_id: str) -> ClassicGroup:
        sizes = bench.sizes
        return ClassicGroup(driver, group_id, "rebalance", sizes.group_partitions, 0.02, sizes.group_members)

    return _rebalance(bench, "rebalance-classic", new_group)


def _rebalance_consumer(bench: Bench) -> dict[str, float]:
    sizes = bench.sizes
    unbatched = "rebalance-unbatched"
    with topic(bench.peer, "rebalance", sizes.group_partitions) as name:

        def new_group(driver: Driver, group_id: str) -> ConsumerGroup:
            return ConsumerGroup(driver, group_id, name, sizes.group_partitions, sizes.group_members)

        batched = _rebalance(bench, "rebalance-consumer", new_group)
        set_group_config(bench.peer.port, unbatched, "consumer.assignment.interval.ms", "0")
        at_each_change = _rebalance(bench, unbatched, new_group)
    return {**batched, **{f"unbatched_{key}": value for key, value in at_each_change.items()}}


def _rebalance(
    bench: Bench, group_id: str, new_group: Callable[[Driver, str], ClassicGroup | ConsumerGroup]
) -> dict[str, float]:
    """Several groups one after the other; the medians."""
    rounds = [_one_group(bench, group_id, new_group) for _ in range(bench.sizes.rebalances)]
    return {
        "all_join_ms": median(joined for joined, _ in rounds),
        "one_leaves_ms": median(left for _, left in rounds),
    }


def _one_group(
    bench: Bench, group_id: str, new_group: Callable[[Driver, str], ClassicGroup | ConsumerGroup]
) -> tuple[float, float]:
    port = bench.peer.port
    wait_for_coordinators(port, [group_id])
    with Driver(port) as driver:
        group = new_group(driver, group_id)
        joined_ms = _until_stable(driver, group, group.join)
        group.pause()
        driver.run_until(lambda: group.is_quiet, _REBALANCE_TIMEOUT_S, "the last heartbeats")
        left_ms = _until_stable(driver, group, group.leave_one)
        group.pause()
        driver.run_until(lambda: group.is_quiet, _REBALANCE_TIMEOUT_S, "the last heartbeats")
        group.leave_all()
        driver.run_until(lambda: group.is_gone, 30.0, "leaving")
    delete_groups(port, [group_id])
    return joined_ms, left_ms


def _until_stable(driver: Driver, group: ClassicGroup | ConsumerGroup, begin: Callable[[], None]) -> float:
    started = time.monotonic()
    begin()
    driver.run_until(lambda: group.is_stable, _REBALANCE_TIMEOUT_S, "a rebalance")
    taken_ms = (time.monotonic() - started) * 1000
    group.check()
    return taken_ms


def _consume_group(bench: Bench) -> dict[str, float]:
    messages = bench.sizes.messages_1k
    group_id = "consume-group"
    wait_for_coordinators(bench.peer.port, [group_id])
    with topic(bench.peer, "consume-group", PARTITIONS) as name:
        bench.warm_pages()
        bench.load.produce(name, messages, _SIZE_1K)

        def rate(group: str | None) -> float:
            done = bench.load.consume_side_by_side(name, PARTITIONS, messages, _SIZE_1K, group)
            return done.megabytes_per_s

        rate(None)  # the first reader pays for what is not warm
        # Interleaved, so that a machine that gets slower or faster meanwhile does not show.
        order = (None, group_id, group_id, None) * bench.sizes.consume_rounds
        rates = [(group, rate(group)) for group in order]
    delete_groups(bench.peer.port, [group_id])
    grouped = median(value for group, value in rates if group)
    plain = median(value for group, value in rates if not group)
    return {
        "group_mb_per_s": grouped,
        "plain_mb_per_s": plain,
        "rate_kept_percent": 100 * grouped / plain,
    }


def _idle_groups(bench: Bench) -> dict[str, float]:
    peer, sizes = bench.peer, bench.sizes
    names = [f"idle-{number}" for number in range(sizes.idle_groups)]
    wait_for_coordinators(peer.port, names)
    before_mb = procfs.memory(peer.pid).resident_mb
    with Driver(peer.port) as driver:
        groups = [
            ClassicGroup(driver, name, "idle", _IDLE_MEMBERS, _IDLE_HEARTBEAT_S, _IDLE_MEMBERS)
            for name in names
        ]
        for first in range(0, len(groups), _FORMING_AT_ONCE):
            _form(driver, groups[first : first + _FORMING_AT_ONCE])
        members = [member for group in groups for member in group.members]
        for number, member in enumerate(members):
            member.begin_heartbeats(_IDLE_HEARTBEAT_S * number / len(members))
        driver.run_for(sizes.settle_s)
        with cpu_of(peer) as cpu:
            driver.run_for(sizes.idle_groups_seconds)
        formed_mb = procfs.memory(peer.pid).resident_mb
        _dissolve(driver, groups)
    delete_groups(peer.port, names)
    return {
        "cpu_percent": 100 * cpu.seconds / sizes.idle_groups_seconds,
        "added_mb": formed_mb - before_mb,
        "rss_mb": formed_mb,
    }


def _form(driver: Driver, groups: list[ClassicGroup]) -> None:
    for group in groups:
        group.heartbeat_s = 0.02
        group.join()
    driver.run_until(lambda: all(group.is_stable for group in groups), _REBALANCE_TIMEOUT_S, "forming groups")
    for group in groups:
        group.check()
        group.heartbeat_s = _IDLE_HEARTBEAT_S


def _dissolve(driver: Driver, groups: list[ClassicGroup]) -> None:
    """All members leave: left alone their sessions would end in the middle of a later phase."""
    for group in groups:
        group.pause()
    driver.run_until(lambda: all(group.is_quiet for group in groups), 30.0, "the last heartbeats")
    for group in groups:
        group.leave_all()
    driver.run_until(lambda: all(group.is_gone for group in groups), 60.0, "leaving")


def _rebalance_metrics(prefix: str = "") -> tuple[Metric, ...]:
    names = ("all_join_ms", "one_leaves_ms")
    return tuple(Metric(f"{prefix}{name}", "ms", (Target("ratio_max", 1.0),)) for name in names)


PHASES = (
    Phase(
        "commits",
        "one offset per request, 50 connections, 10 groups",
        (
            Metric("commits_per_s", "commits/s", (Target("ratio_min", 1.0),)),
            Metric("cpu_us_per_commit", "CPU us/commit"),
            Metric("p50_ms", "ms"),
            Metric("p99_ms", "ms", (Target("ratio_max", 1.0),)),
            Metric("p999_ms", "ms"),
        ),
        _commits,
        warm_up=_warm_up_groups,
    ),
    Phase(
        "rebalance_classic",
        "100 members over 1,000 partitions until stable, classic protocol",
        _rebalance_metrics(),
        _rebalance_classic,
        warm_up=_warm_up_groups,
    ),
    Phase(
        "rebalance_consumer",
        "the same with the consumer protocol, heartbeats each 100 ms",
        _rebalance_metrics() + _rebalance_metrics("unbatched_"),
        _rebalance_consumer,
        warm_up=_warm_up_groups,
    ),
    Phase(
        "consume_group",
        "consume 1 KB with 4 members of a group, and with 4 consumers without",
        (
            Metric("group_mb_per_s", "MB/s"),
            Metric("plain_mb_per_s", "MB/s"),
            Metric("rate_kept_percent", "%", (Target("value_min", 95.0),)),
        ),
        _consume_group,
        warm_up=_warm_up_groups,
    ),
    Phase(
        "idle_groups",
        "1,000 groups of 3 members that heartbeat each 3 s",
        (
            Metric("cpu_percent", "% CPU", (Target("value_max", 10.0),)),
            Metric("added_mb", "MB"),
            Metric("rss_mb", "MB"),
        ),
        _idle_groups,
        warm_up=_warm_up_groups,
    ),
)
