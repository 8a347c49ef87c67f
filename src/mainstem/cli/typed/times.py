"""Points in time as a person types them: `10m` ago, an ISO date, or milliseconds since 1970.

The clock is passed in; nothing here reads it.
"""

from __future__ import annotations

import re
from datetime import datetime

from mainstem.cli.errors import CommandError
from mainstem.cli.typed.numbers import INT64_MAX
from mainstem.durations import duration_ms

_MILLISECONDS = re.compile(r"\d{11,}")


def parse_time_ms(text: str, now_ms: int) -> int:
    """Milliseconds since 1970 for a duration before now, an ISO date (local unless it says), or a number.

    A time before 1970 is 1970: negative numbers mean other things to a broker.
    """
    text = text.strip()
    if _MILLISECONDS.fullmatch(text) and int(text) <= INT64_MAX:
        return int(text)
    if (ago_ms := duration_ms(text)) is not None:
        return max(0, now_ms - ago_ms)
    try:
        return max(0, int(datetime.fromisoformat(text).timestamp() * 1000))
    except (ValueError, OverflowError, OSError):
        raise CommandError(
            f"{text!r} is not a time", "write 10m, 2h30m, 2026-01-31T12:00:00 or milliseconds since 1970", 2
        ) from None


def iso_time(timestamp_ms: int) -> str:
    """Local time with its offset, to the millisecond; the number itself where no calendar reaches."""
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000).astimezone().isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return f"{timestamp_ms} ms"
