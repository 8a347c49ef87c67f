"""Requests that wait until an offset is reached, in the order of their offsets.

Appends to a log come in offset order, so waiters nearly always do too, and taking the satisfied ones is
popping from the front. Only a batch that is sent again waits for an offset that is behind already.
"""

from collections import deque
from typing import Generic, TypeVar

W = TypeVar("W")


class OffsetWaiters(Generic[W]):
    """A queue of (offset, waiter) that hands out every waiter whose offset has been reached."""

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        # A deque once somebody has waited: an empty one takes most of a kilobyte, and partitions are many.
        self.waiting: deque[tuple[int, W]] | tuple[()] = ()

    def add(self, offset: int, waiter: W) -> None:
        """Wait for `offset`."""
        waiting = self.waiting
        if isinstance(waiting, tuple):
            waiting = self.waiting = deque()
        place = len(waiting)
        while place and waiting[place - 1][0] > offset:
            place -= 1
        waiting.insert(place, (offset, waiter))

    def remove(self, waiter: W) -> None:
        """Forget a waiter that timed out or whose client is gone."""
        if self.waiting:
            self.waiting = deque(entry for entry in self.waiting if entry[1] is not waiter)

    def take_reached(self, offset: int) -> list[W]:
        """Remove and return the waiters for offsets up to and including `offset`."""
        reached: list[W] = []
        while self.waiting and self.waiting[0][0] <= offset:
            reached.append(self.waiting.popleft()[1])
        return reached

    def take_all(self) -> list[W]:
        """Remove and return everybody: the partition is going away."""
        waiters = [waiter for _, waiter in self.waiting]
        self.waiting = ()
        return waiters
