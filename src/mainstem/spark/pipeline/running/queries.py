"""Starts the queries of a pipeline: one for each sink, and one for the dead letters of each source.

Each has its own checkpoint, so each goes on where it was, whatever happens to the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from mainstem.spark.pipeline import times
from mainstem.spark.pipeline.brokers.connector_options import writer_options
from mainstem.spark.pipeline.dead_letters.headers import bytes_max
from mainstem.spark.pipeline.dead_letters.records import dead_letter_records
from mainstem.spark.pipeline.file.reader import Document
from mainstem.spark.pipeline.graph import Graph
from mainstem.spark.pipeline.metrics.progress import DEAD_LETTERS
from mainstem.spark.pipeline.model import Pipeline
from mainstem.spark.pipeline.places import Places
from mainstem.spark.pipeline.problems import PipelineError
from mainstem.spark.pipeline.running.failures import failed
from mainstem.spark.pipeline.running.views import Views, refusal
from mainstem.spark.pipeline.sinks import WriteContext, counted

_FIRST_BATCH_S = 20.0
_POLL_S = 0.05
Show = Callable[[str, DataFrame, int], None]


class RowCounts:
    """Rows that foreachBatch wrote, by sink; Spark's own metrics do not count them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: dict[tuple[str, int], int] = {}

    def add(self, sink: str, batch_id: int, rows: int) -> None:
        with self._lock:
            self._counts[sink, batch_id] = rows

    def take(self, sink: str, batch_id: int) -> int | None:
        with self._lock:
            return self._counts.pop((sink, batch_id), None)


def _wait_for_first_batch(query: StreamingQuery) -> None:
    """One after the other, for a while: a query starts several Python processes at first and gives up when
    one of them takes ten seconds, which all queries at once would need on a small machine."""
    end = time.monotonic() + _FIRST_BATCH_S
    while query.isActive and query.lastProgress is None and time.monotonic() < end:
        time.sleep(_POLL_S)


class QueryStarter:
    """The queries of one run."""

    def __init__(
        self,
        document: Document,
        places: Places,
        views: Views,
        *,
        once: bool,
        show: Show,
    ) -> None:
        assert document.pipeline is not None
        self._document = document
        self._pipeline: Pipeline = document.pipeline
        self._places = places
        self._views = views
        self._once = once
        self._show = show
        self._graph = Graph(self._pipeline, document.folder)
        self.counts = RowCounts()

    def start(self) -> dict[str, StreamingQuery]:
        """Start every query; when one fails to start, those before it are stopped."""
        started: dict[str, StreamingQuery] = {}
        try:
            for name in [*map(DEAD_LETTERS.__add__, self._dead_letter_sources()), *self._pipeline.sinks]:
                started[name] = self._start_checked(name)
                _wait_for_first_batch(started[name])
        except BaseException:
            for query in started.values():
                query.stop()
            raise
        return started

    def _start_checked(self, name: str) -> StreamingQuery:
        """What Spark has against a query before it runs is a mistake in the file."""
        try:
            return self.start_one(name)
        except PySparkException as error:
            sink = self._pipeline.sinks.get(name)
            path = ("sinks", name) if sink is not None else ("dead_letters", "topic")
            raise PipelineError([refusal(error, path, sink)]) from None
        except Py4JJavaError as error:
            raise failed(name, str(error), self._places.checkpoint_of(name)) from None

    def start_one(self, name: str) -> StreamingQuery:
        """Start a query, also again after it has failed."""
        if name.startswith(DEAD_LETTERS):
            return self._start_dead_letters(name.removeprefix(DEAD_LETTERS))
        return self._start_sink(name)

    def _dead_letter_sources(self) -> list[str]:
        used = {view for sink in self._pipeline.sinks.values() for view in self._graph.upstream(sink.source)}
        return [
            name
            for name, frames in self._views.sources.items()
            if name in used and frames.dead_letters is not None
        ]

    def _start_dead_letters(self, name: str) -> StreamingQuery:
        query = DEAD_LETTERS + name
        dead_letters, bad_rows = self._pipeline.dead_letters, self._views.sources[name].dead_letters
        assert dead_letters is not None
        assert bad_rows is not None
        records = dead_letter_records(bad_rows(), self._pipeline.name, name)
        options = writer_options(
            self._pipeline,
            dead_letters.topic,
            dead_letters.bootstrap,
            self._places,
            exactly_once=True,
            checkpoint=self._places.checkpoint_of(query),
        )
        options["kafka.max.request.size"] = str(bytes_max(self._pipeline.kafka))
        return self._begin(counted(records).writeStream.format("mainstem").options(**options), query, None)

    def _start_sink(self, name: str) -> StreamingQuery:
        sink = self._pipeline.sinks[name]
        view = self._views.frames[self._graph.view(sink.source) or sink.source]
        folder, counts = self._document.folder, self.counts
        context = WriteContext(name, self._pipeline, self._places, folder, self._show, counts.add)
        return self._begin(sink.writer(view, context), name, sink.trigger)

    def _begin(self, writer: DataStreamWriter, name: str, own_trigger: str | None) -> StreamingQuery:
        wanted = own_trigger or self._pipeline.trigger
        trigger = times.trigger(wanted) if wanted is not None else None
        if self._once or trigger == times.AVAILABLE_NOW:
            writer = writer.trigger(availableNow=True)
        elif trigger is not None:
            writer = writer.trigger(processingTime=trigger)
        writer = writer.option("checkpointLocation", self._places.checkpoint_of(name))
        return writer.queryName(f"{self._pipeline.name}.{name}").start()
