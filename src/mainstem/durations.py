"""Lengths of time as people write them: `15m`, `2h30m`, `10 minutes`, or `PT2H30M` as ISO 8601 has it."""

import re

_UNITS_US = {
    "microseconds": 1,
    "milliseconds": 1_000,
    "seconds": 1_000_000,
    "minutes": 60_000_000,
    "hours": 3_600_000_000,
    "days": 86_400_000_000,
    "weeks": 604_800_000_000,
}
_SHORT = {
    "us": "microseconds",
    "ms": "milliseconds",
    "s": "seconds",
    "sec": "seconds",
    "m": "minutes",
    "min": "minutes",
    "h": "hours",
    "d": "days",
    "w": "weeks",
}
# Compiled when the first is needed, not at start-up.
_PARTS = r"(?ai)(?:\s*\d+\s*[a-z]+)+\s*"
_PART = r"(?ai)(\d+)\s*([a-z]+)"
_ISO = r"(?ai)P(?=[\dT])(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d{0,9}))?S)?)?"
_ISO_UNITS = ("days", "hours", "minutes", "seconds", "microseconds")


def duration_parts(text: str) -> list[tuple[int, str]] | None:
    """Each number with its unit in full: 2 hours, 30 minutes for `2h30m`; None when it is no such text."""
    if found := re.fullmatch(_ISO, text.strip()):
        *whole, fraction = found.groups(default="0")
        numbers = (*whole, fraction[:6].ljust(6, "0"))
        parts = [(int(number), unit) for number, unit in zip(numbers, _ISO_UNITS, strict=True)]
        return [part for part in parts if part[0]] or [(0, "seconds")]
    if not re.fullmatch(_PARTS, text):
        return None
    parts = [(int(number), _unit(written.lower())) for number, written in re.findall(_PART, text)]
    return parts if all(unit in _UNITS_US for _, unit in parts) else None


def duration_ms(text: str) -> int | None:
    """A length of time in milliseconds; None when it is none."""
    parts = duration_parts(text)
    return None if parts is None else sum(number * _UNITS_US[unit] for number, unit in parts) // 1_000


def is_iso_duration(text: str) -> bool:
    """Whether it is one that Java's Duration understands, too."""
    return re.fullmatch(_ISO, text) is not None


def _unit(written: str) -> str:
    """`m`, `min`, `mins`, `minute` and `minutes` are minutes."""
    single = written.removesuffix("s")
    return _SHORT.get(written) or _SHORT.get(single) or f"{single}s"
