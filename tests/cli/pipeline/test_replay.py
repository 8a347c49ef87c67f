"""Dead letters are sent again exactly once, with their own key, value and headers."""

from pathlib import Path

import pytest
from confluent_kafka import Consumer, Message, Producer

from mainstem.spark.pipeline.dead_letters import headers as dead_letter
from mainstem.testing import Broker
from tests.cli.conftest import Mainstem

FILE = """\
pipeline: {name}
dead_letters: {name}.dead
sources:
  orders: {{topic: {name}, decode: {{schema: id BIGINT}}}}
sinks:
  out: {{from: orders, topic: {name}.out}}
"""


class Shop:
    """A pipeline's file and topics, with some dead letters in them."""

    def __init__(self, name: str, broker: Broker, mainstem: Mainstem) -> None:
        self.name, self.broker, self.mainstem = name, broker, mainstem
        Path("shop.yaml").write_text(FILE.format(name=name))
        mainstem("topics", "create", name, "--partitions", "3")
        mainstem("topics", "create", f"{name}.dead", "--partitions", "2")

    def letter(self, key: str, partition: int, pipeline: str | None = None, value: bytes = b"{bad") -> None:
        settings = {"bootstrap.servers": self.broker.bootstrap_servers, "message.max.bytes": 2_000_000}
        producer = Producer(settings)
        told = {
            dead_letter.REASON: "not JSON",
            dead_letter.TOPIC: self.name,
            dead_letter.PARTITION: str(partition),
            dead_letter.OFFSET: "5",
            dead_letter.TIMESTAMP: "1700000000000",
            dead_letter.PIPELINE: pipeline or self.name,
            dead_letter.STEP: "orders.decode",
        }
        headers: list[tuple[str, str | bytes | None]] = [("own", b"v")]
        headers += ((name, value.encode()) for name, value in told.items())
        producer.produce(f"{self.name}.dead", key=key, value=value, headers=headers)
        assert producer.flush(30) == 0

    def replay(self, *options: str) -> str:
        done = self.mainstem(
            "pipeline", "replay-dead-letters", "shop.yaml", "-b", self.broker.bootstrap_servers, *options
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def read(self, topic: str) -> list[Message]:
        consumer = Consumer(
            {
                "bootstrap.servers": self.broker.bootstrap_servers,
                "group.id": f"reader-of-{topic}",
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "enable.auto.commit": False,
            }
        )
        partitions = len(consumer.list_topics(topic, timeout=30).topics[topic].partitions)
        consumer.subscribe([topic])
        found: list[Message] = []
        ended: set[int | None] = set()
        while len(ended) < partitions:
            message = consumer.poll(30)
            assert message is not None
            if message.error() is not None:
                ended.add(message.partition())
            else:
                found.append(message)
        consumer.close()
        return found


@pytest.fixture
def shop(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    broker: Broker,
    mainstem: Mainstem,
) -> Shop:
    monkeypatch.chdir(tmp_path)
    return Shop(f"replay-{request.node.name[5:30]}", broker, mainstem)


def test_dead_letters_go_back_to_where_they_came_from_once(shop: Shop) -> None:
    for number in range(5):
        shop.letter(f"k{number}", number % 3)
    shop.letter("foreign", 0, pipeline="another")
    assert f"sent 5 again to {shop.name}" in shop.replay()
    assert "no dead letters are left" in shop.replay()
    shop.letter("late", 1)
    assert f"sent 1 again to {shop.name}" in shop.replay()
    found = shop.read(shop.name)
    keys = sorted(message.key() or b"" for message in found)
    assert keys == [b"k0", b"k1", b"k2", b"k3", b"k4", b"late"]
    first = next(message for message in found if message.key() == b"k2")
    assert first.value() == b"{bad"
    assert first.partition() == 2
    assert first.headers() == [("own", b"v"), (dead_letter.REPLAYED, b"1")]
    assert first.timestamp()[1] == 1700000000000


def test_a_dry_run_sends_nothing(shop: Shop) -> None:
    shop.letter("k", 0)
    shown = shop.replay("--dry-run")
    assert "not JSON" in shown
    assert "1 would be sent to the topics that they came from" in shown
    assert shop.read(shop.name) == []
    assert "sent 1 again" in shop.replay()


def test_some_at_a_time_to_another_topic(shop: Shop) -> None:
    shop.mainstem("topics", "create", f"{shop.name}.repaired")
    for number in range(3):
        shop.letter(f"k{number}", 0)
    repaired = f"{shop.name}.repaired"
    assert f"sent 2 again to {repaired}" in shop.replay("--to", repaired, "--limit", "2")
    assert f"sent 1 again to {repaired}" in shop.replay("--to", repaired)
    assert "sent 3 again" in shop.replay("--again", "--to", repaired)
    assert len(shop.read(repaired)) == 6
    assert shop.read(shop.name) == []


def test_a_letter_of_more_than_a_megabyte(shop: Shop) -> None:
    with Path("shop.yaml").open("a") as file:
        file.write("kafka: {max.request.size: 2000000}\n")
    value = b"x" * 1_048_000
    shop.letter("large", 0, value=value)
    assert "sent 1 again" in shop.replay()
    assert [message.value() for message in shop.read(shop.name)] == [value]
