"""Spark's way to write a duration: `15m`, `500ms`, `2 min`; a bare number is milliseconds."""

import re

_UNITS_MS = {"us": 0.001, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"(-?[0-9]+)\s*([a-z]*)")


def duration_ms(text: str) -> int:
    """Milliseconds; ValueError without words when it is no duration."""
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None or (match[2] and match[2] not in _UNITS_MS):
        raise ValueError
    return int(int(match[1]) * _UNITS_MS[match[2] or "ms"])
