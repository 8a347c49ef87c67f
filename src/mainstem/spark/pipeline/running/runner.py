"""Runs a pipeline: starts its queries, watches them, keeps its metrics, and ends it without losing anything.

What is shown, and how, is the caller's: it is called with a snapshot once a second.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from mainstem.spark.pipeline.brokers import samples
from mainstem.spark.pipeline.brokers.offset_commits import OffsetCommitter
from mainstem.spark.pipeline.brokers.topics import check_topics, make_topics, topic_readers
from mainstem.spark.pipeline.file.reader import Document
from mainstem.spark.pipeline.graph import Graph
from mainstem.spark.pipeline.metrics.progress import DEAD_LETTERS, QueryProgress, Snapshot
from mainstem.spark.pipeline.parts import as_text
from mainstem.spark.pipeline.places import Places
from mainstem.spark.pipeline.running import session
from mainstem.spark.pipeline.running.failures import RunFailed, failed, is_transient, sentence
from mainstem.spark.pipeline.sources.topic import TopicSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from mainstem.spark.pipeline.running.queries import QueryStarter

TICK_S = 0.25
GRACE_S = 30.0
# A query that fails for a transient reason is started again so often without having done a batch in between.
RESTARTS_MAX = 5
RESTART_PAUSE_S = 2.0


@dataclass(frozen=True)
class RunOptions:
    """How a pipeline is run."""

    master: str = "local[*]"
    configuration: Mapping[str, str] = field(default_factory=dict)
    once: bool = False
    log: FilePath | None = None
    grace_s: float = GRACE_S


def _ignore(*_: Any) -> None:
    pass


def _trace(error: BaseException) -> str:
    """Java's trace of what a query failed with: PySpark has it, but does not tell."""
    return str(getattr(getattr(error, "_cause", None), "_stackTrace", ""))


def _show_rows(name: str, frame: Any, count: int) -> None:
    print(f"-- {name}")
    frame.show(count, truncate=False)


@dataclass
class Hooks:
    """What the caller is told: the phase, the metrics, rows for the screen, and topics that were created."""

    phase: Callable[[str], None] = _ignore
    metrics: Callable[[Snapshot], None] = _ignore
    rows: Callable[[str, Any, int], None] = _show_rows
    created: Callable[[list[str]], None] = _ignore
    restarted: Callable[[str, str], None] = _ignore


class Runner:
    """One run of one pipeline."""

    def __init__(
        self, document: Document, places: Places, options: RunOptions, hooks: Hooks | None = None
    ) -> None:
        assert document.pipeline is not None
        self._document = document
        self._pipeline = document.pipeline
        self._places = places
        self._options = options
        self._hooks = hooks or Hooks()
        self._is_stop_asked = False
        self._progress: dict[str, QueryProgress] = {}
        self._restarts: dict[str, tuple[int, int]] = {}
        self.snapshot = Snapshot(self._pipeline.name, started_at=time.time())

    def stop(self) -> None:
        """End after the batches that are under way. May be called from a signal handler or another thread:
        no lock is taken."""
        self._is_stop_asked = True

    def _is_stopped_within(self, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while not self._is_stop_asked and time.monotonic() < end:
            time.sleep(min(TICK_S, seconds))
        return self._is_stop_asked

    def run(self) -> Snapshot:
        """Run until it is stopped, has read everything (`once`), or fails with RunFailed."""
        self._hooks.phase("checking topics")
        check_topics(self._pipeline, self._places)
        definitions = samples.definitions(self._document, self._places)
        self._hooks.phase("starting Spark")
        spark = self._start_spark()
        try:
            from mainstem.spark.pipeline.checking.analysis import analyse
            from mainstem.spark.pipeline.running.queries import QueryStarter
            from mainstem.spark.pipeline.running.views import read_topics

            # Nothing is made or written for a pipeline that Spark refuses.
            views = analyse(spark, self._document, self._places, definitions, read_topics)
            if created := make_topics(self._pipeline, self._places):
                self._hooks.created(created)
            starter = QueryStarter(
                self._document, self._places, views, once=self._options.once, show=self._hooks.rows
            )
            queries = starter.start()
            committer = OffsetCommitter(self._pipeline, self._places, self._readers(list(queries)))
            try:
                self._hooks.phase("running")
                failure = self._watch(queries, starter, committer)
                self._hooks.phase("stopping")
                self._end(queries)
                self._collect(queries, starter.counts.take)
                committer.finish(list(self._progress.values()))
                self._report(queries, committer)
            finally:
                committer.close()
            if failure is not None:
                raise failure
            return self.snapshot
        finally:
            spark.stop()

    def _start_spark(self) -> SparkSession:
        given = as_text(self._pipeline.spark) | dict(self._options.configuration)
        configuration = session.settings(self._options.master, given, self._pipeline.steps.values())
        try:
            return session.start(
                self._pipeline.name,
                self._options.master,
                configuration,
                self._document.folder,
                self._options.log,
            )
        except Exception as error:  # Java's and Py4J's have no class in common
            raise RunFailed("Spark", sentence(str(error))) from error

    def _readers(self, queries: list[str]) -> dict[str, set[str]]:
        """For each source the queries that read it."""
        graph = Graph(self._pipeline, self._document.folder)
        found: dict[str, set[str]] = {}
        for name, source in self._pipeline.sources.items():
            if isinstance(source, TopicSource):
                sinks = {
                    sink for sink, part in self._pipeline.sinks.items() if name in graph.upstream(part.source)
                }
                found[name] = sinks | {query for query in queries if query == DEAD_LETTERS + name}
        return found

    def _source_of(self, topics: list[str]) -> str:
        """The source that reads these topics; the first by name where several do, so that a record counts
        once."""
        sources = {
            name: part for name, part in self._pipeline.sources.items() if isinstance(part, TopicSource)
        }
        found = topic_readers(sources, {name: {name} for name in sources}, topics)
        return min(set().union(*found.values()), default=",".join(topics))

    def _watch(
        self, queries: dict[str, Any], starter: QueryStarter, committer: OffsetCommitter
    ) -> RunFailed | None:
        """Until something ends it: a stop, a failure, or that every query has finished."""
        self._progress = {name: QueryProgress(name, self._source_of) for name in queries}
        while not self._is_stopped_within(TICK_S):
            self._collect(queries, starter.counts.take)
            committer.update(list(self._progress.values()))
            self._report(queries, committer)
            for name, query in list(queries.items()):
                if not query.isActive and (error := query.exception()) is not None:
                    again = self._restarted(name, str(error), starter)
                    if again is None:
                        return failed(name, str(error), self._places.checkpoint_of(name), _trace(error))
                    queries[name] = again
            if not any(query.isActive for query in queries.values()):
                return None
        return None

    def _restarted(self, name: str, report: str, starter: QueryStarter) -> Any:
        """The query started again from its checkpoint; None when its failure would only come back."""
        batches = self._progress[name].metrics.batches
        count, since = self._restarts.get(name, (0, batches))
        count = count + 1 if since == batches else 1
        if (
            not is_transient(report)
            or count > RESTARTS_MAX
            or self._is_stopped_within(RESTART_PAUSE_S * count)
        ):
            return None
        self._restarts[name] = (count, batches)
        self._hooks.restarted(name, sentence(report))
        return starter.start_one(name)

    def _collect(self, queries: dict[str, Any], counts: Any) -> None:
        for name, query in queries.items():
            reports = [dict(report) for report in query.recentProgress]
            self._progress[name].add(reports, counts)
            self._progress[name].metrics.is_active = query.isActive

    def _report(self, queries: dict[str, Any], committer: OffsetCommitter) -> None:
        self.snapshot.queries = [self._progress[name].metrics for name in queries]
        self.snapshot.lags = committer.lags
        self.snapshot.updated_at = time.time()
        self._hooks.metrics(self.snapshot)

    def _end(self, queries: dict[str, Any]) -> None:
        """Let each query finish its batch, for a while; what is cut off runs again at the next start."""
        end = time.monotonic() + self._options.grace_s
        waiting = {name: self._batch_of(query) for name, query in queries.items()}
        while time.monotonic() < end:
            busy = [
                name
                for name, query in queries.items()
                if query.isActive
                and query.status["isTriggerActive"]
                and self._batch_of(query) == waiting[name]
            ]
            if not busy:
                break
            time.sleep(TICK_S / 5)
        for query in queries.values():
            query.stop()

    @staticmethod
    def _batch_of(query: Any) -> tuple[int, str] | None:
        report = query.lastProgress
        return (int(report["batchId"]), str(report["timestamp"])) if report is not None else None
