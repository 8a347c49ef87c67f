"""JoinGroup (key 11), versions 0 to 9: enter a classic group and wait for its next generation.

Version 4 brought the member id that a client must come back with (KIP-394), 5 static members (KIP-345), 8 the
client's reason (KIP-800), 9 a leader that has nothing to assign (KIP-814).
"""

from typing import Any, Final

from mainstem.broker.apis import Api
from mainstem.broker.requests.context import RequestContext
from mainstem.coordinator.group.classic.responses import join_error
from mainstem.coordinator.group.state import Client
from mainstem.protocol.apis.k11_join_group import JoinGroupRequest, JoinGroupResponse
from mainstem.protocol.errors import ErrorCode
from mainstem.security.authorizer import Operation, ResourceType

API: Final = Api("broker")


def handle(ctx: RequestContext, request: JoinGroupRequest) -> Any:
    version = ctx.version

    def fail(error: ErrorCode, member_id: str = "") -> JoinGroupResponse:
        return join_error(error, member_id, version)

    if not ctx.authorize(Operation.READ, ResourceType.GROUP, request.group_id):
        return fail(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not request.group_id:
        return fail(ErrorCode.INVALID_GROUP_ID, request.member_id)
    client = Client(ctx.client_id or "", "/" + ctx.connection.client_host)
    return ctx.broker.groups.submit(
        ctx,
        request.group_id,
        lambda machine, token, now_ms: machine.classic.join_group(request, version, client, token, now_ms),
        fail,
    )
