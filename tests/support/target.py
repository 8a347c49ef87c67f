"""A broker that a scenario runs against: Mainstem or Apache Kafka. Scenarios must not care which."""

import itertools
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

_counter = itertools.count()


@dataclass(frozen=True)
class Target:
    """One running broker."""

    name: str
    bootstrap_servers: str
    log_dir: Path

    @property
    def is_mainstem(self) -> bool:
        return self.name == "mainstem"

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.bootstrap_servers.split(",")[0].rpartition(":")
        return host, int(port)

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap_servers})

    def create_topic(
        self, name: str = "", partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> str:
        """Create a topic with a name that nobody else has, and wait until it has its leaders."""
        name = name or unique_name()
        admin = self.admin()
        new = NewTopic(name, partitions, 1, config=dict(configs or {}))
        admin.create_topics([new])[name].result(30)
        while True:
            topic = admin.list_topics(name, timeout=10).topics[name]
            leaders = [partition.leader for partition in topic.partitions.values()]
            if len(leaders) == partitions and all(leader >= 0 for leader in leaders):
                return name


def unique_name(prefix: str = "topic") -> str:
    """A topic name that no other test and no other worker uses."""
    return f"{prefix}-{os.getpid()}-{next(_counter)}"
