"""Spans and points of time as a pipeline file writes them."""

from __future__ import annotations

import datetime
import re

from mainstem.durations import duration_parts

AVAILABLE_NOW = "available now"


def span(text: str) -> str | None:
    """`10 minutes`, `10m` or `10 min` as Spark writes it; None when it is no span of time."""
    parts = duration_parts(text)
    return None if parts is None else " ".join(f"{number} {unit}" for number, unit in parts)


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
