"""Offsets for the `groups` commands: what a group has committed, and what its partitions hold.

All of it goes through librdkafka's admin calls; everything is keyed by (topic, partition).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from mainstem.cli.client import REQUEST_TIMEOUT_S, advise, kafka_errors
from mainstem.cli.errors import CommandError

Partition = tuple[str, int]


def committed_offsets(admin: AdminClient, group_id: str, bootstrap: str) -> dict[Partition, int]:
    """Every committed offset of the group."""
    asked = [ConsumerGroupTopicPartitions(group_id)]
    with kafka_errors(bootstrap, f"read the offsets of {group_id}"):
        futures = admin.list_consumer_group_offsets(asked, request_timeout=REQUEST_TIMEOUT_S)
        answer = futures[group_id].result()
    return {
        (part.topic, part.partition): part.offset
        for part in sorted(answer.topic_partitions or (), key=lambda part: (part.topic, part.partition))
        if part.offset >= 0
    }


def find_offsets(
    admin: AdminClient, partitions: Iterable[Partition], spec: OffsetSpec, bootstrap: str
) -> dict[Partition, int]:
    """The offset of each partition at the earliest, the latest or a time (-1 if there is none); partitions
    that do not exist, or whose leader is away, are left out."""
    asked = {TopicPartition(topic, number): spec for topic, number in partitions}
    if not asked:
        return {}
    found: dict[Partition, int] = {}
    with kafka_errors(bootstrap, "look up offsets"):
        futures = admin.list_offsets(asked, request_timeout=REQUEST_TIMEOUT_S)
        for part, future in futures.items():
            try:
                found[part.topic, part.partition] = future.result().offset
            except KafkaException as error:
                if error.args[0].code() not in _NOT_THERE:
                    raise
    return found


def commit_offsets(
    admin: AdminClient, group_id: str, offsets: Mapping[Partition, int], bootstrap: str
) -> None:
    """Set the committed offsets of a group that has no members."""
    wanted = [TopicPartition(topic, number, offset) for (topic, number), offset in offsets.items()]
    what = f"reset the offsets of {group_id}"
    with kafka_errors(bootstrap, what):
        futures = admin.alter_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group_id, wanted)], request_timeout=REQUEST_TIMEOUT_S
        )
        try:
            answer = futures[group_id].result()
        except KafkaException as error:
            if error.args[0].code() in _ACTIVE:
                raise active_group(group_id) from None
            raise
    for part in answer.topic_partitions or ():
        if part.error is not None:
            if part.error.code() in _ACTIVE:
                raise active_group(group_id)
            raise advise(part.error, bootstrap, f"{what}, {part.topic}-{part.partition}")


def active_group(group_id: str, members: str = "members") -> CommandError:
    """Offsets of a group with members are its members' business."""
    return CommandError(
        f"group {group_id} has {members}: offsets can only be reset while nobody is in it",
        f"stop its consumers and try again; `mainstem groups members {group_id}` shows them",
    )


_NOT_THERE = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._NOENT,
    }
)
# A commit from outside is answered like one of a member that is not in the group (or of an old generation).
_ACTIVE = frozenset(
    {
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.REBALANCE_IN_PROGRESS,
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.NON_EMPTY_GROUP,
        KafkaError.STALE_MEMBER_EPOCH,
    }
)
