"""Groups and their members as a coordinator describes them, whichever of the two protocols they speak.

A group of the consumer protocol is described by ConsumerGroupDescribe, a classic one by DescribeGroups, where
subscription and assignment are bytes in the form of Kafka's consumers.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NamedTuple

from mainstem.cli.errors import CommandError
from mainstem.nearest import suggestion
from mainstem.protocol.apis.k15_describe_groups import DescribedGroupMember, DescribeGroupsRequest
from mainstem.protocol.apis.k69_consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    Member,
)
from mainstem.protocol.errors import ErrorCode, ProtocolError
from mainstem.protocol.resources import TopicPartition, by_topic
from mainstem.wire import Cluster, Connection
from mainstem.wire.connection import address_text
from mainstem.wire.errors import check

CONSUMER_PROTOCOL_TYPE = "consumer"
INACTIVE_STATES = frozenset({"Empty", "Dead"})
_ABSENT_STATE = "Dead"
_CLASSIC_MEMBER = 0


class MemberFacts(NamedTuple):
    """One member; `target` is where its assignment is going, None where the protocol has no such thing."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    protocol: str
    epoch: int | None
    topics: list[str]
    regex: str | None
    assignment: list[TopicPartition]
    target: list[TopicPartition] | None


class GroupFacts(NamedTuple):
    """One group; epochs are None for a classic one."""

    group_id: str
    type: str
    state: str
    assignor: str
    coordinator: str
    coordinator_id: int
    epoch: int | None
    assignment_epoch: int | None
    members: list[MemberFacts]

    @property
    def is_active(self) -> bool:
        return bool(self.members) or self.state not in INACTIVE_STATES


def describe_groups(cluster: Cluster, group_ids: Iterable[str]) -> dict[str, GroupFacts]:
    """What there is to know of each group; those that do not exist are left out."""

    def ask(node_id: int, connection: Connection, some: list[str]) -> list[GroupFacts]:
        return _describe_at(connection, (address_text(*cluster.address(node_id)), node_id), some)

    found = cluster.at_coordinators("group", group_ids, ask)
    return {facts.group_id: facts for facts in sorted(found, key=lambda facts: facts.group_id)}


def no_such_group(group_id: str, existing: Iterable[str]) -> CommandError:
    """There is no such group: offer the likely typo."""
    hint = suggestion(group_id, existing, "`mainstem groups list` shows what is there")
    return CommandError(f"there is no group {group_id!r}", hint)


def as_json(group: GroupFacts) -> dict[str, Any]:
    """The facts as `--json` prints them."""
    return group._asdict() | {"members": [member_json(member) for member in group.members]}


def member_json(member: MemberFacts) -> dict[str, Any]:
    """One member for a script: partitions by topic."""
    return member._asdict() | {
        "assignment": by_topic(member.assignment),
        "target": None if member.target is None else by_topic(member.target),
    }


def _describe_at(connection: Connection, place: tuple[str, int], group_ids: list[str]) -> list[GroupFacts]:
    found: list[GroupFacts] = []
    others = set(group_ids)
    if connection.version_of(ConsumerGroupDescribeRequest.SCHEMA.api_key) is not None:
        for group in connection.call(ConsumerGroupDescribeRequest(group_ids=group_ids)).groups:
            if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
                continue
            check(group.error_code, f"describe {group.group_id}", group.error_message)
            others.discard(group.group_id)
            members = [_consumer_member(member) for member in group.members]
            epochs = (group.group_epoch, group.assignment_epoch)
            found.append(
                GroupFacts(
                    group.group_id,
                    "consumer",
                    group.group_state,
                    group.assignor_name,
                    *place,
                    *epochs,
                    members,
                )
            )
    if others:
        found += _describe_classic(connection, place, sorted(others))
    return found


def _describe_classic(
    connection: Connection, place: tuple[str, int], group_ids: list[str]
) -> list[GroupFacts]:
    found = []
    for group in connection.call(DescribeGroupsRequest(groups=group_ids)).groups:
        if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND or group.group_state == _ABSENT_STATE:
            continue
        check(group.error_code, f"describe {group.group_id}", group.error_message)
        # Other programs than consumers use groups too, with bytes of their own.
        readable = group.protocol_type == CONSUMER_PROTOCOL_TYPE
        members = [_classic_member(member, readable) for member in group.members]
        found.append(
            GroupFacts(
                group.group_id, "classic", group.group_state, group.protocol_data, *place, None, None, members
            )
        )
    return found


def _consumer_member(member: Member) -> MemberFacts:
    return MemberFacts(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        "classic" if member.member_type == _CLASSIC_MEMBER else "consumer",
        member.member_epoch,
        sorted(member.subscribed_topic_names),
        member.subscribed_topic_regex or None,
        _pairs(member.assignment),
        _pairs(member.target_assignment),
    )


def _classic_member(member: DescribedGroupMember, readable: bool) -> MemberFacts:
    topics: list[str] = []
    assignment: list[TopicPartition] = []
    if readable:
        from mainstem.coordinator.group.embedded_protocol import read_assignment, read_subscription

        with suppress(ProtocolError):  # not filled while there is a rebalance
            topics = sorted(read_subscription(member.member_metadata).topics)
            assigned = read_assignment(member.member_assignment).assigned_partitions
            assignment = [(item.topic, number) for item in assigned for number in item.partitions]
    return MemberFacts(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        "classic",
        None,
        topics,
        None,
        assignment,
        None,
    )


def _pairs(assignment: Assignment) -> list[TopicPartition]:
    return [
        (item.topic_name, partition) for item in assignment.topic_partitions for partition in item.partitions
    ]
