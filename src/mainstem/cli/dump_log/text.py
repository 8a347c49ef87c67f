"""The entries of `mainstem dump-log` as lines for a person; the JSON form needs nothing of this."""

from __future__ import annotations

import json
from collections.abc import Callable

from mainstem.cli.dump_log.entry import Entry
from mainstem.cli.typed.times import iso_time


def line(entry: Entry) -> str:
    """One line for one entry."""
    return _LINES.get(entry["type"], _plain)(entry)


def _batch(entry: Entry) -> str:
    parts = [
        f"batch {entry['base_offset']}..{entry['last_offset']}",
        f"{entry['count']} {'record' if entry['count'] == 1 else 'records'}",
        f"{entry['size']} bytes at {entry['position']}",
        entry["compression"],
        f"epoch {entry['leader_epoch']}",
        f"{entry['timestamp_type']} {_time(entry['max_timestamp'])}",
    ]
    if entry["producer_id"] >= 0:
        sequences = f"sequence {entry['base_sequence']}..{entry['last_sequence']}"
        parts.append(f"producer {entry['producer_id']} epoch {entry['producer_epoch']} {sequences}")
    parts += [mark for mark in ("transactional", "control") if entry[mark]]
    return "  " + ", ".join(parts)


def _record(entry: Entry) -> str:
    content = {name: value for name, value in entry.items() if name not in ("type", "offset", "timestamp")}
    shown = "  ".join(f"{name}={_value(value)}" for name, value in content.items())
    return f"    {entry['offset']}  {_time(entry['timestamp'])}  {shown}"


def _damage(entry: Entry) -> str:
    return f"  DAMAGED at {entry['position']}: {entry['message']}"


def _unused(entry: Entry) -> str:
    return f"  {entry['bytes']} bytes at {entry['position']} are set aside and not used yet"


def _plain(entry: Entry) -> str:
    return "  " + "  ".join(f"{name} {value}" for name, value in entry.items() if name != "type")


def _text(entry: Entry) -> str:
    return f"  {entry['text']}"


def _time_index(entry: Entry) -> str:
    return f"  timestamp {_time(entry['timestamp'])}  offset {entry['offset']}"


def _value(value: object) -> str:
    return value if isinstance(value, str) and value.isprintable() else json.dumps(value, ensure_ascii=False)


def _time(timestamp_ms: int) -> str:
    return iso_time(timestamp_ms) if timestamp_ms >= 0 else "no time"


_LINES: dict[str, Callable[[Entry], str]] = {
    "batch": _batch,
    "record": _record,
    "damage": _damage,
    "unused": _unused,
    "timeindex": _time_index,
    "text": _text,
}
