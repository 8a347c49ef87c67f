"""InitProducerId (key 22), versions 0 to 5: who a producer is, in the log's eyes.

Without a transactional id every call gets a producer id that was never issued before, at epoch 0. With one it
gets the id's own producer at the next epoch, which fences whoever used the id before; v3 lets a producer go
on from the epoch that it has (KIP-360), v4 knows PRODUCER_FENCED.
"""

from typing import Any, Final

from mainstem.broker.apis import Api
from mainstem.broker.requests.context import RequestContext
from mainstem.protocol.apis.k22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.security.authorizer import CLUSTER_NAME, Operation, ResourceType

API: Final = Api("broker")
_NONE = -1


def handle(ctx: RequestContext, request: InitProducerIdRequest) -> Any:
    transactional_id = request.transactional_id
    if transactional_id is None:
        if not ctx.authorize(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, CLUSTER_NAME):
            return _failed(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    elif not ctx.authorize(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        return _failed(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if (request.producer_id == _NONE) != (request.producer_epoch == _NONE):
        return _failed(ErrorCode.INVALID_REQUEST)
    if transactional_id is None:
        return _new_producer(ctx)
    return ctx.broker.transactions.submit_numbered(
        ctx,
        transactional_id,
        lambda machine, producer_id, token, now_ms: machine.init_producer_id(
            request, ctx.version, producer_id, token, now_ms
        ),
        _failed,
    )


async def _new_producer(ctx: RequestContext) -> InitProducerIdResponse:
    try:
        return InitProducerIdResponse(producer_id=await ctx.broker.producer_ids.next(), producer_epoch=0)
    except KafkaError as error:
        return _failed(error.code)


def _failed(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_id=_NONE, producer_epoch=_NONE)
