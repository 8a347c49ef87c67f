"""ListGroups (key 16), versions 0 to 5: the groups that this broker coordinates, of every kind.

Version 4 brought the filter by state (KIP-518), 5 the one by type (KIP-848).
"""

from functools import partial
from typing import Any, Final

from mainstem.broker.apis import Api
from mainstem.broker.requests.context import RequestContext
from mainstem.coordinator.effects import Token
from mainstem.coordinator.group.coordinator import GroupCoordinator
from mainstem.protocol.apis.k16_list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from mainstem.protocol.errors import ErrorCode
from mainstem.security.authorizer import CLUSTER_NAME, Operation, ResourceType

API: Final = Api("broker")


def handle(ctx: RequestContext, request: ListGroupsRequest) -> Any:
    states = {state.strip().lower() for state in request.states_filter}
    kinds = {kind.lower() for kind in request.types_filter}

    def assemble(parts: list[list[ListedGroup] | ErrorCode]) -> ListGroupsResponse:
        response = ListGroupsResponse()
        sees_all = ctx.authorize(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)
        for part in parts:
            if isinstance(part, ErrorCode):
                if part is not ErrorCode.NOT_COORDINATOR:
                    return ListGroupsResponse(error_code=part)
                continue
            response.groups += [
                group
                for group in part
                if sees_all or ctx.authorize(Operation.DESCRIBE, ResourceType.GROUP, group.group_id)
            ]
        return response

    return ctx.broker.groups.gather_all(ctx, partial(_list, states, kinds), _fail, assemble)


def _list(states: set[str], kinds: set[str], machine: GroupCoordinator, token: Token, now_ms: int) -> None:
    """An empty filter lets everything through."""
    listed = []
    for group in machine.state.groups.values():
        state = group.state_name()
        if (not states or state.lower() in states) and (not kinds or group.kind in kinds):
            listed.append(ListedGroup(group.group_id, group.protocol_type, state, group.kind))
    machine.effects.reply(token, listed)


def _fail(error: ErrorCode) -> ErrorCode:
    return error
