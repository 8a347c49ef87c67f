"""Running simulations by their seeds: the rules hold in every history, and a part that is broken on purpose
is found out. MAINSTEM_TEST_SEED gives other histories.
"""

import os
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import pytest

SEED = int(os.environ.get("MAINSTEM_TEST_SEED", "1"))

Simulate = Callable[[int], object]


class Violation(Exception):
    """A rule did not hold."""


class Breakage(NamedTuple):
    """`owner.name` becomes `broken`; `rule` is a pattern of what is then violated."""

    owner: object
    name: str
    broken: Callable[..., Any]
    rule: str


def soaked(values: Iterable[int], by_default: int) -> list[Any]:
    """Parameters of a test: so many of them run by default, the others, which say the same, with --soak."""
    return [
        pytest.param(value, marks=[pytest.mark.soak] if place >= by_default else [])
        for place, value in enumerate(values)
    ]


def simulate_all(simulate: Simulate, seeds: Iterable[int]) -> None:
    """Say of which seed a failure is."""
    for seed in seeds:
        try:
            simulate(seed)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error}") from error


def assert_found_out(
    monkeypatch: pytest.MonkeyPatch, breakage: Breakage, simulate: Simulate, seed_count: int
) -> None:
    monkeypatch.setattr(breakage.owner, breakage.name, breakage.broken)
    with pytest.raises(Violation, match=breakage.rule):
        _simulate_each(simulate, seed_count)


def _simulate_each(simulate: Simulate, seed_count: int) -> None:
    for seed in range(seed_count):
        simulate(seed)
