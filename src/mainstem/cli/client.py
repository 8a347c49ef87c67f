"""How the client-side subcommands reach a broker: librdkafka handles, and its errors turned into advice.

Every subcommand gets its connection here, so that an unreachable broker reads the same everywhere.
"""

from __future__ import annotations

import contextlib
import logging
import socket
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, ClusterMetadata, TopicMetadata

from mainstem.cli.errors import CommandError
from mainstem.cli.streams import say
from mainstem.nearest import suggestion

DEFAULT_BOOTSTRAP = "localhost:9092"
REQUEST_TIMEOUT_S = 15.0
CONNECT_TIMEOUT_S = 3.0
# How long an empty fetch may wait where only what is there already is wanted: the end is known sooner.
END_WAIT_MS = 10

Bootstrap = Annotated[
    str,
    typer.Option(
        "--bootstrap-server",
        "-b",
        envvar="MAINSTEM_BOOTSTRAP",
        metavar="HOST:PORT",
        help="The broker to talk to; several may be given with commas.",
    ),
]

_silent = logging.getLogger("mainstem.librdkafka")
_silent.addHandler(logging.NullHandler())
_silent.propagate = False


def admin_client(bootstrap: str) -> AdminClient:
    """An admin handle, after making sure that something listens there."""
    check_reachable(bootstrap)
    return AdminClient(_settings(bootstrap), logger=_silent)


def producer_client(bootstrap: str, settings: dict[str, Any]) -> Producer:
    """A producer handle with librdkafka's settings on top of the common ones."""
    check_reachable(bootstrap)
    return Producer(_settings(bootstrap) | settings, logger=_silent)


def consumer_client(bootstrap: str, settings: dict[str, Any]) -> Consumer:
    """A consumer handle for `assign`. librdkafka wants a group id even where no group is joined."""
    check_reachable(bootstrap)
    common = {"group.id": "mainstem-cli", "enable.auto.commit": False, "enable.auto.offset.store": False}
    return Consumer(_settings(bootstrap) | common | settings, logger=_silent)


def check_reachable(bootstrap: str) -> None:
    """Dial the bootstrap addresses: librdkafka would retry a refused connection until its time-out."""
    problem = ""
    for address in bootstrap.split(","):
        host, _, port = address.strip().rpartition(":")
        if not host or not port.isdecimal():
            raise CommandError(f"{address.strip()!r} is not HOST:PORT", "for example: -b localhost:9092", 2)
        try:
            socket.create_connection((host.strip("[]"), int(port)), CONNECT_TIMEOUT_S).close()
            return
        except (OSError, OverflowError) as error:
            problem = getattr(error, "strerror", None) or str(error)
    raise unreachable(bootstrap, problem.lower())


def unreachable(bootstrap: str, problem: str) -> CommandError:
    """The answer to every command that finds no broker."""
    return CommandError(
        f"no broker answers at {bootstrap} ({problem})",
        "start one with `mainstem up`, or name another with -b HOST:PORT or MAINSTEM_BOOTSTRAP",
    )


class ConnectionNotice:
    """librdkafka's error callback: it goes on trying by itself, and the person is told once each time."""

    def __init__(self) -> None:
        self._lost = False

    def __call__(self, error: KafkaError) -> None:
        if error.code() == KafkaError._ALL_BROKERS_DOWN and not self._lost:
            self._lost = True
            say("mainstem: the connection to the broker is lost; trying again (Ctrl-C stops)")

    def heard(self) -> None:
        """Something came from the broker."""
        if self._lost:
            self._lost = False
            say("mainstem: connected again")


def cluster_metadata(client: AdminClient | Consumer | Producer, bootstrap: str) -> ClusterMetadata:
    """Metadata of the whole cluster."""
    with kafka_errors(bootstrap):
        return client.list_topics(timeout=REQUEST_TIMEOUT_S)


def topic_metadata(client: AdminClient | Consumer, topic: str, bootstrap: str) -> TopicMetadata:
    """Metadata of a topic that has to exist; the error names the nearest one that does."""
    topics = cluster_metadata(client, bootstrap).topics
    if topic not in topics:
        raise no_such_topic(topic, list(topics))
    return topics[topic]


def no_such_topic(topic: str, existing: list[str], otherwise: str | None = None) -> CommandError:
    """There is no such topic: offer the likely typo."""
    hint = suggestion(topic, existing, otherwise or "`mainstem topics list` shows what is there")
    return CommandError(f"there is no topic {topic!r}", hint)


@contextlib.contextmanager
def kafka_errors(bootstrap: str, what: str | None = None) -> Iterator[None]:
    """Turn librdkafka's exceptions inside the block into a CommandError."""
    try:
        yield
    except KafkaException as error:
        raise advise(error.args[0], bootstrap, what) from None


def advise(error: KafkaError, bootstrap: str, what: str | None = None) -> CommandError:
    """A Kafka error as a sentence with a next step, where one is known."""
    if error.code() in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT):
        return unreachable(bootstrap, error.str())
    message = f"{what}: {error.str()}" if what else error.str()
    return CommandError(message, _HINTS.get(error.code()))


_HINTS = {
    KafkaError.TOPIC_ALREADY_EXISTS: "`mainstem topics describe` shows it, `topics alter` changes it",
    KafkaError.UNKNOWN_TOPIC_OR_PART: "`mainstem topics list` shows what is there",
    KafkaError.INVALID_REPLICATION_FACTOR: "a single broker keeps one copy: leave --replication-factor out",
    KafkaError.INVALID_PARTITIONS: "a topic's partitions can only grow: give more than it has now",
    KafkaError.TOPIC_EXCEPTION: "use up to 249 letters, digits, '.', '_' and '-'; '.' and '_' count as one",
    KafkaError.INVALID_CONFIG: "docs/configuration.md lists every topic setting with its range",
    KafkaError.MSG_SIZE_TOO_LARGE: "raise it: `mainstem topics alter TOPIC --config max.message.bytes=N`",
    KafkaError.INVALID_RECORD: "a compacted topic takes only messages with keys: see --key-separator",
    KafkaError.UNSUPPORTED_VERSION: "the broker does not serve this request",
}


def _settings(bootstrap: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": bootstrap,
        "client.id": "mainstem-cli",
        "socket.connection.setup.timeout.ms": 5000,
    }
