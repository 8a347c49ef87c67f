"""The metrics of a running pipeline in Prometheus' text format, on a port of their own. No Spark here."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterable
from http import HTTPStatus

from mainstem.http_server import HttpAnswer, HttpServer
from mainstem.metrics import CONTENT_TYPE, Exposition, label
from mainstem.spark.pipeline.metrics.progress import Snapshot, is_dead_letters

Sample = tuple[dict[str, str], float]


def text(snapshot: Snapshot) -> str:
    """All metrics of one moment."""
    name = snapshot.pipeline
    queries = [({"pipeline": name, "sink": query.name}, query) for query in snapshot.queries]
    topics = [({"pipeline": name, "topic": lag.topic}, lag) for lag in snapshot.lags]
    families: list[tuple[str, str, str, Iterable[Sample]]] = [
        ("rows_in_total", "counter", "Records read.", [(at, q.rows_in) for at, q in queries]),
        ("rows_out_total", "counter", "Rows written.", [(at, q.rows_out) for at, q in queries]),
        ("batches_total", "counter", "Batches done.", [(at, q.batches) for at, q in queries]),
        (
            "input_rate",
            "gauge",
            "Records that come in per second.",
            [(at, q.input_rate) for at, q in queries],
        ),
        (
            "processed_rate",
            "gauge",
            "Records done per second.",
            [(at, q.processed_rate) for at, q in queries],
        ),
        (
            "batch_duration_seconds",
            "gauge",
            "How long the last batch took.",
            [(at, q.batch_ms / 1000) for at, q in queries],
        ),
        ("state_rows", "gauge", "Rows kept as state.", [(at, q.state_rows) for at, q in queries]),
        ("active", "gauge", "1 while the query runs.", [(at, float(q.is_active)) for at, q in queries]),
        ("lag_records", "gauge", "Records not read yet.", [(at, lag.records) for at, lag in topics]),
        (
            "lag_seconds",
            "gauge",
            "Age of the oldest record that is not read yet.",
            [(at, lag.seconds) for at, lag in topics if lag.seconds is not None],
        ),
        (
            "dead_letters_total",
            "counter",
            "Records sent to the topic of dead letters.",
            [
                ({"pipeline": name, "source": query.name.partition(".")[2]}, query.rows_out)
                for query in snapshot.queries
                if is_dead_letters(query.name)
            ],
        ),
    ]
    out = Exposition()
    for metric, kind, help_text, samples in families:
        begin = out.counter if kind == "counter" else out.gauge
        family = begin(f"mainstem_pipeline_{metric}", help_text)
        for labels, value in samples:
            family.add(value, ",".join(label(key, text) for key, text in labels.items()))
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
