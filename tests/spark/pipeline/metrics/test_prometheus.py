"""The metrics of a running pipeline are served to Prometheus until it ends."""

import socket
import urllib.request

import pytest

from mainstem.spark.pipeline.metrics.progress import QueryMetrics, Snapshot
from mainstem.spark.pipeline.metrics.prometheus import MetricsServer


def test_metrics_are_served_on_a_port_of_their_own() -> None:
    server = MetricsServer("127.0.0.1", 0, lambda: Snapshot("p", [QueryMetrics("out", rows_in=3)]))
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=30) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            assert 'mainstem_pipeline_rows_in_total{pipeline="p",sink="out"} 3' in answer.read().decode()
    finally:
        server.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port), timeout=30)


def test_a_taken_port_is_an_error_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        MetricsServer("127.0.0.1", taken.getsockname()[1], lambda: Snapshot("p", []))
