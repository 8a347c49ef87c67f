"""Points in time as a person types them: `10m` ago, an ISO date, or milliseconds since 1970.

The clock is passed in; nothing here reads it.
"""

from __future__ import annotations

import re
from datetime import datetime

from mainstem.cli.errors import CommandError

_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_DURATION = re.compile(r"(\d+)(ms|s|m|h|d|w)")
_MILLISECONDS = re.compile(r"\d{11,}")
_ISO_DURATION = re.compile(
    r"P(?=\d|T\d)(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.IGNORECASE
)


def parse_duration_ms(text: str) -> int | None:
    """A length of time, `2h30m` or `PT2H30M`, in milliseconds; None when it is none."""
    parts = _DURATION.findall(text)
    if parts and "".join(number + unit for number, unit in parts) == text:
        return sum(int(number) * _UNIT_MS[unit] for number, unit in parts)
    if found := _ISO_DURATION.fullmatch(text):
        units = zip(found.groups(default="0"), ("d", "h", "m", "s"), strict=True)
        return sum(round(float(number) * _UNIT_MS[unit]) for number, unit in units)
    return None


def parse_time_ms(text: str, now_ms: int) -> int:
    """Milliseconds since 1970 for a duration before now, an ISO date (local unless it says), or a number."""
    text = text.strip()
    if _MILLISECONDS.fullmatch(text):
        return int(text)
    if (duration_ms := parse_duration_ms(text)) is not None:
        return now_ms - duration_ms
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        raise CommandError(
            f"{text!r} is not a time", "write 10m, 2h30m, 2026-01-31T12:00:00 or milliseconds since 1970", 2
        ) from None


def iso_time(timestamp_ms: int) -> str:
    """Local time with its offset, to the millisecond."""
    return datetime.fromtimestamp(timestamp_ms / 1000).astimezone().isoformat(timespec="milliseconds")
