"""Creating, deleting and growing topics, asked of the controller or of whoever forwards to it.

Nothing is asked a second time that may have been done the first time. What a broker refuses is a value for
each topic: one refused topic does not keep the others from being made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeVar

from mainstem.protocol.apis.k19_create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from mainstem.protocol.apis.k20_delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from mainstem.protocol.apis.k37_create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.wire.brokers import Brokers
from mainstem.wire.connection import Connection
from mainstem.wire.errors import KafkaRefusal, check

BROKER_DEFAULT = -1
Answer = TypeVar("Answer")


class NewTopic(NamedTuple):
    """A topic to be created; -1 is the broker's default."""

    name: str
    partitions: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    configs: Mapping[str, str] = {}


class CreatedTopic(NamedTuple):
    """What it got. Older brokers tell nothing: -1 and no settings."""

    partitions: int
    replication_factor: int
    configs: dict[str, str | None]


def create_topics(brokers: Brokers, topics: Iterable[NewTopic]) -> dict[str, CreatedTopic | KafkaRefusal]:
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(
                topic.name,
                topic.partitions,
                topic.replication_factor,
                configs=[CreatableTopicConfig(*item) for item in topic.configs.items()],
            )
            for topic in topics
        ],
        timeout_ms=brokers.options.request_timeout_ms,
    )

    def ask(connection: Connection) -> dict[str, CreatedTopic | KafkaRefusal]:
        answer: CreateTopicsResponse = connection.call(request)
        return {
            topic.name: _refused(topic.error_code, f"create {topic.name}", topic.error_message)
            or CreatedTopic(
                topic.num_partitions,
                topic.replication_factor,
                {entry.name: entry.value for entry in topic.configs or ()},
            )
            for topic in answer.topics
        }

    return _at_controller(brokers, ask)


def delete_topics(brokers: Brokers, names: Iterable[str]) -> dict[str, KafkaRefusal | None]:
    wanted = list(dict.fromkeys(names))
    request = DeleteTopicsRequest(
        topics=[DeleteTopicState(name) for name in wanted],
        topic_names=wanted,
        timeout_ms=brokers.options.request_timeout_ms,
    )

    def ask(connection: Connection) -> dict[str, KafkaRefusal | None]:
        answer: DeleteTopicsResponse = connection.call(request)
        return {
            topic.name or "": _refused(topic.error_code, f"delete {topic.name}", topic.error_message)
            for topic in answer.responses
        }

    return _at_controller(brokers, ask)


def create_partitions(brokers: Brokers, counts: Mapping[str, int]) -> dict[str, KafkaRefusal | None]:
    request = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name, count, None) for name, count in counts.items()],
        timeout_ms=brokers.options.request_timeout_ms,
    )

    def ask(connection: Connection) -> dict[str, KafkaRefusal | None]:
        answer: CreatePartitionsResponse = connection.call(request)
        return {
            topic.name: _refused(topic.error_code, f"alter {topic.name}", topic.error_message)
            for topic in answer.results
        }

    return _at_controller(brokers, ask)


def _refused(code: int, what: str, message: str | None) -> KafkaRefusal | None:
    if code == ErrorCode.NOT_CONTROLLER:  # of one topic it is the whole request's: nothing was done
        check(code, what, message)
    return KafkaRefusal(code, what, message) if code != ErrorCode.NONE else None


def _at_controller(brokers: Brokers, ask: Callable[[Connection], Answer]) -> Answer:
    """Any broker may be asked first: only those of old clusters do not forward."""
    attempts = brokers.attempts()
    connection = brokers.any_connection()
    while True:
        try:
            return ask(connection)
        except KafkaRefusal as refusal:
            if refusal.code != ErrorCode.NOT_CONTROLLER:
                raise
            attempts.pause(refusal)
        brokers.refresh(())
        connection = brokers.connection(brokers.controller)
