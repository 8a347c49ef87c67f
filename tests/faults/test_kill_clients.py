"""kill -9 under a stock client: an idempotent producer sends again, and every message is there once."""

from random import Random
from typing import Any

import pytest
from confluent_kafka import Message, Producer

from mainstem.testing import Broker
from tests.faults.ledger import connect, read_all
from tests.faults.load import wait_until
from tests.faults.topic_changes import create_topic

PARTITIONS = 2
MESSAGES = 6000


@pytest.mark.parametrize("seed", [1])
def test_an_idempotent_producer_delivers_each_message_once_over_kills(seed: int) -> None:
    random = Random(seed)
    delivered: dict[tuple[int, int], bytes] = {}

    def note(error: Any, message: Message) -> None:
        assert error is None, error
        where = (message.partition() or 0, message.offset() or 0)
        assert where not in delivered, f"{where} was given twice"
        delivered[where] = message.value() or b""

    with Broker() as broker:
        with connect(broker) as client:
            create_topic(client, "t", PARTITIONS)
        producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "enable.idempotence": True,
                "linger.ms": 1,
                "batch.size": 2000,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.ms": 20,
                "retry.backoff.max.ms": 100,
            }
        )
        kill_at = sorted(random.sample(range(MESSAGES), 3))
        for number in range(MESSAGES):
            producer.produce("t", b"%d" % number, partition=number % PARTITIONS, on_delivery=note)
            producer.poll(0)
            if number in kill_at:
                _await_delivered(producer, delivered, number // 2)
                broker.kill()
                broker.start()
        assert producer.flush(60) == 0
        assert len(delivered) == MESSAGES
        with connect(broker) as client:
            for partition in range(PARTITIONS):
                values = [record.value or b"" for record in read_all(client, "t", partition)]
                assert values == [b"%d" % number for number in range(partition, MESSAGES, PARTITIONS)]
                for offset, value in enumerate(values):
                    assert delivered[partition, offset] == value


def _await_delivered(producer: Producer, delivered: dict[tuple[int, int], bytes], count: int) -> None:
    def enough() -> bool:
        producer.poll(0)
        return len(delivered) >= count

    wait_until(enough, "acknowledgements")
