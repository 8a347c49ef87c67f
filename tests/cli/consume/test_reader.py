"""When `mainstem consume` gives up at an end that never comes, and what it says when the broker goes away."""

import io

import pytest
from confluent_kafka import KafkaError, TopicPartition

from mainstem.cli.clusters.librdkafka import ConnectionNotice, consumer_client
from mainstem.cli.clusters.target import Target
from mainstem.cli.consume import reader as reading
from mainstem.cli.consume.reader import Reader
from mainstem.cli.errors import CommandError
from mainstem.testing import Broker


def test_somebody_who_wants_to_stop_at_the_end_is_told_that_it_cannot_be_reached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reading, "SILENCE_MAX_S", 0.5)
    with Broker() as broker:
        consumer = consumer_client(
            Target({"bootstrap.servers": broker.bootstrap_servers}), {"enable.partition.eof": True}
        )
        # The topic does not exist, so its partition has no leader and never an end.
        reader = Reader(
            consumer,
            [TopicPartition("nowhere", 3, 0)],
            broker.bootstrap_servers,
            ConnectionNotice(),
            limit=None,
            follow=False,
        )
        broker.kill()
        with pytest.raises(CommandError, match="nothing came from partition 3"):
            reader.run(io.BytesIO(), lambda message: b"")
        consumer.close()


def test_a_lost_connection_is_announced_once_until_it_is_back(capsys: pytest.CaptureFixture[str]) -> None:
    notice = ConnectionNotice()
    down = KafkaError(KafkaError._ALL_BROKERS_DOWN)
    for _ in range(3):
        notice(down)
    notice.heard()
    notice.heard()
    notice(down)
    said = capsys.readouterr().err.splitlines()
    assert [line.split(": ")[1].split(";")[0] for line in said] == [
        "the connection to the broker is lost",
        "connected again",
        "the connection to the broker is lost",
    ]
