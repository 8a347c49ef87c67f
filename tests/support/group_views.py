"""Looking at a group from outside, as the broker describes it, and waiting until it and its members agree."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, Producer
from confluent_kafka import TopicPartition as ConfluentTopicPartition

from mainstem.protocol.resources import TopicPartition
from tests.support.group_members import Member
from tests.support.target import Target

_WAIT_SECONDS = 60


def until(condition: Callable[[], Any], what: Callable[[], str] | str) -> None:
    """Wait for a condition; `what` explains in vain waiting."""
    deadline = time.monotonic() + _WAIT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited in vain for {what if isinstance(what, str) else what()}")
        time.sleep(0.02)


@dataclass(frozen=True)
class Description:
    """A group as DescribeGroups or ConsumerGroupDescribe gives it."""

    state: str
    assignor: str
    kind: str
    members: dict[str, frozenset[TopicPartition]]  # by client id


class GroupView:
    """One group, seen through the admin client. `topics` says how many partitions each of its topics has."""

    def __init__(self, target: Target, group: str, topics: dict[str, int]) -> None:
        self.group = group
        self._admin = target.admin()
        self._partitions = sorted(
            (topic, number) for topic, count in topics.items() for number in range(count)
        )

    def describe(self) -> Description:
        found: Any = self._admin.describe_consumer_groups([self.group])[self.group].result(30)
        members = {
            member.client_id: frozenset((it.topic, it.partition) for it in member.assignment.topic_partitions)
            for member in found.members
        }
        return Description(found.state.name, found.partition_assignor, found.type.name, members)

    def committed(self) -> dict[TopicPartition, int]:
        """Every committed offset of the group."""
        request = [ConsumerGroupTopicPartitions(self.group)]
        answer: Any = self._admin.list_consumer_group_offsets(request)[self.group].result(30)
        return {(it.topic, it.partition): it.offset for it in answer.topic_partitions if it.offset >= 0}

    def commit(self, offsets: dict[TopicPartition, int]) -> None:
        """Commit from outside, as an administrator does to a group without members."""
        partitions = [ConfluentTopicPartition(*where, offset) for where, offset in offsets.items()]
        request = [ConsumerGroupTopicPartitions(self.group, partitions)]
        answer: Any = self._admin.alter_consumer_group_offsets(request)[self.group].result(30)
        assert all(it.error is None for it in answer.topic_partitions), answer.topic_partitions

    def await_settled(self, members: Sequence[Member], assignor: str = "") -> dict[str, list[int]]:
        """Wait until the group is stable with exactly these members, each owns what the broker says, and
        every partition has its owner. Returns the numbers of the partitions that each owns.
        """
        last: list[Any] = ["nothing"]

        def settled() -> bool:
            for member in members:
                member.check()
            try:
                description = self.describe()
            except KafkaException as error:
                last[0] = error
                return False
            owned = {member.name: member.owned for member in members}
            last[0] = f"{description}; the members own {owned}"
            if description.state != "STABLE" or assignor not in ("", description.assignor):
                return False
            # A client that has not heard of the topic yet divides nothing, and soon asks again.
            divided = sorted(where for mine in owned.values() for where in mine)
            return description.members == owned and divided == self._partitions

        until(settled, lambda: f"group {self.group} to settle: {last[0]}")
        return {member.name: member.partitions for member in members}


def fill(target: Target, topic: str, partitions: int, count: int, first: int = 0) -> None:
    """Write messages `first` to `first + count - 1`, in turn over the partitions, each naming itself."""
    producer = Producer({"bootstrap.servers": target.bootstrap_servers, "linger.ms": 2})
    for number in range(first, first + count):
        producer.produce(topic, b"%d" % number, partition=number % partitions)
    assert producer.flush(30) == 0


def counts(members: Iterable[Member]) -> Counter[TopicPartition | tuple[str, int, int]]:
    """How often each message came, over all the members."""
    return Counter(message[:3] for member in members for message in list(member.received))


def await_messages(members: Sequence[Member], topic: str, partitions: int, count: int) -> None:
    """Wait until messages 0 to `count - 1` of `fill` came to these members."""
    wanted = {(topic, number % partitions, number // partitions) for number in range(count)}

    def missing() -> set[Any]:
        for member in members:
            member.check()
        return wanted - counts(members).keys()

    until(lambda: not missing(), lambda: f"messages {sorted(missing())[:10]}")


def assert_order(member: Member) -> None:
    """Within one partition a member without interruptions sees every offset, in order."""
    for partition, offsets in member.offsets.items():
        first = offsets[0]
        assert offsets == list(range(first, first + len(offsets))), f"{member.name} partition {partition}"
