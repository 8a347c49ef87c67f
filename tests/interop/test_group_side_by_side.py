"""Different clients in one group, and groups beside each other: every message reaches every group, once.

Members come and go while a producer writes. All of them leave in order, and commit before they give up what
they own: not even a duplicate is allowed. (Cooperative members give single partitions up without a commit.)
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

import pytest
from confluent_kafka import Producer

from tests.support.group_members import PYTHON_MEMBERS, Crew, Member
from tests.support.group_views import GroupView, await_messages, counts, fill
from tests.support.target import Target, unique_name

PARTITIONS = 8


class Stream:
    """Messages at a steady rate, in turn over the partitions."""

    def __init__(self, target: Target, topic: str, partitions: int) -> None:
        self._producer = Producer({"bootstrap.servers": target.bootstrap_servers, "linger.ms": 2})
        self._topic = topic
        self._partitions = partitions
        self.count = 0
        self._stop = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(0.002):
            self._producer.produce(self._topic, b"%d" % self.count, partition=self.count % self._partitions)
            self.count += 1
            self._producer.poll(0)

    def end(self) -> None:
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(30) == 0


@contextmanager
def streaming(target: Target, topic: str, partitions: int) -> Iterator[Stream]:
    stream = Stream(target, topic, partitions)
    try:
        yield stream
    finally:
        stream.end()


def assert_each_once(members: list[Member], topic: str, partitions: int, count: int) -> None:
    await_messages(members, topic, partitions, count)
    for member in members:
        member.close()
    found = counts(members)
    again = sorted(where for where, times in found.items() if times > 1)
    assert not again, f"{len(again)} messages were delivered more than once, such as {again[0]}"
    assert len(found) == count


def come_and_go(crew: Crew, clients: list[str], strategy: str) -> None:
    """Each client joins, one after the other, and from the third on the oldest member leaves."""
    target = crew.target
    topic, group = target.create_topic(partitions=PARTITIONS), unique_name("group")
    view = GroupView(target, group, {topic: PARTITIONS})
    everyone: list[Member] = []
    present: list[Member] = []
    with streaming(target, topic, PARTITIONS) as stream:
        for number, client in enumerate(clients):
            member = crew.start(client, group, topic, f"c{number}", strategy=strategy)
            present.append(member)
            everyone.append(member)
            view.await_settled(present, strategy)
            if number >= 2:
                present.pop(0).close()
                view.await_settled(present, strategy)
    if strategy == "cooperative-sticky":
        await_messages(everyone, topic, PARTITIONS, stream.count)
        crew.close()
    else:
        assert_each_once(everyone, topic, PARTITIONS, stream.count)
    ends = {(topic, number): len(range(number, stream.count, PARTITIONS)) for number in range(PARTITIONS)}
    assert view.committed() == ends


@pytest.mark.parametrize("strategy", ["range", "roundrobin"])
def test_python_clients_share_a_topic(crew: Crew, strategy: str) -> None:
    clients = list(PYTHON_MEMBERS)
    come_and_go(crew, [*clients, *clients[:2]], strategy)


@pytest.mark.peer
def test_python_clients_and_the_java_consumer_share_a_topic(mainstem_crew: Crew) -> None:
    clients = ["confluent-kafka", "java", "kafka-python", "aiokafka", "confluent-kafka"]
    come_and_go(mainstem_crew, clients, "range")


@pytest.mark.peer
def test_cooperative_clients_share_a_topic(mainstem_crew: Crew) -> None:
    clients = ["kafka-python", "java", "confluent-kafka", "kafka-python"]
    come_and_go(mainstem_crew, clients, "cooperative-sticky")


def test_each_group_gets_everything(target: Target, crew: Crew) -> None:
    topic = target.create_topic(partitions=4)
    one, other = unique_name("group"), unique_name("group")
    first = [crew.start("kafka-python", one, topic, name) for name in ("c1", "c2")]
    second = [crew.start("confluent-kafka", other, topic, name) for name in ("c3", "c4", "c5", "c6")]
    assert GroupView(target, one, {topic: 4}).await_settled(first) == {"c1": [0, 1], "c2": [2, 3]}
    assert GroupView(target, other, {topic: 4}).await_settled(second) == {
        f"c{number + 3}": [number] for number in range(4)
    }
    fill(target, topic, 4, 100)
    for members in (first, second):
        assert_each_once(members, topic, 4, 100)
