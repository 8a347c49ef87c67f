"""ConsumerGroupDescribe (key 69), versions 0 and 1 (KIP-848): consumer groups with their members.

As in Kafka, groups that the client may not describe come first in the answer, and a group is not shown to
somebody who may not know of one of its topics.
"""

from functools import partial
from typing import Any, Final

from mainstem.broker.apis import Api
from mainstem.broker.requests.context import RequestContext
from mainstem.coordinator.effects import Token
from mainstem.coordinator.group.coordinator import GroupCoordinator
from mainstem.protocol.apis.k69_consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.security.authorizer import Operation, ResourceType

API: Final = Api("broker")


def handle(ctx: RequestContext, request: ConsumerGroupDescribeRequest) -> Any:
    if "consumer" not in ctx.broker.config.get("group.coordinator.rebalance.protocols"):
        groups = [_refused(group_id, ErrorCode.UNSUPPORTED_VERSION) for group_id in request.group_ids]
        return ConsumerGroupDescribeResponse(groups=groups)
    refused: list[DescribedGroup] = []
    parts: list[Any] = []
    for group_id in request.group_ids:
        if not group_id:
            refused.append(DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID))
        elif ctx.authorize(Operation.DESCRIBE, ResourceType.GROUP, group_id):
            parts.append((group_id, partial(_describe, group_id), partial(_refused, group_id)))
        else:
            refused.append(_refused(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED))

    def assemble(groups: list[DescribedGroup]) -> ConsumerGroupDescribeResponse:
        for group in groups:
            if request.include_authorized_operations and not group.error_code:
                group.authorized_operations = ctx.authorized_operations(ResourceType.GROUP, group.group_id)
        return ConsumerGroupDescribeResponse(groups=refused + [_seen_by(ctx, group) for group in groups])

    return ctx.broker.groups.gather(ctx, parts, assemble)


def _describe(group_id: str, machine: GroupCoordinator, token: Token, now_ms: int) -> None:
    machine.effects.reply(token, machine.consumer.describe(group_id))


def _refused(group_id: str, error: ErrorCode) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=error, error_message=error.message)


def _seen_by(ctx: RequestContext, group: DescribedGroup) -> DescribedGroup:
    topics = {
        topic.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    }
    if all(ctx.authorize(Operation.DESCRIBE, ResourceType.TOPIC, topic) for topic in topics):
        return group
    return DescribedGroup(
        group_id=group.group_id,
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        error_message="The group has topics that the client may not describe.",
    )
