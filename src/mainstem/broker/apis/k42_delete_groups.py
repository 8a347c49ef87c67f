"""DeleteGroups (key 42), versions 0 to 2: groups without members, with their offsets.

Each group is deleted or refused by itself; one that is named twice is answered once.
"""

from typing import Any, Final

from mainstem.broker.apis import Api
from mainstem.broker.requests.context import RequestContext
from mainstem.protocol.apis.k42_delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.security.authorizer import Operation, ResourceType

API: Final = Api("broker")


def handle(ctx: RequestContext, request: DeleteGroupsRequest) -> Any:
    group_ids = list(dict.fromkeys(request.groups_names))
    parts: list[tuple[str, Any, Any]] = []
    refused: list[DeletableGroupResult] = []
    for group_id in group_ids:
        if ctx.authorize(Operation.DELETE, ResourceType.GROUP, group_id):
            parts.append(_part(group_id))
        else:
            refused.append(DeletableGroupResult(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED))
    return ctx.broker.groups.gather(
        ctx, parts, lambda answers: DeleteGroupsResponse(results=answers + refused)
    )


def _part(group_id: str) -> tuple[str, Any, Any]:
    return (
        group_id,
        lambda machine, token, now_ms: machine.offsets.delete_group(group_id, token, now_ms),
        lambda error: DeletableGroupResult(group_id, error),
    )
