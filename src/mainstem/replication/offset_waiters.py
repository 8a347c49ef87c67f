"""Requests that wait until an offset is reached, in the order of their offsets.

Appends to a log come in offset order, so waiters do too, and taking the satisfied ones is popping from
the front.
"""

from collections import deque
from typing import Generic, TypeVar

W = TypeVar("W")


class OffsetWaiters(Generic[W]):
    """A queue of (offset, waiter) that hands out every waiter whose offset has been reached."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, W]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, offset: int, waiter: W) -> None:
        """Wait for `offset`, which is never below that of a waiter that came before."""
        assert not self._waiting or self._waiting[-1][0] <= offset
        self._waiting.append((offset, waiter))

    def remove(self, waiter: W) -> None:
        """Forget a waiter that timed out or whose client is gone."""
        self._waiting = deque(entry for entry in self._waiting if entry[1] is not waiter)

    def take_reached(self, offset: int) -> list[W]:
        """Remove and return the waiters for offsets up to and including `offset`."""
        reached: list[W] = []
        while self._waiting and self._waiting[0][0] <= offset:
            reached.append(self._waiting.popleft()[1])
        return reached

    def take_all(self) -> list[W]:
        """Remove and return everybody: the partition is going away."""
        waiters = [waiter for _, waiter in self._waiting]
        self._waiting.clear()
        return waiters
