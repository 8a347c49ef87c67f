"""The consumer protocol (KIP-848, `group.protocol=consumer`): the broker divides, members follow one by one.

Members hear of changes with their heartbeats, every 5 s by default. Mainstem is told to ask for more of them;
the Apache Kafka that all tests share is not, so it is compared only with --soak.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mainstem.testing import Broker
from tests.interop.test_group_side_by_side import streaming
from tests.support.group_members import Crew
from tests.support.group_views import GroupView, await_messages, fill, until
from tests.support.kafka_peer import kafka_tool
from tests.support.target import Target, unique_name

PARTITIONS = 6
NEW = {"protocol": "consumer"}
OFTEN = {"group.consumer.min.heartbeat.interval.ms": 100, "group.consumer.heartbeat.interval.ms": 100}

# None of Kafka's tools subscribes to a pattern that the broker resolves.
PATTERN_CONSUMER = """
import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.clients.consumer.*;

public class PatternConsumer {
    public static void main(String[] arguments) {
        Properties settings = new Properties();
        String strings = "org.apache.kafka.common.serialization.StringDeserializer";
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.id", arguments[1]);
        settings.put("group.protocol", "consumer");
        settings.put("auto.offset.reset", "earliest");
        settings.put("key.deserializer", strings);
        settings.put("value.deserializer", strings);
        int left = Integer.parseInt(arguments[3]);
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings)) {
            consumer.subscribe(new SubscriptionPattern(arguments[2]));
            while (left > 0) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofSeconds(1))) {
                    System.out.println(record.topic() + " " + record.value());
                    left--;
                }
            }
        }
    }
}
"""


@pytest.fixture(scope="module")
def mainstem() -> Iterator[Target]:
    with Broker(OFTEN) as broker:
        yield Target("mainstem", broker.bootstrap_servers, broker.data_dir)


@pytest.fixture(params=["mainstem", pytest.param("kafka", marks=[pytest.mark.peer, pytest.mark.soak])])
def target(request: pytest.FixtureRequest) -> Target:
    """Mainstem, then Apache Kafka."""
    return request.getfixturevalue(request.param)


def divide(crew: Crew, client: str, assignor: str) -> None:
    """Three members join and one leaves: each owns its share, and what can stay stays."""
    target = crew.target
    topic, group = target.create_topic(partitions=PARTITIONS), unique_name("group")
    view = GroupView(target, group, {topic: PARTITIONS})
    members = [
        crew.start(client, group, topic, name, remote_assignor=assignor, **NEW) for name in ("c1", "c2")
    ]
    before = view.await_settled(members, assignor)
    assert sorted(map(len, before.values())) == [3, 3]
    assert view.describe().kind == "CONSUMER"
    members.append(crew.start(client, group, topic, "c3", remote_assignor=assignor, **NEW))
    after = view.await_settled(members, assignor)
    assert [len(after[name]) for name in ("c1", "c2", "c3")] == [2, 2, 2]
    if assignor == "uniform":
        assert all(set(after[name]) < set(before[name]) for name in ("c1", "c2"))
    fill(target, topic, PARTITIONS, 60)
    await_messages(members, topic, PARTITIONS, 60)
    members.pop().close()
    last = view.await_settled(members, assignor)
    if assignor == "uniform":
        assert all(set(after[name]) < set(last[name]) for name in ("c1", "c2"))


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_librdkafka_is_given_its_partitions(crew: Crew, assignor: str) -> None:
    divide(crew, "confluent-kafka", assignor)


@pytest.mark.peer
def test_the_java_consumer_is_given_its_partitions(mainstem_crew: Crew) -> None:
    divide(mainstem_crew, "java", "uniform")


def test_a_pattern_is_resolved_by_the_broker(target: Target, crew: Crew) -> None:
    prefix, group = unique_name("family"), unique_name("group")
    first = target.create_topic(f"{prefix}.first", 2)
    second = target.create_topic(f"{prefix}.second", 2)
    target.create_topic(f"{prefix}-other", 1)
    members = [crew.start("confluent-kafka", group, f"^{prefix}\\..*", name, **NEW) for name in ("c1", "c2")]
    GroupView(target, group, {first: 2, second: 2}).await_settled(members)
    for topic in (first, second):
        fill(target, topic, 2, 20)
        until(
            lambda: sum(it.topic == topic for member in members for it in member.received) == 20,  # noqa: B023
            f"the messages of {topic}",
        )


@pytest.mark.soak
def test_a_pattern_catches_later_topics(target: Target, crew: Crew) -> None:
    """Patterns are resolved again no sooner than 10 s after the last time."""
    prefix, group = unique_name("family"), unique_name("group")
    first = target.create_topic(f"{prefix}.first", 2)
    member = crew.start("confluent-kafka", group, f"^{prefix}\\..*", "c1", **NEW)
    GroupView(target, group, {first: 2}).await_settled([member])
    second = target.create_topic(f"{prefix}.second", 2)
    GroupView(target, group, {first: 2, second: 2}).await_settled([member])


@pytest.mark.peer
def test_the_java_consumer_follows_a_pattern(mainstem: Target, tmp_path: Path) -> None:
    prefix = unique_name("family")
    for name, partitions in ((f"{prefix}.first", 2), (f"{prefix}.second", 1), (f"{prefix}-other", 1)):
        fill(mainstem, mainstem.create_topic(name, partitions), partitions, 5)
    source = tmp_path / "PatternConsumer.java"
    source.write_text(PATTERN_CONSUMER)
    arguments = (mainstem.bootstrap_servers, unique_name("group"), f"{prefix}\\.(first|second)", "10")
    received = kafka_tool(str(source), *arguments).check().splitlines()
    expected = [f"{prefix}.{name} {number}" for name in ("first", "second") for number in range(5)]
    assert sorted(received) == expected


def test_static_members_keep_their_place(target: Target, crew: Crew) -> None:
    topic, group = target.create_topic(partitions=PARTITIONS), unique_name("group")
    view = GroupView(target, group, {topic: PARTITIONS})
    one, two = (
        crew.start("confluent-kafka", group, topic, name, instance_id=name, **NEW) for name in ("c1", "c2")
    )
    before = view.await_settled([one, two])
    seen = list(two.changes)
    one.close()
    again = crew.start("confluent-kafka", group, topic, "c1", instance_id="c1", **NEW)
    assert view.await_settled([again, two]) == before
    fill(target, topic, PARTITIONS, 60)
    await_messages([again, two], topic, PARTITIONS, 60)
    assert two.changes == seen


def test_a_group_moves_to_the_consumer_protocol_and_back(target: Target, crew: Crew) -> None:
    """Member by member, while messages flow."""
    topic, group = target.create_topic(partitions=PARTITIONS), unique_name("group")
    view = GroupView(target, group, {topic: PARTITIONS})
    with streaming(target, topic, PARTITIONS) as stream:
        present = [crew.start("confluent-kafka", group, topic, name) for name in ("c1", "c2")]
        everyone = list(present)
        view.await_settled(present)
        assert view.describe().kind == "CLASSIC"
        for number, protocol in enumerate(("consumer", "consumer", "classic", "classic"), 3):
            member = crew.start("confluent-kafka", group, topic, f"c{number}", protocol=protocol)
            everyone.append(member)
            present.append(member)
            present.pop(0).close()
            view.await_settled(present)
            expected = "CLASSIC" if number == 6 else "CONSUMER"
            assert view.describe().kind == expected
    await_messages(everyone, topic, PARTITIONS, stream.count)
