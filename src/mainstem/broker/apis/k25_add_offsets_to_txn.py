"""AddOffsetsToTxn (key 25), versions 0 to 4: the positions of a group will be committed in a transaction.

It takes the partition of `__consumer_offsets` that keeps the group into the transaction. v2 knows
PRODUCER_FENCED, v4 TRANSACTION_ABORTABLE.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from mainstem.broker.apis import Api
from mainstem.broker.coordination.internal_topics import CONSUMER_OFFSETS
from mainstem.broker.requests.context import RequestContext
from mainstem.broker.requests.pending import Pending
from mainstem.coordinator.transaction.known_errors import ADD_OFFSETS_TO_TXN, as_known
from mainstem.protocol.apis.k25_add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from mainstem.broker.coordination.transactions import Verdicts

API: Final = Api("broker")


def handle(ctx: RequestContext, request: AddOffsetsToTxnRequest) -> Any:
    if not ctx.authorize(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        return _response(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not ctx.authorize(Operation.READ, ResourceType.GROUP, request.group_id):
        return _response(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if ctx.broker.groups.partition_of(request.group_id) < 0:
        return _add_after_all(ctx, request)
    pending = Pending(ctx, _response)
    _add(ctx, request, pending.fail)
    return pending.outcome()


def _add(ctx: RequestContext, request: AddOffsetsToTxnRequest, then: Callable[[ErrorCode], None]) -> None:
    place = (CONSUMER_OFFSETS, ctx.broker.groups.partition_of(request.group_id))

    def added(verdicts: "Verdicts") -> None:
        then(as_known(verdicts[place], ADD_OFFSETS_TO_TXN, ctx.version))

    ctx.broker.transactions.decide(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        [place],
        verify_only=False,
        transaction_version=0,
        then=added,
    )


async def _add_after_all(ctx: RequestContext, request: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse:
    """The topic is not there, as far as this node knows: producers ask for the group's coordinator only after
    this. A partition that the transaction's coordinator knew nothing of would get no marker from it, if the
    transaction ended before the coordinator heard of the topic that others have made.
    """
    groups = ctx.broker.groups
    try:
        await groups.ensure_topic()
    except KafkaError as error:
        return _response(error.code)
    if groups.partition_of(request.group_id) < 0:
        return _response(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    answered: asyncio.Future[ErrorCode] = ctx.broker.loop.create_future()

    def answer(error: ErrorCode) -> None:
        if not answered.done():  # the client may be gone
            answered.set_result(error)

    _add(ctx, request, answer)
    return _response(await answered)


def _response(error: ErrorCode) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(error_code=error)
