"""Runs phases: starts the peers, warms them up, alternates between them and repeats. Judges nothing.

A phase that fails on one peer is noted and the rest goes on.
"""

import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.errors import BenchError
from bench.loads import Loader
from bench.peers import PEERS, Earlier, Peer
from bench.phases.model import Bench, Phase, Sizes
from bench.stats import EARLIER
from bench.tools import Tools

Values = dict[str, list[float]]  # metric -> one value for each repetition


@dataclass
class Results:
    """phase -> peer -> metric -> values, and what went wrong."""

    values: dict[str, dict[str, Values]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def add(self, phase: str, peer: str, measured: dict[str, float]) -> None:
        metrics = self.values.setdefault(phase, {}).setdefault(peer, defaultdict(list))
        for name, value in measured.items():
            metrics[name].append(value)


@dataclass(frozen=True)
class Plan:
    phases: Sequence[Phase]
    peers: Sequence[str]
    repeat: int
    warmup_s: float
    sizes: Sizes
    earlier: Path | None = None  # the checkout of the peer of that name

    def peer(self, name: str, folder: Path) -> Peer:
        if name == EARLIER:
            assert self.earlier is not None
            return Earlier(folder, self.earlier)
        return PEERS[name](folder)


def run(plan: Plan, tools: Tools, work_dir: Path) -> Results:
    results = Results()
    on_warm = [phase for phase in plan.phases if not phase.fresh]
    if on_warm:
        with _warm_peers(plan, tools, work_dir) as peers:
            for phase in on_warm:
                for name in _schedule(plan, phase):
                    _measure(results, phase, _bench(peers[name], tools, plan))
    for phase in plan.phases:
        if phase.fresh:
            for number, name in enumerate(_schedule(plan, phase)):
                peer = plan.peer(name, work_dir / f"{phase.name}-{number}-{name}")
                try:
                    _measure(results, phase, _bench(peer, tools, plan))
                finally:
                    peer.remove()
    return results


def alternate(peers: Sequence[str], repeat: int) -> list[str]:
    """The order of measurement: every peer once a repetition, each repetition beginning with another."""
    order: list[str] = []
    for number in range(repeat):
        shift = number % len(peers)
        order += [*peers[shift:], *peers[:shift]]
    return order


def _schedule(plan: Plan, phase: Phase) -> list[str]:
    return alternate(plan.peers, min(plan.repeat, phase.repeats_max or plan.repeat))


def _bench(peer: Peer, tools: Tools, plan: Plan) -> Bench:
    return Bench(peer, Loader(tools, peer), plan.sizes)


def _measure(results: Results, phase: Phase, bench: Bench) -> None:
    name = bench.peer.name
    try:
        measured = phase.run(bench)
    except (BenchError, OSError) as error:
        results.failures.append(f"{phase.name} on {name}: {error}")
        _say(f"{phase.name:16} {name:9} FAILED: {error}")
        return
    results.add(phase.name, name, measured)
    _say(f"{phase.name:16} {name:9} " + "  ".join(f"{key}={value:.4g}" for key, value in measured.items()))


@contextmanager
def _warm_peers(plan: Plan, tools: Tools, work_dir: Path) -> Iterator[dict[str, Peer]]:
    peers: dict[str, Peer] = {}
    try:
        for name in plan.peers:
            peers[name] = plan.peer(name, work_dir / name)
            taken_s = peers[name].start()
            _say(f"{name} is up after {taken_s:.2f} s on {peers[name].bootstrap}; warming up")
            _warm_up(_bench(peers[name], tools, plan), plan)
        yield peers
    finally:
        for peer in peers.values():
            peer.remove()


def _warm_up(bench: Bench, plan: Plan) -> None:
    """Each kind of load that the phases have, until its time is over: a JVM compiles what runs often."""
    for load in dict.fromkeys(phase.warm_up for phase in plan.phases if not phase.fresh):
        deadline = time.monotonic() + plan.warmup_s
        while time.monotonic() < deadline:
            load(bench)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
