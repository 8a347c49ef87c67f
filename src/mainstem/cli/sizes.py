"""Sizes in bytes as people write them."""

from __future__ import annotations

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def size_text(count: int) -> str:
    """Three digits at least, in the unit that fits: 512 B, 1.50 KiB, 20.0 MiB."""
    value = float(count)
    for unit in _UNITS:
        if value < 1024 or unit == _UNITS[-1]:
            break
        value /= 1024
    if unit == "B":
        return f"{count} B"
    return f"{value:.2f} {unit}" if value < 10 else f"{value:.1f} {unit}"
