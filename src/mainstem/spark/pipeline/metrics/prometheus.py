"""The metrics of a running pipeline in Prometheus' text format, on a port of their own. No Spark here."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus

from mainstem.http_server import HttpAnswer, HttpServer
from mainstem.metrics import CONTENT_TYPE, Exposition, label
from mainstem.spark.pipeline.metrics.progress import (
    DEAD_LETTERS,
    QueryMetrics,
    Snapshot,
    TopicLag,
    is_dead_letters,
)

# Each metric's name, its kind, its meaning, and its value for a query, or for how far a topic is behind.
_OF_QUERIES: list[tuple[str, str, str, Callable[[QueryMetrics], float]]] = [
    ("rows_in_total", "counter", "Records read.", lambda query: query.rows_in),
    ("rows_out_total", "counter", "Rows written.", lambda query: query.rows_out),
    ("batches_total", "counter", "Batches done.", lambda query: query.batches),
    ("input_rate", "gauge", "Records that come in per second.", lambda query: query.input_rate),
    ("processed_rate", "gauge", "Records done per second.", lambda query: query.processed_rate),
    ("batch_duration_seconds", "gauge", "How long the last batch took.", lambda query: query.batch_ms / 1000),
    ("state_rows", "gauge", "Rows kept as state.", lambda query: query.state_rows),
    ("active", "gauge", "1 while the query runs.", lambda query: float(query.is_active)),
]
_OF_TOPICS: list[tuple[str, str, Callable[[TopicLag], float | None]]] = [
    ("lag_records", "Records not read yet.", lambda lag: lag.records),
    ("lag_seconds", "Age of the oldest record that is not read yet.", lambda lag: lag.seconds),
]


def text(snapshot: Snapshot) -> str:
    """All metrics of one moment."""
    out = Exposition()

    def add(
        name: str, kind: str, help_text: str, label_name: str, values: Mapping[str, float | None]
    ) -> None:
        begin = out.counter if kind == "counter" else out.gauge
        family = begin(f"mainstem_pipeline_{name}", help_text)
        for labelled, value in values.items():
            if value is not None:
                family.add(value, f"{label('pipeline', snapshot.pipeline)},{label(label_name, labelled)}")

    for name, kind, help_text, of_query in _OF_QUERIES:
        add(name, kind, help_text, "sink", {query.name: of_query(query) for query in snapshot.queries})
    for name, help_text, of_topic in _OF_TOPICS:
        add(name, "gauge", help_text, "topic", {lag.topic: of_topic(lag) for lag in snapshot.lags})
    dead_letters = {
        query.name.removeprefix(DEAD_LETTERS): query.rows_out
        for query in snapshot.queries
        if is_dead_letters(query.name)
    }
    help_text = "Records sent to the topic of dead letters."
    add("dead_letters_total", "counter", help_text, "source", dead_letters)
    return out.text()


class MetricsServer:
    """Serves `/metrics` from a thread of its own until it is closed."""

    def __init__(self, host: str, port: int, snapshot: Callable[[], Snapshot]) -> None:
        self._snapshot = snapshot
        self._socket = socket.create_server((host, port))
        self.port = int(self._socket.getsockname()[1])
        self._loop = asyncio.new_event_loop()
        self._closing = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        server = HttpServer(self._loop, [self._socket], {"/metrics": self._metrics, "/": self._metrics})
        await server.start()
        await self._closing.wait()
        server.close()

    async def _metrics(self) -> HttpAnswer:
        return HttpAnswer(HTTPStatus.OK, CONTENT_TYPE, [text(self._snapshot()).encode()])
