"""SyncGroup (key 14), versions 0 to 5: the leader of a classic group hands in the assignment of a generation,
everybody gets their part of it.
"""

from typing import Any, Final

from mainstem.broker.apis import Api
from mainstem.broker.requests.context import RequestContext
from mainstem.protocol.apis.k14_sync_group import SyncGroupRequest, SyncGroupResponse
from mainstem.protocol.errors import ErrorCode

API: Final = Api("broker")
# From this version on a member says to which protocol its assignment belongs.
_PROTOCOL_MANDATORY = 5


def handle(ctx: RequestContext, request: SyncGroupRequest) -> Any:
    version = ctx.version
    if version >= _PROTOCOL_MANDATORY and (request.protocol_type is None or request.protocol_name is None):
        return _fail(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    return ctx.broker.groups.submit_for_member(
        ctx,
        request.group_id,
        lambda machine, token, now_ms: machine.classic.sync_group(request, version, token, now_ms),
        _fail,
    )


def _fail(error: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=error)
