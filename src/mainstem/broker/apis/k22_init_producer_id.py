"""InitProducerId (key 22), versions 0 to 5, for idempotent producers without transactions.

Every call gets a producer id that was never issued before, at epoch 0. Not there yet: transactional ids.
"""

from mainstem.broker.context import RequestContext
from mainstem.protocol.apis.k22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.security.authorizer import CLUSTER_NAME, Operation, ResourceType


async def handle(ctx: RequestContext, request: InitProducerIdRequest) -> InitProducerIdResponse:
    response = InitProducerIdResponse(producer_id=-1, producer_epoch=-1)
    if not ctx.authorize(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, CLUSTER_NAME):
        response.error_code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return response
    if request.transactional_id is not None:
        response.error_code = ErrorCode.INVALID_REQUEST
        return response
    try:
        response.producer_id = await ctx.node.producer_ids.next()
    except KafkaError as error:
        response.error_code = error.code
        return response
    response.producer_epoch = 0
    return response
