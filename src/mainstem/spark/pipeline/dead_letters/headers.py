"""The headers of dead letters: how they are named, and how they are read again. No Spark here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

PREFIX = "mainstem.dead-letter."
REASON = PREFIX + "reason"
TOPIC = PREFIX + "topic"
PARTITION = PREFIX + "partition"
OFFSET = PREFIX + "offset"
TIMESTAMP = PREFIX + "timestamp"
PIPELINE = PREFIX + "pipeline"
STEP = PREFIX + "step"
AT = PREFIX + "at"
# How often a record was sent again already; it stays on the record.
REPLAYED = "mainstem.replayed"

# A dead letter is larger than its record, which may be as large as its own topic allows: so their topic
# and its producer allow more than Kafka's usual 1 MiB. It is what hosted clusters allow at most.
BYTES_MAX = 8 * 1024 * 1024

Headers = list[tuple[str, bytes | None]]


class DeadLetter(NamedTuple):
    """A dead letter read back: where the record came from, why it failed, and its own headers."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    reason: str
    step: str
    pipeline: str
    at: str
    headers: Headers
    replays: int


def bytes_max(kafka: Mapping[str, str | int | float | bool]) -> int:
    """How large a dead letter may be, with these client settings of a pipeline."""
    given = str(kafka.get("max.request.size", ""))
    return max(BYTES_MAX, int(given)) if given.isdecimal() else BYTES_MAX


def read_dead_letter(headers: Iterable[tuple[str, bytes | None]]) -> DeadLetter | None:
    """The dead letter that these headers tell of; None when the record is no dead letter."""
    own: Headers = []
    fields: dict[str, str] = {}
    replays = 0
    for name, value in headers:
        text = (value or b"").decode("utf-8", "replace")
        if name.startswith(PREFIX):
            fields[name] = text
        elif name == REPLAYED:
            replays = int(text) if text.isdecimal() else 0
        else:
            own.append((name, value))
    numbers = [fields.get(name, "") for name in (PARTITION, OFFSET, TIMESTAMP)]
    if not fields.get(TOPIC) or not all(number.lstrip("-").isdecimal() for number in numbers):
        return None
    partition, offset, timestamp_ms = map(int, numbers)
    return DeadLetter(
        topic=fields[TOPIC],
        partition=partition,
        offset=offset,
        timestamp_ms=timestamp_ms,
        reason=fields.get(REASON, ""),
        step=fields.get(STEP, ""),
        pipeline=fields.get(PIPELINE, ""),
        at=fields.get(AT, ""),
        headers=own,
        replays=replays,
    )


def replayed_headers(dead_letter: DeadLetter) -> Headers:
    """The headers with which its record is sent again."""
    return [*dead_letter.headers, (REPLAYED, str(dead_letter.replays + 1).encode())]
