"""Brokers that can be killed and started again on their ports and data: Mainstem, alone and as a cluster, and
Apache Kafka.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from confluent_kafka import KafkaException

from mainstem.testing import Broker, Cluster
from tests.faults.cluster_faults import SETTINGS as CLUSTER_SETTINGS
from tests.faults.cluster_faults import KillableCluster
from tests.support.kafka_peer import kafka_command, start_own_kafka
from tests.support.shared import session_folder, start_guarded
from tests.support.target import Target

_START_SECONDS_MAX = 90


class Killable(Protocol):
    """What the runs need of a broker."""

    @property
    def bootstrap_servers(self) -> str: ...

    @property
    def log(self) -> str: ...

    def kill(self) -> None: ...

    def start(self) -> object: ...


class KafkaBroker:
    """An Apache Kafka of its own. The process that is known here is its guard, which kills it when ended."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        peer = start_own_kafka(settings)
        self.bootstrap_servers = peer.bootstrap_servers
        self._folder = Path(peer.log_dir).parent
        self._name = self._folder.parent.name
        self._pid = int((session_folder() / f"{self._name}.pid").read_text())
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        return ""  # Kafka tells of traces that mean nothing, too

    def kill(self) -> None:
        os.kill(self._pid, signal.SIGTERM)
        if self._process is not None:
            self._process.wait()
        with suppress(ChildProcessError):
            os.waitpid(self._pid, 0)

    def start(self) -> None:
        command = kafka_command("kafka.Kafka", str(self._folder / "server.properties"))
        self._process = start_guarded(self._name, command, self._folder / "kafka.log")
        self._pid = self._process.pid
        deadline = time.monotonic() + _START_SECONDS_MAX
        target = Target("kafka", self.bootstrap_servers, self._folder)
        admin = target.admin()
        while True:
            try:
                admin.list_topics(timeout=1)
            except KafkaException:
                assert self._process.poll() is None, "Apache Kafka did not start again"
                assert time.monotonic() < deadline, "Apache Kafka did not start again in time"
            else:
                return


@contextmanager
def broker_of(name: str, settings: Mapping[str, str], seed: int) -> Iterator[Killable]:
    """A broker of one kind for the length of a block. The seed decides what a cluster has to stand."""
    if name == "mainstem":
        with Broker(settings) as broker:
            yield broker
    elif name == "cluster":
        with Cluster(3, {**CLUSTER_SETTINGS, **settings}) as cluster:
            yield KillableCluster(cluster, seed)
    else:
        kafka = KafkaBroker(settings)
        try:
            yield kafka
        finally:
            kafka.kill()
