"""Starts Spark for a pipeline: our interpreter for the workers, sane settings, its noise in a log file."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path as FilePath
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from mainstem.spark.pipeline.steps import Step

LOCAL_DEFAULTS = {
    "spark.sql.shuffle.partitions": "{cores}",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
DEFAULTS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.streaming.stopTimeout": "60s",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.streaming.metricsEnabled": "false",
}
_COMPLAINTS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


def is_local(master: str) -> bool:
    return master.startswith("local")


def settings(master: str, given: Mapping[str, str], steps: Iterable[Step] = ()) -> dict[str, str]:
    """Spark's configuration: what is given, over what suits a pipeline and what its steps need."""
    found = dict(DEFAULTS)
    if is_local(master):
        cores = _cores(master)
        found |= {key: value.format(cores=max(2, cores)) for key, value in LOCAL_DEFAULTS.items()}
    for step in steps:
        found |= step.SPARK
    return found | dict(given)


def _cores(master: str) -> int:
    inside = master.partition("[")[2].rstrip("]").partition(",")[0]
    if inside == "*" or not inside:
        return os.cpu_count() or 1 if inside else 1
    return int(inside) if inside.isdecimal() else 1


def worker_environment(folder: FilePath, python: str | None = None) -> dict[str, str]:
    """What the workers on this machine need: our interpreter, and our modules and the pipeline's
    importable."""
    import mainstem

    paths = [str(FilePath(mainstem.__file__).parents[1]), str(folder)]
    paths += [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path not in paths]
    return {
        "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON") or python or sys.executable,
        "PYSPARK_DRIVER_PYTHON": os.environ.get("PYSPARK_DRIVER_PYTHON") or sys.executable,
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
    }


def start(
    name: str, master: str, configuration: Mapping[str, str], folder: FilePath, log: FilePath | None = None
) -> SparkSession:
    """A session; everything that Java prints goes to `log`."""
    os.environ.update(worker_environment(folder, configuration.get("spark.pyspark.python")))
    if is_local(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name).master(master)
    for key, value in configuration.items():
        builder = builder.config(key, value)
    with _interrupts_kept():
        if log is None:
            return builder.getOrCreate()
        log.parent.mkdir(parents=True, exist_ok=True)
        _complaints_into(log)
        with log.open("ab") as stream, _output_into(stream):
            return builder.getOrCreate()


@contextmanager
def _interrupts_kept() -> Iterator[None]:
    """PySpark makes Ctrl-C cancel every job at once; what it does is for who started Spark to say. Java and
    its Python processes do not hear it: PySpark has Java ignore it, and workers are a group of their own."""
    if threading.current_thread() is not threading.main_thread():
        yield  # PySpark leaves signals alone there, and they cannot be set
        return
    kept = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, kept)


def _complaints_into(log: FilePath) -> None:
    """PySpark writes what Spark has against a query to our standard error, with Java's whole stack, before
    it raises the same; that is for the log."""
    from pyspark.logger import PySparkLogger

    for name in _COMPLAINTS:
        logger = PySparkLogger.getLogger(name)
        for handler in list(logger.handlers):
            logger.removeHandler(handler)
            handler.close()
        logger.addHandler(logging.FileHandler(log, encoding="utf-8"))


@contextmanager
def _output_into(stream: IO[bytes]) -> Iterator[None]:
    """Java inherits our standard output and error when it is started; for that moment they are the log."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(1), os.dup(2)]
    try:
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
        yield
    finally:
        for number, copy in zip((1, 2), kept, strict=True):
            os.dup2(copy, number)
            os.close(copy)
