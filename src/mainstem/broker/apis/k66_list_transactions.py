"""ListTransactions (key 66), versions 0 to 2: the transactional ids that this broker coordinates.

They can be asked for by state and producer id; v1 by how long they have been running (KIP-994), v2 by a
pattern of their names (KIP-1152).
"""

from functools import partial
from typing import Any, Final

from mainstem.broker.apis import Api
from mainstem.broker.requests.context import RequestContext
from mainstem.coordinator.effects import Token
from mainstem.coordinator.transaction.coordinator import TransactionCoordinator
from mainstem.coordinator.transaction.listing import unknown_states
from mainstem.protocol.apis.k66_list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.security.authorizer import Operation, ResourceType

API: Final = Api("broker")


def handle(ctx: RequestContext, request: ListTransactionsRequest) -> Any:
    def assemble(parts: list[list[TransactionState] | ErrorCode]) -> ListTransactionsResponse:
        response = ListTransactionsResponse(unknown_state_filters=unknown_states(request))
        for part in parts:
            if isinstance(part, ErrorCode):
                if part is not ErrorCode.NOT_COORDINATOR:
                    return ListTransactionsResponse(error_code=part)
                continue
            response.transaction_states += [
                state
                for state in part
                if ctx.authorize(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, state.transactional_id)
            ]
        return response

    return ctx.broker.transactions.gather_all(ctx, partial(_list, request), _fail, assemble)


def _list(
    request: ListTransactionsRequest, machine: TransactionCoordinator, token: Token, now_ms: int
) -> None:
    try:
        machine.effects.reply(token, machine.list(request, now_ms))
    except KafkaError as error:
        machine.effects.reply(token, error.code)


def _fail(error: ErrorCode) -> ErrorCode:
    return error
