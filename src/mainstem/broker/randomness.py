"""The node's only source of randomness, so that a simulation can hand in one that repeats itself."""

from random import SystemRandom

from mainstem.protocol.uuids import random_uuid


class Randomness:
    """The operating system's: nobody guesses it, and no two nodes have the same."""

    __slots__ = ("_random",)

    def __init__(self) -> None:
        self._random = SystemRandom()

    def uuid(self) -> bytes:
        """An id that nothing else has."""
        return random_uuid()

    def fraction(self) -> float:
        """From 0 to 1, the latter not included."""
        return self._random.random()

    def number(self, first: int, end: int) -> int:
        """From `first` to `end`, the latter not included."""
        return self._random.randrange(first, end)
