"""The rules that a value can be held to, each with a sentence part that says what is allowed.

Rules look at one value of one setting only; what several settings must agree on is checked where they meet.
A rule must never change a value.
"""

from typing import Protocol

from msgspec import Struct


class Validator(Protocol):
    """Anything that can say what is wrong with a typed value."""

    @property
    def allowed(self) -> str:
        """What is allowed, as words that follow "allowed:"."""

    def problem(self, value: object) -> str | None:
        """What is wrong, as words that follow "is"; None when the value is good."""


class Range(Struct, frozen=True):
    """A number between two bounds, both included; None leaves a side open. `also` is one more good value."""

    low: float | None = None
    high: float | None = None
    also: int | None = None

    @property
    def allowed(self) -> str:
        if self.high is None:
            words = f"{self.low} or more"
        else:
            words = f"{self.low} to {self.high}"
        return words if self.also is None else f"{words}, or {self.also}"

    def problem(self, value: object) -> str | None:
        if value is None or not isinstance(value, int | float) or value == self.also:
            return None
        inside = (self.low is None or value >= self.low) and (self.high is None or value <= self.high)
        return None if inside else "out of range"


class OneOf(Struct, frozen=True):
    """One word out of a few."""

    words: tuple[str, ...]
    ignore_case: bool = False

    @property
    def allowed(self) -> str:
        return ", ".join(self.words)

    def problem(self, value: object) -> str | None:
        given = value.lower() if self.ignore_case and isinstance(value, str) else value
        return None if value is None or given in self.words else "not one of the known words"


class EachOf(Struct, frozen=True):
    """A list of words, each out of a few."""

    words: tuple[str, ...]
    may_be_empty: bool = True
    distinct: bool = True

    @property
    def allowed(self) -> str:
        return f"a list of {', '.join(self.words)}"

    def problem(self, value: object) -> str | None:
        items = value if isinstance(value, tuple) else ()
        if not items and not self.may_be_empty:
            return "empty"
        if self.distinct and len(set(items)) != len(items):
            return "a list that repeats an item"
        return None if all(item in self.words for item in items) else "not made of the known words"


class Items(Struct, frozen=True):
    """A list of distinct, non-blank items."""

    may_be_empty: bool = True

    @property
    def allowed(self) -> str:
        return "items that differ, separated by commas" + ("" if self.may_be_empty else ", at least one")

    def problem(self, value: object) -> str | None:
        items = value if isinstance(value, tuple) else ()
        if not items:
            return None if self.may_be_empty else "empty"
        if "" in items:
            return "a list with an empty item"
        return "a list that repeats an item" if len(set(items)) != len(items) else None


class NonEmpty(Struct, frozen=True):
    """Text that is there."""

    @property
    def allowed(self) -> str:
        return "any text that is not empty"

    def problem(self, value: object) -> str | None:
        return "empty" if value == "" else None


class OffsetReset(Struct, frozen=True):
    """Where to begin: at one end of the log, or some time ago."""

    @property
    def allowed(self) -> str:
        return "earliest, latest, or by_duration: with an ISO 8601 duration such as by_duration:PT1H"

    def problem(self, value: object) -> str | None:
        if value in ("earliest", "latest"):
            return None
        from mainstem.durations import is_iso_duration  # not at every start

        word, _, duration = str(value).partition(":")
        is_good = word == "by_duration" and is_iso_duration(duration)
        return None if is_good else "neither an end of the log nor a duration"


class ThrottledReplicas(Struct, frozen=True):
    """`*`, or replicas written as partition:broker."""

    @property
    def allowed(self) -> str:
        return "* or a list such as 0:1,1:2 (partition:broker)"

    def problem(self, value: object) -> str | None:
        items = value if isinstance(value, tuple) else ()
        if items == ("*",):
            return None
        for item in items:
            partition, _, broker = item.partition(":")
            if not (partition.isascii() and partition.isdigit() and broker.isascii() and broker.isdigit()):
                return "not a list of replicas"
        return None


def at_least(low: float) -> Range:
    return Range(low)


def between(low: float, high: float) -> Range:
    return Range(low, high)
