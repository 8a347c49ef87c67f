"""`auto.offset.reset`: where a member begins without a committed offset, or with one that the log has not."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as ConfluentTopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, OffsetSpec, ResourceType

from mainstem.testing import Broker
from tests.support.group_members import PYTHON_MEMBERS, Crew, Member
from tests.support.group_views import GroupView, fill, until
from tests.support.kafka_peer import kafka_tool
from tests.support.target import KEEP_FOREVER, Target, unique_name

WRITTEN = 10
LOG_START = 4
NO_COMMIT = -1
# No commit; one that the log has left behind; one that it has not reached.
COMMITS = (NO_COMMIT, 2, 100)

HOUR_MS = 3_600_000


def prepare(target: Target, committed: int) -> tuple[str, str]:
    """A topic whose first messages are deleted, and a group; returns their names."""
    topic, group = target.create_topic(), unique_name("group")
    fill(target, topic, 1, WRITTEN)
    delete = [ConfluentTopicPartition(topic, 0, LOG_START)]
    admin = target.admin()
    for future in admin.delete_records(delete).values():
        assert future.result(30).low_watermark == LOG_START
    if committed != NO_COMMIT:
        GroupView(target, group, {topic: 1}).commit({(topic, 0): committed})
    return topic, group


def feed(target: Target, topic: str, done: Callable[[], bool], first: int = WRITTEN) -> int:
    """Write one message after the other until `done`; returns how many there are then."""
    producer = Producer({"bootstrap.servers": target.bootstrap_servers})
    written = first

    def write_and_look() -> bool:
        nonlocal written
        producer.produce(topic, b"%d" % written, partition=0)
        assert producer.flush(30) == 0
        written += 1
        return done()

    until(write_and_look, "a message that was written after the group had begun")
    return written


@pytest.mark.parametrize("client", PYTHON_MEMBERS)
def test_earliest_begins_with_the_first_message_that_is_left(crew: Crew, client: str) -> None:
    members: list[Member] = []
    for committed in COMMITS:
        topic, group = prepare(crew.target, committed)
        members.append(crew.start(client, group, topic, "c1", reset="earliest"))
    expected = list(range(LOG_START, WRITTEN))
    for member in members:
        until(lambda: len(member.received) >= len(expected), lambda: f"messages, not {member.received}")  # noqa: B023
        assert member.offsets == {0: expected}


@pytest.mark.parametrize("client", PYTHON_MEMBERS)
def test_latest_begins_with_the_next_message(crew: Crew, client: str) -> None:
    for committed in COMMITS:
        topic, group = prepare(crew.target, committed)
        follows_from_the_end(crew, crew.start(client, group, topic, "c1", reset="latest"))


def follows_from_the_end(crew: Crew, member: Member) -> None:
    """It gets nothing that was there before it, and everything from its first message on."""
    (topic,) = member.topics
    written = feed(crew.target, topic, lambda: bool(member.received))
    first = member.received[0].offset
    assert first >= WRITTEN
    until(lambda: len(member.received) == written - first, lambda: f"the rest after {member.offsets}")
    assert member.offsets == {0: list(range(first, written))}


@pytest.mark.parametrize("client", PYTHON_MEMBERS)
def test_none_is_an_error(crew: Crew, client: str) -> None:
    members = []
    for committed in COMMITS:
        topic, group = prepare(crew.target, committed)
        members.append(crew.start(client, group, topic, "c1", reset="none"))
    for committed, member in zip(COMMITS, members, strict=True):
        told = repr(member.take_failure())
        if client == "confluent-kafka":
            reason = "no previously committed offset" if committed == NO_COMMIT else "Offset out of range"
        else:
            reason = "NoOffsetForPartition" if committed == NO_COMMIT else "OffsetOutOfRange"
        assert reason in told
        assert member.received == []


@pytest.mark.peer
def test_the_java_consumer_begins_by_duration_or_at_the_end_or_not_at_all(
    mainstem: Target, mainstem_crew: Crew
) -> None:
    topic = mainstem.create_topic(configs=KEEP_FOREVER)
    producer = Producer({"bootstrap.servers": mainstem.bootstrap_servers})
    now_ms = int(time.time() * 1000)
    for number in range(WRITTEN):
        age_ms = 2 * HOUR_MS if number < 5 else HOUR_MS // 2
        producer.produce(topic, b"%d" % number, partition=0, timestamp=now_ms - age_ms)
    assert producer.flush(30) == 0

    def consume(reset: str) -> str:
        return kafka_tool(
            "consumer.ConsoleConsumer",
            *("--bootstrap-server", mainstem.bootstrap_servers, "--topic", topic),
            *("--group", unique_name("group"), "--max-messages", "5", "--timeout-ms", "20000"),
            *("--command-property", f"auto.offset.reset={reset}"),
        ).check()

    assert consume("by_duration:PT1H") == "5\n6\n7\n8\n9\n"
    assert "NoOffsetForPartitionException: Undefined offset with no reset policy" in consume("none")
    follows_from_the_end(
        mainstem_crew, mainstem_crew.start("java", unique_name("group"), topic, "c1", reset="latest")
    )


@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_offsets_that_retention_has_removed(reset: str) -> None:
    """Apache Kafka's check runs every five minutes by default, so this is for Mainstem alone."""
    settings = {"log.retention.check.interval.ms": 50, "log.initial.task.delay.ms": 0}
    with Broker(settings) as broker:
        target = Target("mainstem", broker.bootstrap_servers, Path(broker.data_dir))
        topic, group = target.create_topic(configs=KEEP_FOREVER), unique_name("group")
        producer = Producer({"bootstrap.servers": target.bootstrap_servers})
        old_ms = int(time.time() * 1000) - 2 * HOUR_MS
        for number in range(WRITTEN):
            producer.produce(topic, b"%d" % number, partition=0, timestamp=old_ms)
        assert producer.flush(30) == 0
        GroupView(target, group, {topic: 1}).commit({(topic, 0): 2})
        shorten = ConfigEntry("retention.ms", str(HOUR_MS), incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[shorten])
        admin = target.admin()
        for future in admin.incremental_alter_configs([resource]).values():
            future.result(30)
        until(lambda: log_start(target, topic) == WRITTEN, "retention to remove the old messages")
        crew = Crew(target)
        try:
            follows_from_the_end(crew, crew.start("confluent-kafka", group, topic, "c1", reset=reset))
        finally:
            crew.close()


def log_start(target: Target, topic: str) -> int:
    where = ConfluentTopicPartition(topic, 0)
    admin = target.admin()
    (future,) = admin.list_offsets({where: OffsetSpec.earliest()}).values()
    return int(future.result(30).offset)
