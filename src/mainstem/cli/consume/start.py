"""Where `mainstem consume` begins in each partition: beginning, end, an offset, the last N, or a time.

Everything is resolved to concrete positions before the first fetch; nothing here reads a message.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, TopicPartition

from mainstem.cli.errors import CommandError
from mainstem.cli.typed.times import parse_time_ms
from mainstem.wire import EARLIEST, LATEST, Cluster


class Start(NamedTuple):
    """The starting point as asked for; at most one field is set, none means the end."""

    beginning: bool = False
    offset: int | None = None
    time_ms: int | None = None


def parse_start(
    *, beginning: bool, latest: bool, offset: int | None, from_time: str | None, now_ms: int
) -> Start:
    """The starting point of these options, which exclude each other."""
    if sum((beginning, latest, offset is not None, from_time is not None)) > 1:
        raise CommandError(
            "there are several places to start from",
            "give one of --from-beginning, --latest, --offset and --from-time",
            exit_code=2,
        )
    time_ms = parse_time_ms(from_time, now_ms) if from_time is not None else None
    return Start(beginning, offset, time_ms)


def starting_positions(
    cluster: Cluster, topic: str, partitions: Iterable[int], start: Start
) -> list[TopicPartition]:
    """The position of each partition."""
    wanted = [(topic, partition) for partition in partitions]
    if start.time_ms is not None:
        listed = cluster.list_offsets(dict.fromkeys(wanted, start.time_ms))
        found = {part: listed[part] if listed[part] >= 0 else OFFSET_END for part in wanted}
    elif start.offset is not None and start.offset < 0:
        low = cluster.list_offsets(dict.fromkeys(wanted, EARLIEST))
        high = cluster.list_offsets(dict.fromkeys(wanted, LATEST))
        found = {part: max(low[part], high[part] + start.offset) for part in wanted}
    else:
        offset = OFFSET_BEGINNING if start.beginning else OFFSET_END
        found = dict.fromkeys(wanted, offset if start.offset is None else start.offset)
    return [TopicPartition(*part, offset) for part, offset in found.items()]
