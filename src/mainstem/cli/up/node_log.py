"""The log file of a node that `mainstem up --nodes` runs: how it is opened, and what it says to a person who
does not look into it.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import BinaryIO, NamedTuple

_TAIL_BYTES = 16 * 1024
_BYTES_MAX = 16 * 1024 * 1024
_ERROR, _HINT = "mainstem: ", "  -> "
_WARNING = re.compile(r"\d\d:\d\d:\d\d (?:WARNING|ERROR|CRITICAL) (.*)")
_WARNING_LEVELS = ("warning", "error", "critical")


class LastWords(NamedTuple):
    """Why a node gave up, and what to do; the hint is empty where it gave none."""

    message: str
    hint: str


def open_log(path: Path) -> BinaryIO:
    """Append to it; one that has grown large makes room and is kept once."""
    if path.exists() and path.stat().st_size > _BYTES_MAX:
        path.replace(path.with_name(f"{path.name}.1"))
    return path.open("ab")


def last_words(path: Path) -> LastWords:
    """The error with which it ended, or else its last line."""
    lines = _tail(path, 0)
    for number in range(len(lines) - 1, -1, -1):
        if lines[number].startswith(_ERROR):
            following = lines[number + 1] if number + 1 < len(lines) else ""
            hint = following.removeprefix(_HINT) if following.startswith(_HINT) else ""
            return LastWords(lines[number].removeprefix(_ERROR), hint)
    return LastWords(lines[-1].strip() if lines else "", "")


def last_warning(path: Path, begin: int) -> str:
    """The newest warning or error from this byte on, without its time; empty where there is none."""
    found = [text for line in _tail(path, begin) if (text := _warning(line))]
    return found[-1] if found else ""


def _warning(line: str) -> str:
    if match := _WARNING.fullmatch(line):
        return match[1]
    try:
        event = json.loads(line)
    except ValueError:
        return ""
    if isinstance(event, dict) and event.get("level") in _WARNING_LEVELS:
        return str(event.get("message", ""))
    return ""


def _tail(path: Path, begin: int) -> list[str]:
    with path.open("rb") as file:
        file.seek(max(begin, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
        return file.read().decode(errors="replace").splitlines()
