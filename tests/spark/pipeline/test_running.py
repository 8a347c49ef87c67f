"""A running pipeline is found by its name, only one runs at a time, and a dead one is not taken for alive."""

import multiprocessing
import os
import signal
import urllib.request
from pathlib import Path

import pytest

from mainstem.spark.pipeline import running
from mainstem.spark.pipeline.figures import QueryFigures, Snapshot
from mainstem.spark.pipeline.prometheus import MetricsServer


def _state(name: str = "p") -> running.State:
    return running.State(name, os.getpid(), "p.yaml", "local[*]", "cp", "g", "p.log")


def test_the_state_of_a_running_pipeline(tmp_path: Path) -> None:
    assert not running.is_running("p", tmp_path)
    with running.Registration(_state(), tmp_path) as registration:
        assert running.is_running("p", tmp_path)
        registration.state.phase = "running"
        registration.state.snapshot = Snapshot("p", [QueryFigures("out", rows_in=3)])
        registration.write()
        found = running.read_state("p", tmp_path)
        assert found is not None
        assert found.snapshot is not None
        assert (found.phase, found.snapshot.queries[0].rows_in) == ("running", 3)
        with (
            pytest.raises(running.AlreadyRunning, match=f"running already .process {os.getpid()}."),
            running.Registration(_state(), tmp_path),
        ):
            pass
    assert not running.is_running("p", tmp_path)
    assert running.known_pipelines(tmp_path) == ["p"]


def _run_until_asked(folder: Path, ready: "multiprocessing.synchronize.Event") -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    with running.Registration(_state(), folder):
        ready.set()
        signal.sigwait({signal.SIGTERM})


def test_stop_waits_for_the_end(tmp_path: Path) -> None:
    ready = multiprocessing.Event()
    process = multiprocessing.Process(target=_run_until_asked, args=(tmp_path, ready))
    process.start()
    assert ready.wait(60)
    assert running.stop("p", 60, tmp_path)
    assert not running.is_running("p", tmp_path)
    process.join()
    assert running.stop("p", 1, tmp_path)  # nothing to do


def test_a_killed_pipeline_is_not_running(tmp_path: Path) -> None:
    ready = multiprocessing.Event()
    process = multiprocessing.Process(target=_run_until_asked, args=(tmp_path, ready))
    process.start()
    assert ready.wait(60)
    process.kill()
    process.join()
    assert not running.is_running("p", tmp_path)
    assert running.read_state("p", tmp_path) is not None


def test_metrics_are_served_on_a_port_of_their_own() -> None:
    server = MetricsServer("127.0.0.1", 0, lambda: Snapshot("p", [QueryFigures("out", rows_in=3)]))
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=30) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            assert 'mainstem_pipeline_rows_in_total{pipeline="p",sink="out"} 3' in answer.read().decode()
    finally:
        server.close()
