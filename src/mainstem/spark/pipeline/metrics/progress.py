"""The metrics of a running pipeline: computed from Spark's reports of progress. No Spark here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from mainstem.protocol.resources import TopicPartition

# The source of a pipeline that reads topics with these names.
SourceOf = Callable[[list[str]], str]
# What Spark is asked to count in each batch.
ROWS = "rows"
# The name of a query for dead letters starts so; the source's follows.
DEAD_LETTERS = "dead-letters."


class QueryMetrics(msgspec.Struct):
    """One query: a sink, or the dead letters of a source."""

    name: str
    batches: int = 0
    rows_in: int = 0
    rows_out: int = 0
    input_rate: float = 0.0
    processed_rate: float = 0.0
    batch_ms: int = 0
    watermark: str | None = None
    state_rows: int = 0
    is_active: bool = True
    records_read: dict[str, int] = {}  # by source


class TopicLag(msgspec.Struct):
    """How far a pipeline is behind in a topic; seconds are the age of the oldest unread record."""

    topic: str
    records: int
    seconds: float | None = None


class Snapshot(msgspec.Struct):
    """Everything that is shown of a pipeline at one moment."""

    pipeline: str
    queries: list[QueryMetrics] = []
    lags: list[TopicLag] = []
    started_at: float = 0.0
    updated_at: float = 0.0

    @property
    def records_read(self) -> int:
        """The records of all sources, each once: every query reads its sources for itself, and the one that
        is furthest has read them all."""
        sources = {source for query in self.queries for source in query.records_read}
        return sum(max(query.records_read.get(name, 0) for query in self.queries) for name in sources)

    @property
    def dead_letters(self) -> int:
        return sum(query.rows_out for query in self.queries if is_dead_letters(query.name))

    @property
    def sinks(self) -> list[QueryMetrics]:
        return [query for query in self.queries if not is_dead_letters(query.name)]


def is_dead_letters(query: str) -> bool:
    return query.startswith(DEAD_LETTERS)


@dataclass
class QueryProgress:
    """Adds up the reports of one query."""

    name: str
    source_of: SourceOf = ",".join
    metrics: QueryMetrics = field(init=False)
    positions: dict[TopicPartition, int] = field(default_factory=dict)
    _last_batch: int = -1

    def __post_init__(self) -> None:
        self.metrics = QueryMetrics(self.name)

    def add(self, reports: Iterable[Mapping[str, Any]], rows_of_batch: Any = None) -> bool:
        """Take in reports, oldest first; those seen before change nothing. True when there was a new
        batch."""
        is_new = False
        for report in reports:
            batch_id = int(report["batchId"])
            if batch_id > self._last_batch and self._is_batch(report):
                self._last_batch = batch_id
                self._count(report, rows_of_batch)
                is_new = True
            elif batch_id >= self._last_batch and not int(report.get("numInputRows") or 0):
                self.metrics.input_rate = 0.0  # waiting for data
        return is_new

    @staticmethod
    def _is_batch(report: Mapping[str, Any]) -> bool:
        """Spark also reports, under the number of the next batch, that it found nothing to do."""
        return "addBatch" in (report.get("durationMs") or {})

    def _count(self, report: Mapping[str, Any], rows_of_batch: Any) -> None:
        metrics = self.metrics
        metrics.batches += 1
        metrics.rows_in += int(report.get("numInputRows") or 0)
        for source, records in records_read(report, self.source_of).items():
            metrics.records_read[source] = metrics.records_read.get(source, 0) + records
        observed = (report.get("observedMetrics") or {}).get(ROWS)
        counted = rows_of_batch(self.name, int(report["batchId"])) if rows_of_batch is not None else None
        if counted is None and observed is not None:
            counted = observed[ROWS]
        metrics.rows_out += int(counted or 0)
        metrics.input_rate = _number(report.get("inputRowsPerSecond"))
        metrics.processed_rate = _number(report.get("processedRowsPerSecond"))
        metrics.batch_ms = int(_number(report.get("batchDuration")))
        metrics.watermark = (report.get("eventTime") or {}).get("watermark", metrics.watermark)
        metrics.state_rows = sum(
            int(part.get("numRowsTotal") or 0) for part in report.get("stateOperators") or ()
        )
        self.positions = end_offsets(report)


def end_offsets(report: Mapping[str, Any]) -> dict[TopicPartition, int]:
    """How far a batch read each partition; the smaller one where two sources read the same."""
    found: dict[TopicPartition, int] = {}
    for source in report.get("sources") or ():
        for part, offset in _offsets(source.get("endOffset")).items():
            found[part] = min(offset, found.get(part, offset))
    return found


def records_read(report: Mapping[str, Any], source_of: SourceOf) -> dict[str, int]:
    """How many records a batch read of each source. A query may read a source at several places, and a
    function that it calls may read the batch several times; a record counts once."""
    found: dict[str, int] = {}
    for source in report.get("sources") or ():
        end, start = _offsets(source.get("endOffset")), _offsets(source.get("startOffset"))
        if end:
            name = source_of(sorted({topic for topic, _ in end}))
            most = sum(offset - start.get(part, 0) for part, offset in end.items())
            found[name] = max(found.get(name, 0), min(int(source.get("numInputRows") or 0), most))
    return found


def _offsets(reported: Any) -> dict[TopicPartition, int]:
    """The offsets of a source as Spark reports them; none of a source of another kind."""
    try:
        topics = json.loads(reported) if isinstance(reported, str) else reported
        return {
            (topic, int(partition)): int(offset)
            for topic, partitions in topics.items()
            for partition, offset in partitions.items()
        }
    except (AttributeError, TypeError, ValueError):
        return {}


def common_positions(
    queries: Iterable[QueryProgress], readers: Mapping[str, set[str]]
) -> dict[TopicPartition, int]:
    """How far every query that reads a topic has got: what the group may call done.

    `readers` says which queries read a topic; a topic of which one has not reported yet is left out.
    """
    by_name = {query.name: query for query in queries}
    found: dict[TopicPartition, int] = {}
    for topic, names in readers.items():
        positions = [by_name[name].positions for name in names if name in by_name]
        parts = {part for known in positions for part in known if part[0] == topic}
        for part in parts:
            if len(positions) == len(names) and all(part in known for known in positions):
                found[part] = min(known[part] for known in positions)
    return found


def _number(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return 0.0
    return number if number == number and abs(number) != float("inf") else 0.0
