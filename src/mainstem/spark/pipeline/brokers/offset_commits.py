"""Commits how far a pipeline has got to its consumer group, and measures its lag, beside the pipeline.

It works in a thread of its own: a broker that does not answer must not keep a pipeline from being stopped.
"""

from __future__ import annotations

import threading
from collections import defaultdict

from mainstem.protocol.resources import TopicPartition
from mainstem.spark.pipeline.brokers.offsets import OffsetsView
from mainstem.spark.pipeline.brokers.source_client import read_options
from mainstem.spark.pipeline.brokers.topics import topic_readers
from mainstem.spark.pipeline.metrics.progress import QueryProgress, TopicLag, common_positions
from mainstem.spark.pipeline.model import Pipeline
from mainstem.spark.pipeline.places import Places
from mainstem.spark.pipeline.sources.topic import TopicSource
from mainstem.wire import WireError

INTERVAL_S = 1.0
_FINISH_S = 10.0

Positions = dict[str, dict[TopicPartition, int]]


class OffsetCommitter:
    """Takes in the progress of the queries; `lags` is the newest answer of the brokers."""

    def __init__(self, pipeline: Pipeline, places: Places, readers: dict[str, set[str]]) -> None:
        self._group = places.group
        self._readers = readers
        self._sources = {
            name: source for name, source in pipeline.sources.items() if isinstance(source, TopicSource)
        }
        self._bootstraps = {
            name: places.bootstrap(source.bootstrap) for name, source in self._sources.items()
        }
        # Sources of the same cluster have the same login, as a rule.
        self._options = {
            self._bootstraps[name]: read_options(pipeline, source, places)
            for name, source in self._sources.items()
        }
        self._views: dict[str, OffsetsView] = {}
        self._changed = threading.Condition()
        self._newest: Positions | None = None
        self._is_ended = False
        self.lags: list[TopicLag] = []
        self.problem: str | None = None
        self._thread = threading.Thread(target=self._work, name="offsets", daemon=True)
        self._thread.start()

    def update(self, queries: list[QueryProgress]) -> None:
        """Hand over where the queries are; only the newest counts."""
        with self._changed:
            self._newest = self._positions(queries)
            self._changed.notify()

    def finish(self, queries: list[QueryProgress]) -> None:
        """Commit the last positions, and wait for it a little."""
        self.update(queries)
        self.close()
        self._thread.join(_FINISH_S)

    def close(self) -> None:
        with self._changed:
            self._is_ended = True
            self._changed.notify()

    def _positions(self, queries: list[QueryProgress]) -> Positions:
        """By cluster, what every reader of a topic has done."""
        topics = {topic for query in queries for topic, _ in query.positions}
        found: Positions = defaultdict(dict)
        for bootstrap in set(self._bootstraps.values()):
            sources = {
                name: part for name, part in self._sources.items() if self._bootstraps[name] == bootstrap
            }
            found[bootstrap] = common_positions(queries, topic_readers(sources, self._readers, topics))
        return found

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._newest is not None or self._is_ended)
                positions, self._newest = self._newest, None
            if positions is not None:
                self._ask(positions)
            with self._changed:
                if self._changed.wait_for(lambda: self._is_ended, INTERVAL_S) and self._newest is None:
                    break
        for view in self._views.values():
            view.close()

    def _ask(self, positions: Positions) -> None:
        lags: list[TopicLag] = []
        for bootstrap, known in positions.items():
            try:
                if bootstrap not in self._views:
                    self._views[bootstrap] = OffsetsView(self._options[bootstrap], self._group)
                self._views[bootstrap].commit(known)
                lags += self._views[bootstrap].lags(known)
                self.problem = None
            except (WireError, OSError) as error:
                self.problem = str(error)
                return
        self.lags = lags
