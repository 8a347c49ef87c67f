"""Members of a consumer group, each a stock client, behind one interface: what it owns, what it received.

Every Python client runs in a thread of its own that does nothing but poll; the Java consumer runs inside
Kafka's own VerifiableConsumer. Nothing here waits for luck: `group_views.py` waits for conditions.
"""

import asyncio
import json
import os
import signal
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import mkdtemp
from threading import Event, Lock, Thread
from typing import Any, NamedTuple

import aiokafka
import kafka
from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AioRange
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor as AioRoundRobin
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor as AioSticky
from confluent_kafka import Consumer, KafkaError, KafkaException
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from mainstem.protocol.resources import TopicPartition
from tests.support.kafka_peer import kafka_command
from tests.support.shared import guarded, session_folder
from tests.support.target import Target

_POLL_SECONDS = 0.05
_JOIN_SECONDS = 40


class Received(NamedTuple):
    """A message as a member got it."""

    topic: str
    partition: int
    offset: int
    value: bytes


class Change(NamedTuple):
    """What a rebalance listener was told."""

    kind: str  # "assigned" or "revoked"
    partitions: frozenset[TopicPartition]


@dataclass(frozen=True)
class Options:
    """A member's settings in no client's spelling. Times are short where a test waits for them."""

    strategy: str = "range"  # or several, with commas, in order of preference
    reset: str = "earliest"
    instance_id: str = ""
    protocol: str = "classic"
    remote_assignor: str = ""
    heartbeat_interval_ms: int = 100
    session_timeout_ms: int = 30_000
    max_poll_interval_ms: int = 60_000
    auto_commit: bool = True


class Member(ABC):
    """One member. The sets of owned partitions follow what the client tells its rebalance listener."""

    client = ""
    strategies: tuple[str, ...] = ()

    def __init__(
        self, target: Target, group: str, topics: Iterable[str], name: str, options: Options | None = None
    ) -> None:
        self.target = target
        self.group = group
        self.topics = list(topics)
        self.name = name
        self.options = options or Options()
        self.received: list[Received] = []
        self.changes: list[Change] = []
        self.failure: BaseException | None = None
        self._owned: frozenset[TopicPartition] = frozenset()
        self._lock = Lock()

    @property
    def owned(self) -> frozenset[TopicPartition]:
        with self._lock:
            return self._owned

    @property
    def partitions(self) -> list[int]:
        """The numbers of what it owns, for tests with one topic."""
        return sorted(partition for _, partition in self.owned)

    @property
    def offsets(self) -> dict[int, list[int]]:
        """The offsets that it received, by partition, in the order of arrival."""
        found: dict[int, list[int]] = {}
        for message in list(self.received):
            found.setdefault(message.partition, []).append(message.offset)
        return found

    def assigned(self, partitions: Iterable[TopicPartition]) -> None:
        change = Change("assigned", frozenset(partitions))
        with self._lock:
            self._owned |= change.partitions
            self.changes.append(change)

    def revoked(self, partitions: Iterable[TopicPartition]) -> None:
        change = Change("revoked", frozenset(partitions))
        with self._lock:
            self._owned -= change.partitions
            self.changes.append(change)

    def check(self) -> None:
        """Raise what went wrong inside the member."""
        if self.failure is not None:
            raise AssertionError(f"{self.client} member {self.name} failed") from self.failure

    @abstractmethod
    def ask_to_end(self) -> None:
        """Tell it to end as a well-behaved consumer: commit, leave the group (unless it is static), stop."""

    @abstractmethod
    def close(self) -> None:
        """Have it end well, and wait for that."""


class PolledMember(Member):
    """A Python client in its thread. Subclasses say how it opens, polls and closes."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._stop = Event()
        self._may_poll = Event()
        self._may_poll.set()
        self._thread = Thread(target=self._guarded_life, name=self.name, daemon=True)
        self._thread.start()

    def stall(self) -> None:
        """No more polls: the application is stuck in its own work, the client's background goes on."""
        self._may_poll.clear()

    def resume(self) -> None:
        self._may_poll.set()

    def ask_to_end(self) -> None:
        self._stop.set()
        self._may_poll.set()

    def close(self) -> None:
        self.ask_to_end()
        self._thread.join(_JOIN_SECONDS)
        assert not self._thread.is_alive(), f"{self.client} member {self.name} does not end"
        self.check()

    def take_failure(self) -> BaseException:
        """What ended it; a member that was meant to fail passes the checks from then on."""
        self._thread.join(_JOIN_SECONDS)
        assert self.failure is not None, f"{self.client} member {self.name} goes on"
        failure, self.failure = self.failure, None
        return failure

    def _guarded_life(self) -> None:
        try:
            self.live()
        except BaseException as error:
            self.failure = error

    @abstractmethod
    def live(self) -> None:
        """Open, poll until told to stop, close."""


class ConfluentMember(PolledMember):
    """librdkafka through confluent-kafka."""

    client = "confluent-kafka"
    strategies = ("range", "roundrobin", "cooperative-sticky")
    _fatal: KafkaException | None = None

    def settings(self) -> dict[str, Any]:
        options = self.options
        settings: dict[str, Any] = {
            "bootstrap.servers": self.target.bootstrap_servers,
            "group.id": self.group,
            "client.id": self.name,
            "auto.offset.reset": {"none": "error"}.get(options.reset, options.reset),
            "enable.auto.commit": options.auto_commit,
            "auto.commit.interval.ms": 500,
            "max.poll.interval.ms": options.max_poll_interval_ms,
            "topic.metadata.refresh.interval.ms": 1000,
            "fetch.wait.max.ms": 50,
            "error_cb": self.on_error,
        }
        if options.instance_id:
            settings["group.instance.id"] = options.instance_id
        if options.protocol == "consumer":
            settings["group.protocol"] = "consumer"
            if options.remote_assignor:
                settings["group.remote.assignor"] = options.remote_assignor
        else:
            settings["partition.assignment.strategy"] = options.strategy
            settings["session.timeout.ms"] = options.session_timeout_ms
            settings["heartbeat.interval.ms"] = options.heartbeat_interval_ms
        return settings

    def live(self) -> None:
        consumer = Consumer(self.settings())
        try:
            consumer.subscribe(
                self.topics,
                on_assign=lambda _, found: self.assigned((it.topic, it.partition) for it in found),
                on_revoke=lambda _, found: self.revoked((it.topic, it.partition) for it in found),
                on_lost=lambda _, found: self.revoked((it.topic, it.partition) for it in found),
            )
            while not self._stop.is_set():
                self._may_poll.wait()
                message = consumer.poll(_POLL_SECONDS)
                if self._fatal is not None:
                    raise self._fatal
                if message is None:
                    continue
                error = message.error()
                if error is not None:
                    self.on_error(error)
                    continue
                self.received.append(
                    Received(
                        message.topic() or "",
                        message.partition() or 0,
                        message.offset() or 0,
                        message.value() or b"",
                    )
                )
        finally:
            consumer.close()

    def on_error(self, error: Any) -> None:
        """librdkafka tells of passing troubles too; only what ends the consumer counts."""
        if error.fatal() or error.code() in (KafkaError._FATAL, KafkaError._AUTO_OFFSET_RESET):
            self._fatal = KafkaException(error)


class KafkaPythonMember(PolledMember):
    """kafka-python."""

    client = "kafka-python"
    strategies = ("range", "roundrobin", "sticky", "cooperative-sticky")
    _ASSIGNORS = {  # noqa: RUF012 - never changed
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "sticky": StickyPartitionAssignor,
        "cooperative-sticky": CooperativeStickyAssignor,
    }

    def live(self) -> None:
        options = self.options
        member = self

        class Listener(kafka.ConsumerRebalanceListener):  # type: ignore[misc]
            def on_partitions_assigned(self, assigned: Any) -> None:
                member.assigned((it.topic, it.partition) for it in assigned)

            def on_partitions_revoked(self, revoked: Any) -> None:
                member.revoked((it.topic, it.partition) for it in revoked)

        class StoppableConsumer(kafka.KafkaConsumer):  # type: ignore[misc]
            """A poll that ends while the client joins leaves this client stuck now and then, with any
            broker: so it polls for long, and this ends a poll that finds nothing."""

            def _poll_once(self, *arguments: Any, **named: Any) -> Any:
                member._may_poll.wait()
                if member._stop.is_set():
                    raise _StoppedError
                return super()._poll_once(*arguments, **named)

        consumer = StoppableConsumer(
            bootstrap_servers=self.target.bootstrap_servers,
            group_id=self.group,
            client_id=self.name,
            group_instance_id=options.instance_id or None,
            partition_assignment_strategy=[self._ASSIGNORS[name] for name in options.strategy.split(",")],
            auto_offset_reset=options.reset,
            enable_auto_commit=options.auto_commit,
            auto_commit_interval_ms=500,
            session_timeout_ms=options.session_timeout_ms,
            heartbeat_interval_ms=options.heartbeat_interval_ms,
            max_poll_interval_ms=options.max_poll_interval_ms,
            metadata_max_age_ms=1000,
            fetch_max_wait_ms=50,
        )
        try:
            consumer.subscribe(self.topics, listener=Listener())
            while not self._stop.is_set():
                for records in consumer.poll(timeout_ms=20_000).values():
                    self.received += [Received(it.topic, it.partition, it.offset, it.value) for it in records]
        except _StoppedError:
            pass
        finally:
            consumer.close()


class _StoppedError(Exception):
    """Ends a poll."""


class AioMember(PolledMember):
    """aiokafka, in an event loop of its own."""

    client = "aiokafka"
    strategies = ("range", "roundrobin", "sticky")
    _ASSIGNORS = {  # noqa: RUF012 - never changed
        "range": AioRange,
        "roundrobin": AioRoundRobin,
        "sticky": AioSticky,
    }

    def live(self) -> None:
        asyncio.run(self._live())

    async def _live(self) -> None:
        options = self.options
        member = self

        class Listener(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]
            async def on_partitions_assigned(self, assigned: Any) -> None:
                member.assigned((it.topic, it.partition) for it in assigned)

            async def on_partitions_revoked(self, revoked: Any) -> None:
                member.revoked((it.topic, it.partition) for it in revoked)

        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=self.target.bootstrap_servers,
            group_id=self.group,
            client_id=self.name,
            group_instance_id=options.instance_id or None,
            # Its assignors keep what they remember in the class: each member needs one for itself.
            partition_assignment_strategy=[
                type(self.name, (self._ASSIGNORS[name],), {}) for name in options.strategy.split(",")
            ],
            auto_offset_reset=options.reset,
            enable_auto_commit=options.auto_commit,
            auto_commit_interval_ms=500,
            session_timeout_ms=options.session_timeout_ms,
            heartbeat_interval_ms=options.heartbeat_interval_ms,
            max_poll_interval_ms=options.max_poll_interval_ms,
            metadata_max_age_ms=1000,
            fetch_max_wait_ms=50,
        )
        consumer.subscribe(self.topics, listener=Listener())
        await consumer.start()
        try:
            while not self._stop.is_set():
                await asyncio.to_thread(self._may_poll.wait)
                for records in (await consumer.getmany(timeout_ms=int(_POLL_SECONDS * 1000))).values():
                    self.received += [Received(it.topic, it.partition, it.offset, it.value) for it in records]
        finally:
            await consumer.stop()


class JavaMember(Member):
    """The Java consumer inside VerifiableConsumer, which tells on its standard output what happens to it."""

    client = "java"
    strategies = ("range", "roundrobin", "sticky", "cooperative-sticky")
    _PACKAGE = "org.apache.kafka.clients.consumer"
    _ASSIGNORS = {  # noqa: RUF012 - never changed
        "range": "RangeAssignor",
        "roundrobin": "RoundRobinAssignor",
        "sticky": "StickyAssignor",
        "cooperative-sticky": "CooperativeStickyAssignor",
    }

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        (topic,) = self.topics
        self._asked = False
        self._folder = Path(mkdtemp(dir=session_folder(), prefix="java-member-"))
        with open(self._folder / "stderr.log", "wb") as log:
            self._process = subprocess.Popen(
                guarded(kafka_command("VerifiableConsumer", *self._arguments(topic))),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        self._thread = Thread(target=self._read, name=self.name, daemon=True)
        self._thread.start()

    def _arguments(self, topic: str) -> list[str]:
        options = self.options
        config = self._folder / "consumer.properties"
        config.write_text(
            f"client.id={self.name}\n"
            f"max.poll.interval.ms={options.max_poll_interval_ms}\n"
            "auto.commit.interval.ms=500\n"
            "metadata.max.age.ms=1000\n"
            "fetch.max.wait.ms=50\n"
        )
        arguments = ["--bootstrap-server", self.target.bootstrap_servers, "--topic", topic, "--verbose"]
        arguments += ["--group-id", self.group, "--reset-policy", options.reset]
        arguments += ["--command-config", str(config)]
        if options.instance_id:
            arguments += ["--group-instance-id", options.instance_id]
        if options.auto_commit:
            arguments.append("--enable-autocommit")
        if options.protocol == "consumer":
            arguments += ["--group-protocol", "consumer"]
            if options.remote_assignor:
                arguments += ["--group-remote-assignor", options.remote_assignor]
        else:
            names = [f"{self._PACKAGE}.{self._ASSIGNORS[name]}" for name in options.strategy.split(",")]
            arguments += ["--assignment-strategy", ",".join(names)]
            arguments += ["--session-timeout", str(options.session_timeout_ms)]
            with open(config, "a") as file:
                file.write(f"heartbeat.interval.ms={options.heartbeat_interval_ms}\n")
        return arguments

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(b"{"):
                self._note(json.loads(line))

    def _note(self, event: dict[str, Any]) -> None:
        if event["name"] == "partitions_assigned":
            self.assigned((it["topic"], it["partition"]) for it in event["partitions"])
        elif event["name"] == "partitions_revoked":
            self.revoked((it["topic"], it["partition"]) for it in event["partitions"])
        elif event["name"] == "record_data":
            value = (event["value"] or "").encode()
            self.received.append(Received(event["topic"], event["partition"], event["offset"], value))

    def check(self) -> None:
        code = self._process.poll()
        if code not in (None, 0, 143):
            raise AssertionError(f"VerifiableConsumer ended with exit code {code}\n{self.errors}")

    @property
    def errors(self) -> str:
        return (self._folder / "stderr.log").read_text()

    def ask_to_end(self) -> None:
        if self._process.poll() is None and not self._asked:
            os.kill(self._process.pid, signal.SIGHUP)
            self._asked = True

    def close(self) -> None:
        self.ask_to_end()
        self._process.wait(_JOIN_SECONDS)
        self._thread.join(_JOIN_SECONDS)


MEMBERS: dict[str, type[Member]] = {
    kind.client: kind for kind in (ConfluentMember, KafkaPythonMember, AioMember, JavaMember)
}
PYTHON_MEMBERS: dict[str, type[PolledMember]] = {
    kind.client: kind for kind in (ConfluentMember, KafkaPythonMember, AioMember)
}


class Crew:
    """The members of one test; all are ended when it ends, whatever happened."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.members: list[Member] = []

    def start(
        self, kind: type[Member] | str, group: str, topics: str | Iterable[str], name: str, **options: Any
    ) -> Any:
        """Start a member; `options` are those of Options."""
        make: Callable[..., Member] = MEMBERS[kind] if isinstance(kind, str) else kind
        names = [topics] if isinstance(topics, str) else list(topics)
        member = make(self.target, group, names, name, replace(Options(), **options))
        self.members.append(member)
        return member

    def close(self) -> None:
        """End them all, and raise the first failure of any."""
        failures: list[BaseException] = []
        for member in self.members:
            member.ask_to_end()
        for member in self.members:
            try:
                member.close()
            except BaseException as error:
                failures.append(error)
        self.members = []
        if failures:
            raise failures[0]
