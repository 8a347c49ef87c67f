"""The metrics of a running pipeline in Prometheus' text format, on a port of their own. No Spark here."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

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
    """Serves `/metrics` from a thread until it is closed."""

    def __init__(self, host: str, port: int, snapshot: Callable[[], Snapshot]) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                is_known = self.path.split("?")[0] in ("/", "/metrics")
                body = (text(snapshot()) if is_known else "see /metrics\n").encode()
                self.send_response(200 if is_known else 404)
                self.send_header("Content-Type", CONTENT_TYPE)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Requests are no news."""

        self._server = ThreadingHTTPServer((host, port), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
