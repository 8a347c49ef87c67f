"""EndTxn (key 26), versions 0 to 5: commit or abort a transaction.

It is answered when the decision is committed; the markers follow. v2 knows PRODUCER_FENCED, v4
TRANSACTION_ABORTABLE; from v5 on the producer gets another epoch for its next transaction (KIP-890).
"""

from typing import Any, Final

from mainstem.broker.apis import Api
from mainstem.broker.requests.context import RequestContext
from mainstem.protocol.apis.k26_end_txn import EndTxnRequest, EndTxnResponse
from mainstem.protocol.errors import ErrorCode
from mainstem.security.authorizer import Operation, ResourceType

API: Final = Api("broker")


def handle(ctx: RequestContext, request: EndTxnRequest) -> Any:
    if not ctx.authorize(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        return _failed(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    return ctx.broker.transactions.submit_numbered(
        ctx,
        request.transactional_id,
        lambda machine, producer_id, token, now_ms: machine.end_txn(
            request, ctx.version, token, now_ms, fresh_producer_id=producer_id
        ),
        _failed,
    )


def _failed(error: ErrorCode) -> EndTxnResponse:
    return EndTxnResponse(error_code=error)
