"""Heartbeat (key 12), versions 0 to 4: a member of a classic group is alive, and hears of rebalances."""

from typing import Any, Final

from mainstem.broker.apis import Api
from mainstem.broker.requests.context import RequestContext
from mainstem.broker.requests.heartbeat_fast_path import ClassicHeartbeatRoute
from mainstem.protocol.apis.k12_heartbeat import HeartbeatRequest, HeartbeatResponse
from mainstem.protocol.errors import ErrorCode

API: Final = Api("broker")
ROUTE: Final = ClassicHeartbeatRoute


def handle(ctx: RequestContext, request: HeartbeatRequest) -> Any:
    return ctx.broker.groups.submit_for_member(
        ctx,
        request.group_id,
        lambda machine, token, now_ms: machine.classic.heartbeat(request, token, now_ms),
        _fail,
    )


def _fail(error: ErrorCode) -> HeartbeatResponse:
    if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        # Its session begins anew once everything is loaded; until then it need not worry.
        return HeartbeatResponse()
    return HeartbeatResponse(error_code=error)
