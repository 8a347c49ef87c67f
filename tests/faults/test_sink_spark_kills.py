"""A query from topic to topic, whose driver, executors, Python workers and broker are killed at random.

It happens under load. In the end every record of the one topic is in the other, once.
"""

import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

import pytest
from confluent_kafka import Producer

from mainstem.testing import Broker
from tests.faults.spark_processes import Process, SparkProgram, await_end
from tests.spark.sink.support import read_topic
from tests.support.kafka_peer import java
from tests.support.spark_java import pipeline_python_path
from tests.support.target import Target

SOURCE, SINK = "source", "sink"
QUERY = Path(__file__).with_name("sink_query_main.py")
PARTITIONS = 3
START_SECONDS_MAX = 400
REST_SECONDS_MAX = 600
RECORDS_PER_SECOND = 1_000
# How often each is chosen. In local mode there are no executors but the driver, which costs the longest wait.
VICTIMS = {"driver": 3, "executor": 3, "worker": 4, "broker": 3, "driver and broker": 1}


@contextmanager
def load(broker: Broker) -> Iterator[None]:
    """Records with unique values into the source topic, for as long as the block lasts."""
    stop = Event()
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "enable.idempotence": True,
            "message.timeout.ms": 0,
            "queue.buffering.max.messages": 1_000_000,
            "log_level": 0,  # it would tell of every killed broker
        }
    )

    def run() -> None:
        number = 0
        while not stop.wait(0.05):
            for _ in range(RECORDS_PER_SECOND // 20):
                producer.produce(SOURCE, value=b"%08d" % number, key=b"%d" % (number % 100))
                number += 1
            producer.poll(0)

    thread = Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        assert producer.flush(120) == 0


class Chaos:
    """The query, and everything that happens to it."""

    def __init__(self, broker: Broker, folder: Path, master: str, seed: int) -> None:
        self.broker = broker
        self.random = random.Random(seed)
        self.killed: Counter[str] = Counter()
        self._folder = folder
        self._master = master
        self._log = open(folder / "query.log", "wb")  # noqa: SIM115 - closed with the object
        self._program: SparkProgram | None = None
        self._orphans: list[Process] = []

    def close(self) -> None:
        if self._program is not None:
            self._program.close()
        await_end(self._orphans)
        self._log.close()

    def _command(self, trigger: str) -> list[str]:
        where = [self.broker.bootstrap_servers, SOURCE, SINK, str(self._folder), self._master, trigger]
        return [sys.executable, str(QUERY), *where]

    def _start(self, trigger: str) -> SparkProgram:
        with pipeline_python_path():
            return SparkProgram(self._command(trigger), self._log, dict(os.environ))

    def _batches(self) -> int:
        """How many micro-batches were ever begun."""
        names = (path.name for path in (self._folder / "checkpoint" / "offsets").glob("[0-9]*"))
        return max((int(name) for name in names if name.isdecimal()), default=-1) + 1

    def _await_progress(self) -> SparkProgram:
        """The query, at work on a batch that was begun since the last call; started anew if it has failed."""
        before = self._batches()
        deadline = time.monotonic() + START_SECONDS_MAX
        while self._batches() == before:
            if self._program is None or self._program.returncode is not None:
                self._program = self._start("running")
            assert time.monotonic() < deadline, f"the query makes no progress, see {self._log.name}"
            time.sleep(0.02)
        assert self._program is not None
        return self._program

    def any_victim(self) -> str:
        return self.random.choices(list(VICTIMS), list(VICTIMS.values()))[0]

    def strike(self, victim: str) -> None:
        """Kill it at a random moment of a micro-batch; where there is none, nothing is counted."""
        program = self._await_progress()
        time.sleep(self.random.random() ** 2 * 3)
        if victim in ("executor", "worker"):
            found = program.executors() if victim == "executor" else program.python_workers()
            if found:
                with suppress(ProcessLookupError):
                    os.kill(self.random.choice(found), signal.SIGKILL)
                self.killed[victim] += 1
            return
        if "driver" in victim and program.returncode is None:
            self._orphans += program.kill_driver()
            self._program = None
        if "broker" in victim:
            self.broker.kill()
            time.sleep(self.random.random())
            self.broker.start()
        self.killed[victim] += 1

    def finish(self) -> None:
        """Let the query write all that is left."""
        if self._program is not None and self._program.returncode is None:
            self._orphans += self._program.kill_driver()
        self._program = self._start("rest")
        assert self._program.wait(REST_SECONDS_MAX) == 0, (self._folder / "query.log").read_text()[-3000:]


def records_of(broker: Broker, topic: str) -> Counter[tuple[bytes | None, bytes | None]]:
    found = read_topic(broker.bootstrap_servers, topic)
    return Counter((message.key, message.value) for messages in found.values() for message in messages)


def run_chaos(folder: Path, master: str, seed: int, strikes: int = 0, victims: Sequence[str] = ()) -> None:
    """Kill these, one after the other, or so many that are drawn."""
    java()
    with Broker(data_dir=folder / "broker") as broker:
        target = Target("mainstem", broker.bootstrap_servers, broker.data_dir)
        for topic in (SOURCE, SINK):
            target.create_topic(topic, partitions=PARTITIONS)
        chaos = Chaos(broker, folder, master, seed)
        try:
            with load(broker):
                while (done := chaos.killed.total()) < (strikes or len(victims)):
                    chaos.strike(victims[done] if victims else chaos.any_victim())
            chaos.finish()
        finally:
            chaos.close()
        written, copied = records_of(broker, SOURCE), records_of(broker, SINK)
        lost, doubled = written - copied, copied - written
        assert not lost, f"{len(lost)} lost, such as {list(lost)[:5]}; killed {chaos.killed}"
        assert not doubled, f"{len(doubled)} doubled, such as {list(doubled)[:5]}; killed {chaos.killed}"
        assert sum(written.values()) > 0
        print(f"killed {dict(chaos.killed)}; {sum(written.values())} records, each once")
    assert not list((folder / "checkpoint" / "mainstem-staging").glob("*/*")), "staged files are left"


@pytest.mark.peer
@pytest.mark.timeout(1800)
def test_every_record_is_copied_once(tmp_path: Path) -> None:
    """Where executors are processes of their own, each kind of process is killed."""
    run_chaos(tmp_path, "local-cluster[2,1,1024]", 2, victims=["worker", "broker", "executor", "driver"])


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", range(10, 14))
@pytest.mark.parametrize("master", ["local[2,4]", "local-cluster[2,1,1024]"])
def test_every_record_is_copied_once_through_a_hundred_kills(tmp_path: Path, seed: int, master: str) -> None:
    """The seeds together are a hundred for each kind of Spark."""
    run_chaos(tmp_path, master, seed, strikes=25)
