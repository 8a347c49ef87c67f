"""A consumer group as ConsumerGroupDescribe shows it."""

from collections.abc import Iterable, Mapping

from mainstem.coordinator.group.consumer.group import ConsumerGroup
from mainstem.coordinator.group.consumer.member import Member, Target
from mainstem.coordinator.topics import Topics
from mainstem.protocol.apis import k69_consumer_group_describe as api

_CLASSIC_MEMBER = 0
_CONSUMER_MEMBER = 1


def described_group(group: ConsumerGroup, topics: Topics, default_assignor: str) -> api.DescribedGroup:
    return api.DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name(),
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor() or default_assignor,
        members=[
            _member(member, group.target_of(member.member_id), topics) for member in group.members.values()
        ],
    )


def _member(member: Member, target: Target, topics: Topics) -> api.Member:
    # What it has yet to give up is still its own.
    owned: dict[bytes, list[int]] = {}
    for partitions in (member.assigned, member.pending_revocation):
        for topic_id, epochs in partitions.items():
            owned.setdefault(topic_id, []).extend(epochs)
    return api.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex,
        assignment=_assignment(owned, topics),
        target_assignment=_assignment(target, topics),
        member_type=_CONSUMER_MEMBER if member.classic is None else _CLASSIC_MEMBER,
    )


def _assignment(partitions: Mapping[bytes, Iterable[int]], topics: Topics) -> api.Assignment:
    """Topics that are gone are left out."""
    assignment = api.Assignment()
    for topic_id, numbers in partitions.items():
        info = topics.by_id(topic_id)
        if info is not None:
            assignment.topic_partitions.append(api.TopicPartitions(topic_id, info.name, sorted(numbers)))
    return assignment
