"""A running pipeline is found by its name, only one runs at a time, and a dead one is not taken for alive."""

import multiprocessing
import os
import signal
from pathlib import Path

import pytest

from mainstem.spark.pipeline.metrics.progress import QueryMetrics, Snapshot
from mainstem.spark.pipeline.running import registration


def _state(name: str = "p") -> registration.State:
    return registration.State(name, os.getpid(), "p.yaml", "local[*]", "cp", "g", "p.log")


def test_the_state_of_a_running_pipeline(tmp_path: Path) -> None:
    assert not registration.is_running("p", tmp_path)
    with registration.Registration(_state(), tmp_path) as entry:
        assert registration.is_running("p", tmp_path)
        entry.state.phase = "running"
        entry.state.snapshot = Snapshot("p", [QueryMetrics("out", rows_in=3)])
        entry.write()
        found = registration.read_state("p", tmp_path)
        assert found is not None
        assert found.snapshot is not None
        assert (found.phase, found.snapshot.queries[0].rows_in) == ("running", 3)
        with (
            pytest.raises(registration.AlreadyRunning, match=f"running already .process {os.getpid()}."),
            registration.Registration(_state(), tmp_path),
        ):
            pass
    assert not registration.is_running("p", tmp_path)
    assert registration.known_pipelines(tmp_path) == ["p"]


def _run_until_asked(folder: Path, ready: "multiprocessing.synchronize.Event") -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    with registration.Registration(_state(), folder):
        ready.set()
        signal.sigwait({signal.SIGTERM})


def test_stop_waits_for_the_end(tmp_path: Path) -> None:
    ready = multiprocessing.Event()
    process = multiprocessing.Process(target=_run_until_asked, args=(tmp_path, ready))
    process.start()
    assert ready.wait(60)
    assert registration.stop("p", 60, tmp_path)
    assert not registration.is_running("p", tmp_path)
    process.join()
    assert registration.stop("p", 1, tmp_path)  # nothing to do


def test_a_killed_pipeline_is_not_running(tmp_path: Path) -> None:
    ready = multiprocessing.Event()
    process = multiprocessing.Process(target=_run_until_asked, args=(tmp_path, ready))
    process.start()
    assert ready.wait(60)
    process.kill()
    process.join()
    assert not registration.is_running("p", tmp_path)
    assert registration.read_state("p", tmp_path) is not None
