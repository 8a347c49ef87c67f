"""DescribeGroups (key 15), versions 0 to 6: state and members of classic groups.

From version 6 on a group that is not there, or is of another kind, is an error (KIP-1043); before, it is
called dead.
"""

from functools import partial
from typing import Any, Final

from mainstem.broker.apis import Api
from mainstem.broker.requests.context import RequestContext
from mainstem.coordinator.effects import Token
from mainstem.coordinator.group.coordinator import GroupCoordinator
from mainstem.protocol.apis.k15_describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.security.authorizer import Operation, ResourceType

API: Final = Api("broker")


def handle(ctx: RequestContext, request: DescribeGroupsRequest) -> Any:
    refused: list[DescribedGroup] = []
    wanted: list[str] = []
    for group_id in request.groups:
        if ctx.authorize(Operation.DESCRIBE, ResourceType.GROUP, group_id):
            wanted.append(group_id)
        else:
            refused.append(_fail(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED))

    def assemble(described: list[DescribedGroup]) -> DescribeGroupsResponse:
        if request.include_authorized_operations:
            for group in described:
                if not group.error_code:
                    bits = ctx.authorized_operations(ResourceType.GROUP, group.group_id)
                    group.authorized_operations = bits
        return DescribeGroupsResponse(groups=refused + described)

    parts = [
        (group_id, partial(_describe, group_id, ctx.version), partial(_fail, group_id)) for group_id in wanted
    ]
    return ctx.broker.groups.gather(ctx, parts, assemble)


def _describe(group_id: str, version: int, machine: GroupCoordinator, token: Token, now_ms: int) -> None:
    machine.effects.reply(token, machine.classic.describe(group_id, version))


def _fail(group_id: str, error: ErrorCode) -> DescribedGroup:
    return DescribedGroup(error_code=error, group_id=group_id)
