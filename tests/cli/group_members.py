"""Members of groups and committed offsets for the tests of `mainstem groups`, made with librdkafka."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.support.target import when_settled

_TIMEOUT_S = 60


@contextmanager
def members(
    bootstrap: str,
    group: str,
    topic: str,
    owned: tuple[int, ...],
    joined: Sequence[Consumer] = (),
    **settings: Any,
) -> Iterator[list[Consumer]]:
    """As many members as `owned` has numbers, each with one of these numbers of partitions. Those that have
    `joined` before are among them.
    """
    with ExitStack() as stack:
        joined = list(joined)
        for number in range(len(joined), len(owned)):
            consumer = Consumer(
                {
                    "bootstrap.servers": bootstrap,
                    "group.id": group,
                    "client.id": f"client-{number}",
                    "auto.offset.reset": "earliest",
                    "enable.auto.commit": False,
                    **settings,
                }
            )
            stack.callback(consumer.close)
            consumer.subscribe([topic])
            joined.append(consumer)
        wanted = sorted(owned)
        await_condition(lambda: sorted(_owned(consumer) for consumer in joined) == wanted)
        yield joined


def _owned(consumer: Consumer) -> int:
    """How many partitions it has, after it has had a moment to take part in a rebalance."""
    message = consumer.poll(0.05)
    assert message is None or message.error() is None, message.error()
    return len(consumer.assignment())


def await_condition(is_met: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while not is_met():
        assert time.monotonic() < deadline, "it did not come to be"


def commit(bootstrap: str, group: str, topic: str, *offsets: int) -> None:
    """Commit an offset for each partition, from outside of the group; a negative one is left out."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    positions = [
        TopicPartition(topic, number, offset) for number, offset in enumerate(offsets) if offset >= 0
    ]

    def ask() -> None:
        for position in consumer.commit(offsets=positions, asynchronous=False) or []:
            if position.error is not None:
                raise KafkaException(position.error)

    # The first group of a cluster finds a coordinator before Apache Kafka has loaded it.
    when_settled(ask, lambda _: True)
    consumer.close()


def committed(bootstrap: str, group: str, topic: str, partitions: int) -> list[int]:
    """The committed offset of each partition; librdkafka's -1001 where there is none."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    wanted = [TopicPartition(topic, number) for number in range(partitions)]
    found = [position.offset for position in consumer.committed(wanted, timeout=30)]
    consumer.close()
    return found
