"""A broker that a scenario runs against: Mainstem or Apache Kafka. Scenarios must not care which."""

import itertools
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

# For messages with old timestamps, which retention would remove at some moment of the test.
KEEP_FOREVER = {"retention.ms": "-1"}

_counter = itertools.count()
_SETTLED_SECONDS_MAX = 30
Answer = TypeVar("Answer")


@dataclass
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

    @cached_property
    def node_id(self) -> int:
        (node,) = self.admin().list_topics(timeout=30).brokers
        return node

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
        await_leaders(admin, name, partitions)
        return name


def await_leaders(admin: AdminClient, topic: str, partitions: int) -> None:
    """Returns when every partition is served: Apache Kafka answers a creation a moment before that."""
    wanted = {TopicPartition(topic, number): OffsetSpec.latest() for number in range(partitions)}

    def ask() -> None:
        for future in admin.list_offsets(wanted, request_timeout=10).values():
            future.result(10)

    when_settled(ask, lambda _: True)


def when_settled(ask: Callable[[], Answer], is_settled: Callable[[Answer], bool]) -> Answer:
    """Ask until the answer shows a change that was made: Apache Kafka's controller acknowledges a change
    before its broker knows of it. An answer that never shows it is returned all the same, to be compared.
    """
    deadline = time.monotonic() + _SETTLED_SECONDS_MAX
    while True:
        try:
            answer = ask()
        except KafkaException:
            if time.monotonic() > deadline:
                raise
        else:
            if is_settled(answer) or time.monotonic() > deadline:
                return answer
        time.sleep(0.02)


def unique_name(prefix: str = "topic") -> str:
    """A topic name that no other test and no other worker uses."""
    return f"{prefix}-{os.getpid()}-{next(_counter)}"


def stable_ends(
    admin: AdminClient, partitions: Iterable[TopicPartition]
) -> tuple[dict[tuple[str, int], int], dict[tuple[str, int], int]]:
    """Last stable offsets and high watermarks when they are the same: no transaction is open any more. Apache
    Kafka answers a commit before it has written it into the partitions.
    """
    asked = {where: OffsetSpec.latest() for where in partitions}

    def ends(level: IsolationLevel) -> dict[tuple[str, int], int]:
        answers = admin.list_offsets(asked, isolation_level=level, request_timeout=_SETTLED_SECONDS_MAX)
        return {(where.topic, where.partition): future.result().offset for where, future in answers.items()}

    return when_settled(
        lambda: (ends(IsolationLevel.READ_COMMITTED), ends(IsolationLevel.READ_UNCOMMITTED)),
        lambda both: both[0] == both[1],
    )
