"""ConsumerGroupHeartbeat (key 68), versions 0 and 1 (KIP-848): all that a member of a consumer group sends.

Version 1 has subscriptions by regular expression, and member ids that the members make.
"""

from functools import partial
from typing import Any, Final

from mainstem.broker.apis import Api
from mainstem.broker.requests.context import RequestContext
from mainstem.broker.requests.heartbeat_fast_path import ConsumerHeartbeatRoute
from mainstem.coordinator.group.state import Client
from mainstem.protocol.apis.k68_consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.security.authorizer import Operation, ResourceType

API: Final = Api("broker")
ROUTE: Final = ConsumerHeartbeatRoute


def handle(ctx: RequestContext, request: ConsumerGroupHeartbeatRequest) -> Any:
    if "consumer" not in ctx.broker.config.get("group.coordinator.rebalance.protocols"):
        return _refused(ErrorCode.UNSUPPORTED_VERSION)
    if not ctx.authorize(Operation.READ, ResourceType.GROUP, request.group_id):
        return _refused(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    may_see = partial(ctx.authorize, Operation.DESCRIBE, ResourceType.TOPIC)
    if not all(map(may_see, request.subscribed_topic_names or ())):
        return _refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    client = Client(ctx.client_id or "", "/" + ctx.connection.client_host)
    return ctx.broker.groups.submit(
        ctx,
        request.group_id,
        lambda machine, token, now_ms: machine.consumer.heartbeat(
            request, ctx.version, client, token, now_ms, may_see
        ),
        _refused,
    )


def _refused(error: ErrorCode) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=error, error_message=error.message)
