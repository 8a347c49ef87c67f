"""LeaveGroup (key 13), versions 0 to 5: remove a member, or several from version 3, from a classic group."""

from typing import Any, Final

from mainstem.broker.apis import Api
from mainstem.broker.requests.context import RequestContext
from mainstem.protocol.apis.k13_leave_group import LeaveGroupRequest, LeaveGroupResponse
from mainstem.protocol.errors import ErrorCode

API: Final = Api("broker")


def handle(ctx: RequestContext, request: LeaveGroupRequest) -> Any:
    version = ctx.version
    return ctx.broker.groups.submit_for_member(
        ctx,
        request.group_id,
        lambda machine, token, now_ms: machine.classic.leave_group(request, version, token, now_ms),
        _fail,
    )


def _fail(error: ErrorCode) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=error)
