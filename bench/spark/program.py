"""The program in Spark's process: does a piece of work for each line of JSON that comes in, and answers with
one. `local[2]`, Spark's settings as they are; both connectors in one session, so in one warmed JVM.

It ends when its input does, so that it never outlives the run.
"""

import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

# What a query that was just started does in its first micro-batches is not what it does while it runs.
_FIRST_BATCHES = 3
_PAUSE_S = 0.02
_QUERY_TIMEOUT_S = 300


def start_session(jars: list[str], folder: Path) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    settings: dict[str, bool | float | int | str | None] = {
        "spark.jars": ",".join(jars),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    session = SparkSession.builder.master("local[2]").appName("bench").config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


class Work:
    """Every public method is a piece of work; its answer is a dictionary of plain values."""

    def __init__(self, session: SparkSession, folder: Path) -> None:
        self._session = session
        self._folder = folder

    def count(self, connector: str, bootstrap: str, topic: str) -> dict[str, Any]:
        return {"rows": self._frame(connector, bootstrap, topic).count()}

    def read(self, connector: str, bootstrap: str, topic: str) -> dict[str, Any]:
        started = time.monotonic()
        self._frame(connector, bootstrap, topic).write.format("noop").mode("overwrite").save()
        return {"seconds": time.monotonic() - started}

    def stream(self, connector: str, bootstrap: str, topic: str) -> dict[str, Any]:
        """All that is there in one query, from its start to its end."""
        started = time.monotonic()
        query = self._query(connector, bootstrap, topic, "earliest", available_now=True)
        if not query.awaitTermination(_QUERY_TIMEOUT_S):
            query.stop()
            raise TimeoutError("the query does not end")
        seconds = time.monotonic() - started
        return {"seconds": seconds, "rows": sum(done["numInputRows"] for done in query.recentProgress)}

    def write(self, connector: str, bootstrap: str, topic: str, rows: int, size_bytes: int) -> dict[str, Any]:
        frame = self._session.range(0, rows, 1, 2).selectExpr(f"repeat('x', {size_bytes}) as value")
        writer = frame.write.format(connector).mode("append")
        started = time.monotonic()
        writer.option("kafka.bootstrap.servers", bootstrap).option("topic", topic).save()
        return {"seconds": time.monotonic() - started}

    def micro_batches(
        self, connector: str, bootstrap: str, topic: str, partitions: int, seconds: float
    ) -> dict[str, Any]:
        """The durations of a running query's micro-batches, while a few records come to each partition."""
        query = self._query(connector, bootstrap, topic, "latest", available_now=False)
        ended = threading.Event()
        trickle = threading.Thread(target=_trickle, args=(bootstrap, topic, partitions, ended))
        trickle.start()
        try:
            deadline = time.monotonic() + _QUERY_TIMEOUT_S
            while query.isActive and not query.recentProgress and time.monotonic() < deadline:
                time.sleep(_PAUSE_S)
            # Raises what has ended the query, if something has.
            query.awaitTermination(round(seconds))
        finally:
            ended.set()
            trickle.join()
            query.stop()
        if not query.recentProgress:
            raise TimeoutError("the query does nothing")
        with_rows = [done for done in query.recentProgress if done["numInputRows"]]
        durations = [done["durationMs"]["triggerExecution"] for done in with_rows[_FIRST_BATCHES:]]
        return {"durations_ms": durations}

    def _frame(self, connector: str, bootstrap: str, topic: str) -> DataFrame:
        reader = self._session.read.format(connector).option("kafka.bootstrap.servers", bootstrap)
        return reader.option("subscribe", topic).load()

    def _query(
        self, connector: str, bootstrap: str, topic: str, starting: str, *, available_now: bool
    ) -> StreamingQuery:
        checkpoint = tempfile.mkdtemp(prefix="checkpoint-", dir=self._folder)
        reader = self._session.readStream.format(connector).option("kafka.bootstrap.servers", bootstrap)
        frame = reader.option("subscribe", topic).option("startingOffsets", starting).load()
        writer = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
        return (writer.trigger(availableNow=True) if available_now else writer).start()


def _trickle(bootstrap: str, topic: str, partitions: int, ended: threading.Event) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "broker.address.family": "v4"})
    while not ended.wait(_PAUSE_S):
        for number in range(partitions):
            producer.produce(topic, b"x" * 100, partition=number)
        producer.flush(30)


def answer_of(work: dict[str, Callable[..., dict[str, Any]]], line: str) -> dict[str, Any]:
    """What a line asks for; a failure is an answer, too."""
    request = json.loads(line)
    try:
        return work[request.pop("work")](**request)
    except Exception as error:
        return {"error": " ".join(str(error).split())[-500:] or type(error).__name__}


def main(jars: list[str]) -> None:
    # Java inherits the standard output: it gets the standard error for one, and the answers keep their own.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    folder = Path(tempfile.mkdtemp(prefix="mainstem-bench-spark-"))
    try:
        work = Work(start_session(jars, folder), folder)
        offered = {name: getattr(work, name) for name in dir(work) if not name.startswith("_")}
        for line in sys.stdin:
            print(json.dumps(answer_of(offered, line)), file=answers, flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1:])
