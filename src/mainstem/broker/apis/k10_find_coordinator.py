"""FindCoordinator (key 10), versions 0 to 6: who coordinates a group or a transactional id.

The first one makes `__consumer_offsets` or `__transaction_state`, and is answered when its partitions are
there. Not there yet: share groups.
"""

from typing import TYPE_CHECKING, Any, Final

from mainstem.broker.apis import Api
from mainstem.broker.requests.context import RequestContext
from mainstem.protocol.apis.k10_find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from mainstem.broker.coordination.coordinators import Coordinators

API: Final = Api("broker")
_GROUP = 0
_TRANSACTION = 1
_NOWHERE = (-1, "", -1)
_NO_ERROR = "NONE"  # as Kafka says in these versions


async def handle(ctx: RequestContext, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    if ctx.version >= 4:
        found = [await _find(ctx, request.key_type, key) for key in request.coordinator_keys]
        return FindCoordinatorResponse(coordinators=found)
    one = await _find(ctx, request.key_type, request.key)
    return FindCoordinatorResponse(
        error_code=one.error_code,
        error_message=one.error_message if one.error_code else _NO_ERROR,
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )


async def _find(ctx: RequestContext, key_type: int, key: str) -> Coordinator:
    try:
        coordinators = _coordinators(ctx, key_type, key)
        await coordinators.ensure_topic()
        leader = coordinators.leader_of(key)
        for endpoint in ctx.broker.endpoints(ctx.listener_name):
            if endpoint.node_id == leader:
                return Coordinator(key, leader, endpoint.host, endpoint.port)
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the coordinator's partition has no leader")
    except KafkaError as error:
        node_id, host, port = _NOWHERE
        return Coordinator(key, node_id, host, port, error.code, error.message or error.code.message)


def _coordinators(ctx: RequestContext, key_type: int, key: str) -> "Coordinators[Any]":
    if key_type == _GROUP:
        if not ctx.authorize(Operation.DESCRIBE, ResourceType.GROUP, key):
            raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        return ctx.broker.groups
    if key_type == _TRANSACTION:
        if not ctx.authorize(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, key):
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        return ctx.broker.transactions
    raise KafkaError(ErrorCode.INVALID_REQUEST, f"coordinators of key type {key_type} are not served here")
