"""Starts the queries of a pipeline: one for each sink, and one for the dead letters of each source.

Each has its own checkpoint, so each goes on where it was, whatever happens to the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from mainstem.spark.pipeline import database_table, lake_tables, times, topic_output
from mainstem.spark.pipeline.addresses import database
from mainstem.spark.pipeline.brokers.connector_options import sink_options, writer_options
from mainstem.spark.pipeline.dead_letters.headers import bytes_max
from mainstem.spark.pipeline.file import functions
from mainstem.spark.pipeline.file.reader import Document
from mainstem.spark.pipeline.graph import Graph
from mainstem.spark.pipeline.model import (
    ConsoleSink,
    DeltaSink,
    IcebergSink,
    JdbcSink,
    ParquetSink,
    Pipeline,
    PythonSink,
    Sink,
    TopicSink,
)
from mainstem.spark.pipeline.option_text import as_text
from mainstem.spark.pipeline.places import Places
from mainstem.spark.pipeline.problems import PipelineError
from mainstem.spark.pipeline.running.failures import failed
from mainstem.spark.pipeline.running.views import Views, error_policy, refusal
from mainstem.spark.pipeline.source_views import bad_rows

DEAD_LETTERS = "dead-letters."
ROWS = "rows"
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


class Outputs:
    """The queries of one run."""

    def __init__(
        self,
        spark: SparkSession,
        document: Document,
        places: Places,
        views: Views,
        *,
        once: bool,
        show: Show,
    ) -> None:
        assert document.pipeline is not None
        self._spark = spark
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
        return self._start(name, self._pipeline.sinks[name])

    def _dead_letter_sources(self) -> list[str]:
        used = {view for sink in self._pipeline.sinks.values() for view in self._graph.upstream(sink.source)}
        return [
            name
            for name, frame in self._views.sources.items()
            if name in used
            and frame.source.decode.format != "raw"
            and error_policy(self._pipeline, frame.source) == "dead_letter"
        ]

    def _start_dead_letters(self, name: str) -> StreamingQuery:
        query = DEAD_LETTERS + name
        dead_letters = self._pipeline.dead_letters
        assert dead_letters is not None
        bad = topic_output.dead_letters(bad_rows(self._views.sources[name]), self._pipeline.name, name)
        checkpoint = self._places.checkpoint_of(query)
        options = writer_options(
            self._pipeline,
            dead_letters.topic,
            dead_letters.bootstrap,
            self._places,
            exactly_once=True,
            checkpoint=checkpoint,
        )
        options["kafka.max.request.size"] = str(bytes_max(self._pipeline.kafka))
        writer = self._counted(bad).writeStream.format("mainstem").options(**options)
        return self._begin(writer, query, None)

    def _start(self, name: str, sink: Sink) -> StreamingQuery:
        view = self._views.frames[self._graph.view(sink.source) or sink.source]
        if isinstance(sink, TopicSink):
            records = topic_output.records(view, sink, self._document.folder)
            options = sink_options(self._pipeline, sink, self._places, self._places.checkpoint_of(name))
            writer = self._counted(records).writeStream.format("mainstem")
            writer = writer.outputMode(sink.mode).options(**options)
        elif isinstance(sink, ParquetSink):
            writer = self._counted(view).writeStream.format("parquet").options(**as_text(sink.options))
            writer = writer.partitionBy(*sink.partition_by).option("path", self._places.path(sink.parquet))
        else:
            mode = getattr(sink, "mode", "append")
            writer = view.writeStream.outputMode(mode).foreachBatch(self._batch_function(name, sink))
        return self._begin(writer, name, sink.trigger)

    def _counted(self, frame: DataFrame) -> DataFrame:
        return frame.observe(ROWS, F.count(F.lit(1)).alias(ROWS))

    def _begin(self, writer: DataStreamWriter, name: str, own_trigger: str | None) -> StreamingQuery:
        wanted = own_trigger or self._pipeline.trigger
        trigger = times.trigger(wanted) if wanted is not None else None
        if self._once or trigger == times.AVAILABLE_NOW:
            writer = writer.trigger(availableNow=True)
        elif trigger is not None:
            writer = writer.trigger(processingTime=trigger)
        writer = writer.option("checkpointLocation", self._places.checkpoint_of(name))
        return writer.queryName(f"{self._pipeline.name}.{name}").start()

    def _batch_function(self, name: str, sink: Sink) -> Callable[[DataFrame, int], None]:
        write = self._table_writer(sink)

        def run(frame: DataFrame, batch_id: int) -> None:
            if isinstance(sink, ConsoleSink):
                self._show(name, frame, sink.console)
            elif isinstance(sink, PythonSink):
                function = functions.resolve(sink.python, self._document.folder)
                functions.send_by_value(self._document.folder)
                function(frame, batch_id, **sink.arguments)
            elif isinstance(sink, JdbcSink) and sink.jar is not None:
                options = as_text(sink.options) | {"url": sink.jdbc, "dbtable": sink.table}
                frame.write.format("jdbc").mode("append").options(**options).save()
            elif write is not None:
                query_id = frame.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
                rows = frame.toArrow()
                if rows.num_rows:
                    write(rows, f"{query_id}", batch_id)
                self.counts.add(name, batch_id, rows.num_rows)

        return run

    def _table_writer(self, sink: Sink) -> Callable[[Any, str, int], Any] | None:
        if isinstance(sink, DeltaSink):
            path = self._places.path(sink.delta)
            return lambda rows, query, batch: lake_tables.write_delta(path, sink, rows, query, batch)
        if isinstance(sink, IcebergSink):
            return lambda rows, query, batch: lake_tables.write_iceberg(sink, rows, query, batch)
        if isinstance(sink, JdbcSink) and sink.jar is None:
            where = database(sink.jdbc, sink.driver)
            file = self._places.path(where.name) if where.dialect == "sqlite" else None
            return lambda rows, query, batch: database_table.write_rows(sink, file, rows, query, batch)
        return None
