"""AddOffsetsToTxn (key 25), versions 0 to 4: the positions of a group will be committed in a transaction.

It takes the partition of `__consumer_offsets` that keeps the group into the transaction. v2 knows
PRODUCER_FENCED, v4 TRANSACTION_ABORTABLE.
"""

from typing import TYPE_CHECKING, Any, Final

from mainstem.broker.apis import Api
from mainstem.broker.coordination.internal_topics import CONSUMER_OFFSETS
from mainstem.broker.coordination.java_hash import java_hash
from mainstem.broker.requests.context import RequestContext
from mainstem.broker.requests.pending import Pending
from mainstem.coordinator.transaction.known_errors import ADD_OFFSETS_TO_TXN, as_known
from mainstem.protocol.apis.k25_add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from mainstem.protocol.errors import ErrorCode
from mainstem.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from mainstem.broker.coordination.transactions import Verdicts

API: Final = Api("broker")


def handle(ctx: RequestContext, request: AddOffsetsToTxnRequest) -> Any:
    if not ctx.authorize(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        return _response(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not ctx.authorize(Operation.READ, ResourceType.GROUP, request.group_id):
        return _response(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    place = (CONSUMER_OFFSETS, _partition_of(ctx, request.group_id))
    pending = Pending(ctx, _response)

    def added(verdicts: "Verdicts") -> None:
        pending.fail(as_known(verdicts[place], ADD_OFFSETS_TO_TXN, ctx.version))

    ctx.broker.transactions.decide(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        [place],
        verify_only=False,
        transaction_version=0,
        then=added,
    )
    return pending.outcome()


def _partition_of(ctx: RequestContext, group_id: str) -> int:
    """The topic may not be there yet: producers ask for the group's coordinator only after this."""
    index = ctx.broker.groups.partition_of(group_id)
    return (
        index if index >= 0 else java_hash(group_id) % ctx.broker.config.get("offsets.topic.num.partitions")
    )


def _response(error: ErrorCode) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(error_code=error)
