"""What the members of a group wrote down, and the promises it is held against.

At least once: every message reached some member. Order: while a member owns a partition it gets offset after
offset, none left out. Commits: what was acknowledged is never lost, and no committed offset goes back.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

Lines = Sequence[str]
Offsets = Mapping[int, int]


class HistoryError(AssertionError):
    """A promise was broken; the message says which, and where."""


def read_lines(path: Path) -> list[str]:
    """The whole lines of a history; a member that was killed may have left half of one."""
    text = path.read_text() if path.exists() else ""
    return text[: text.rfind("\n") + 1].splitlines()


def check_order(history: Lines) -> None:
    """One member's life: each message is what was written there, and none is left out or comes twice while it
    owns the partition.
    """
    expected: dict[int, int | None] = {}  # by owned partition; None before its first message
    for line in history:
        kind, *fields = line.split()
        if kind == "assigned":
            expected[int(fields[0])] = None
        elif kind in ("revoked", "lost"):
            expected.pop(int(fields[0]), None)
        elif kind == "got":
            partition, offset, value = map(int, fields)
            if value != offset:
                raise HistoryError(f"partition {partition} offset {offset} holds {value}")
            if partition not in expected:
                raise HistoryError(f"partition {partition} offset {offset} came to a member without it")
            if expected[partition] not in (None, offset):
                raise HistoryError(f"partition {partition}: {offset} came in place of {expected[partition]}")
            expected[partition] = offset + 1


def check_delivered(histories: Sequence[Lines], ends: Offsets) -> int:
    """A whole group: every message up to the ends came at least once. Returns how many came."""
    found: dict[int, set[int]] = {partition: set() for partition in ends}
    for history in histories:
        for line in history:
            if line.startswith("got "):
                _, number, offset, _ = line.split()
                found[int(number)].add(int(offset))
    for partition, end in ends.items():
        missing = sorted(set(range(end)) - found[partition])
        if missing:
            raise HistoryError(
                f"{len(missing)} messages of partition {partition} never came, the first is {missing[0]}"
            )
    return sum(map(len, found.values()))


def acknowledged(histories: Sequence[Lines]) -> dict[int, int]:
    """The highest offset of every partition that a member was told is committed."""
    highest: dict[int, int] = {}
    for history in histories:
        for line in history:
            if line.startswith("committed "):
                _, partition, offset = line.split()
                highest[int(partition)] = max(highest.get(int(partition), 0), int(offset))
    return highest


class CommitWatch:
    """Looks at a group's committed offsets again and again."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}

    def look(self, committed: Offsets, histories: Sequence[Lines]) -> None:
        """`histories` as they were before `committed` was asked for."""
        for partition, offset in acknowledged(histories).items():
            if committed.get(partition, -1) < offset:
                raise HistoryError(
                    f"partition {partition}: {offset} was acknowledged, "
                    f"{committed.get(partition)} is committed"
                )
        for partition, offset in self._seen.items():
            if committed.get(partition, -1) < offset:
                raise HistoryError(
                    f"partition {partition}: the commit went back from {offset} to {committed.get(partition)}"
                )
        self._seen = dict(committed)
