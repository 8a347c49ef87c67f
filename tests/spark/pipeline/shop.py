"""A pipeline with a broker and a process of its own, as a person runs it: files, records, waiting,
results."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Message, Producer

from mainstem.testing import Broker
from tests.cli.command import run_command
from tests.support.target import Target

JAVA = "spark.driver.extraJavaOptions=-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
WAIT_S = 400.0


class Shop:
    """The folder of a pipeline. Use as a context manager: a process that still runs is killed at the end."""

    def __init__(self, folder: Path, broker: Broker | Target) -> None:
        self.folder = folder
        self.broker = broker
        self._process: subprocess.Popen[str] | None = None
        self._environment = os.environ | {
            "XDG_RUNTIME_DIR": str(folder / "run"),
            "XDG_STATE_HOME": str(folder / "state"),
            "MAINSTEM_BOOTSTRAP": broker.bootstrap_servers,
            "COLUMNS": "200",
            "SPARK_LOCAL_IP": "127.0.0.1",
        }

    def __enter__(self) -> "Shop":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.communicate()

    def produce(self, topic: str, *values: bytes, key: bytes | None = None) -> None:
        producer = Producer({"bootstrap.servers": self.broker.bootstrap_servers})
        for value in values:
            producer.produce(topic, value, key, headers=[("trace", b"t")])
        assert producer.flush(60) == 0

    def start(self, *options: str) -> None:
        """Start `mainstem pipeline run shop.yaml`."""
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "mainstem", "pipeline", "run", "shop.yaml"),
                *("--conf", JAVA, "--log", "spark.log"),
                *(() if "--master" in options else ("--master", "local[2]")),
                *options,
            ],
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # a group of its own, as a shell gives it: see `interrupt`
        )

    def interrupt(self) -> None:
        """What a terminal does at Ctrl-C: a signal to the whole group of processes."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGINT)

    def wait(self) -> tuple[int, str]:
        """The end of the process: its exit code and what it printed."""
        assert self._process is not None
        printed, _ = self._process.communicate(timeout=WAIT_S)
        return self._process.returncode, printed

    def run(self, *options: str) -> tuple[int, str]:
        self.start(*options)
        return self.wait()

    def kill(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.communicate()

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        names = ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "MAINSTEM_BOOTSTRAP")
        return run_command(*arguments, environment={name: self._environment[name] for name in names})

    def status(self) -> dict[str, Any]:
        (found,) = json.loads(self.command("pipeline", "status", "shop", "--json").stdout)
        return dict(found)

    def until(self, condition: Any, what: str) -> None:
        """Wait until a condition on the status holds; what the process printed is in the failure."""
        assert self._process is not None
        end = time.monotonic() + WAIT_S
        while True:
            state = self.status() if (self.folder / "run" / "mainstem").exists() else {}
            if state and condition(state):
                return
            if self._process.poll() is not None:
                raise AssertionError(f"it ended before {what}: {self._process.communicate()[0]}")
            assert time.monotonic() < end, f"{what} does not come: {state}"
            time.sleep(0.2)

    def metrics(self, state: dict[str, Any]) -> str:
        with urllib.request.urlopen(
            f"http://127.0.0.1:{state['metrics_port']}/metrics", timeout=30
        ) as answer:
            return str(answer.read().decode())

    def read(self, topic: str) -> list[Message]:
        """Every committed record of a topic."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.broker.bootstrap_servers,
                "group.id": "reader",
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "enable.auto.commit": False,
            }
        )
        partitions = len(consumer.list_topics(topic, timeout=60).topics[topic].partitions)
        consumer.subscribe([topic])
        found: list[Message] = []
        ended: set[int | None] = set()
        while len(ended) < partitions:
            message = consumer.poll(60)
            assert message is not None
            if message.error() is not None:
                ended.add(message.partition())
            else:
                found.append(message)
        consumer.close()
        return found


def rows_out(state: dict[str, Any], query: str) -> int:
    queries = (state.get("snapshot") or {}).get("queries", [])
    return sum(found["rows_out"] for found in queries if found["name"] == query)
