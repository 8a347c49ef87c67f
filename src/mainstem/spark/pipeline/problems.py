"""A mistake in a pipeline: where it is, what is wrong, and what to write instead.

Problems are collected, never raised one by one: whoever validates a file sees all of its mistakes at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from mainstem.nearest import suggestion

Path = tuple[str | int, ...]


class Problem(NamedTuple):
    """`path` leads to the part at fault: keys and positions from the top of the pipeline."""

    path: Path
    message: str
    hint: str | None = None
    # Lines and columns into the text at that path (a SQL query, also one in a file), counted from 0.
    inside: tuple[int, int] | None = None
    # The fault is in the key itself, not in its value.
    at_key: bool = False


class PipelineError(Exception):
    """The pipeline cannot be used; `problems` say why."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = list(problems)
        super().__init__("; ".join(f"{dotted(p.path)}: {p.message}" for p in self.problems))


def dotted(path: Path) -> str:
    """`sources.orders.topics[1]`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text or "pipeline"


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "known are") -> str | None:
    """A hint with the nearest known name, or with all of them."""
    names = sorted(known)
    return suggestion(name, names, f"{otherwise} {', '.join(names)}" if names else "") or None
