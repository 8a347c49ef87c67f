"""The words of a scenario about the consumer protocol (KIP-848): heartbeats and descriptions on the wire."""

from typing import Any

from mainstem.protocol.apis.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from mainstem.protocol.apis.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from mainstem.protocol.apis.k68_consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from mainstem.protocol.apis.k69_consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from tests.support.offset_scenario import new_group
from tests.support.target import when_settled
from tests.support.wire import WireClient

_GROUP_RESOURCE = 32
_HEARTBEAT_INTERVAL_MS = 5000
_SOON_MS = 1000  # nobody sets an interval this short


def new_prompt_group(client: WireClient) -> str:
    """A group id that nobody has, whose members never wait for the next assignment."""
    group = new_group(client)
    alter_group(client, group, "consumer.assignment.interval.ms", "0")
    return group


def alter_group(client: WireClient, group: str, name: str, value: str) -> None:
    """Give a group a setting of its own, and wait until the broker shows it."""
    resource = AlterConfigsResource(_GROUP_RESOURCE, group, [AlterableConfig(name, 0, value)])
    answer = client.call(IncrementalAlterConfigsRequest([resource]))
    assert answer.responses[0].error_code == 0, answer
    question = DescribeConfigsRequest([DescribeConfigsResource(_GROUP_RESOURCE, group, [name])])
    when_settled(
        lambda: client.call(question),
        lambda described: any(config.value == value for config in described.results[0].configs),
    )


def owned(topic_id: bytes, *partitions: int) -> list[TopicPartitions]:
    return [TopicPartitions(topic_id, list(partitions))]


class GroupMember:
    """Sends the heartbeats of one member, with the epoch that it was told last."""

    def __init__(self, client: WireClient, group: str, member_id: str, **fields: Any) -> None:
        self._client = client
        self._group = group
        self.member_id = member_id
        self.epoch = 0
        self._fields = fields

    def join(self, *topics: str, version: int = 1, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        self.epoch = 0
        names = list(topics) if topics else None
        values: dict[str, Any] = {
            "rebalance_timeout_ms": 300_000,
            "subscribed_topic_names": names,
            "topic_partitions": [],
        }
        return self.beat(version, **values | fields)

    def beat(self, version: int = 1, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        values: dict[str, Any] = {
            "group_id": self._group,
            "member_id": self.member_id,
            "member_epoch": self.epoch,
        }
        request = ConsumerGroupHeartbeatRequest(**values | self._fields | fields)
        answer = self._client.call(request, version)
        if not answer.error_code and answer.member_epoch >= 0:
            self.epoch = answer.member_epoch
            self.member_id = answer.member_id
        if 0 < answer.heartbeat_interval_ms <= _SOON_MS:
            # Mainstem's own: a member that waits for another's partitions is told to ask again sooner.
            answer.heartbeat_interval_ms = _HEARTBEAT_INTERVAL_MS
        return in_order(answer)

    def leave(self, epoch: int = -1) -> ConsumerGroupHeartbeatResponse:
        return self.beat(member_epoch=epoch)


def in_order(answer: ConsumerGroupHeartbeatResponse) -> ConsumerGroupHeartbeatResponse:
    """Kafka lists the partitions in the order of a hash table."""
    for topic in answer.assignment.topic_partitions if answer.assignment is not None else ():
        topic.partitions.sort()
    return answer


def describe(
    client: WireClient, *groups: str, version: int = 1, **fields: Any
) -> ConsumerGroupDescribeResponse:
    """Those that are there first, members by their ids, topics by their names, partitions by number."""
    answer = client.call(ConsumerGroupDescribeRequest(list(groups), **fields), version)
    answer.groups.sort(key=lambda group: (group.error_code, group.group_id))
    for group in answer.groups:
        # Classic members last: their ids are random.
        group.members.sort(key=lambda member: (-member.member_type, member.member_id))
        for member in group.members:
            member.subscribed_topic_names.sort()
            for assignment in (member.assignment, member.target_assignment):
                assignment.topic_partitions.sort(key=lambda topic: topic.topic_name)
                for topic in assignment.topic_partitions:
                    topic.partitions.sort()
    return answer
