"""Spans and points of time as a pipeline file writes them."""

from __future__ import annotations

import datetime
import re

_UNITS = {
    "ms": "milliseconds",
    "millisecond": "milliseconds",
    "s": "seconds",
    "sec": "seconds",
    "second": "seconds",
    "m": "minutes",
    "min": "minutes",
    "minute": "minutes",
    "h": "hours",
    "hour": "hours",
    "d": "days",
    "day": "days",
    "w": "weeks",
    "week": "weeks",
}
_SPAN = re.compile(r"\s*(\d+)\s*([a-z]+?)\s*", re.IGNORECASE)
AVAILABLE_NOW = "available now"


def span(text: str) -> str | None:
    """`10 minutes`, `10m` or `10 min` as Spark writes it; None when it is no span of time."""
    match = _SPAN.fullmatch(text)
    if match is None:
        return None
    unit = match[2].lower()
    written = _UNITS.get(unit) or _UNITS.get(unit.removesuffix("s"))
    return f"{int(match[1])} {written}" if written else None


_MILLISECONDS = {
    "milliseconds": 1,
    "seconds": 1000,
    "minutes": 60_000,
    "hours": 3_600_000,
    "days": 86_400_000,
    "weeks": 604_800_000,
}


def span_ms(text: str) -> int | None:
    """The same in milliseconds."""
    written = span(text)
    if written is None:
        return None
    count, unit = written.split(" ")
    return int(count) * _MILLISECONDS[unit]


def trigger(text: str) -> str | None:
    """A span, or `available now` (also `once`); None when it is neither."""
    if re.sub(r"[\s_-]", "", text.lower()) in ("availablenow", "once"):
        return AVAILABLE_NOW
    return span(text)


def point_ms(text: str) -> int | None:
    """A time such as `2026-01-31T12:00:00Z` in milliseconds; UTC where no zone is given. None if it is
    none."""
    try:
        found = datetime.datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    except ValueError:
        return None
    if found.tzinfo is None:
        found = found.replace(tzinfo=datetime.UTC)
    return int(found.timestamp() * 1000)
