"""DescribeTransactions (key 65), version 0: state, producer and partitions of transactional ids."""

from typing import Any, Final

from mainstem.broker.apis import Api
from mainstem.broker.requests.context import RequestContext
from mainstem.coordinator.effects import Token
from mainstem.coordinator.transaction.coordinator import TransactionCoordinator
from mainstem.protocol.apis.k65_describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.security.authorizer import Operation, ResourceType

API: Final = Api("broker")


def handle(ctx: RequestContext, request: DescribeTransactionsRequest) -> Any:
    def assemble(states: list[TransactionState]) -> DescribeTransactionsResponse:
        for state in states:
            state.topics = [
                topic
                for topic in state.topics
                if ctx.authorize(Operation.DESCRIBE, ResourceType.TOPIC, topic.topic)
            ]
        return DescribeTransactionsResponse(transaction_states=states)

    parts = [_part(ctx, transactional_id) for transactional_id in request.transactional_ids]
    return ctx.broker.transactions.gather(ctx, parts, assemble)


def _part(ctx: RequestContext, transactional_id: str) -> tuple[str, Any, Any]:
    may_see = ctx.authorize(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id)

    def event(machine: TransactionCoordinator, token: Token, now_ms: int) -> None:
        machine.effects.reply(token, machine.describe(transactional_id))

    def failed(error: ErrorCode) -> TransactionState:
        if not may_see:
            error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        elif not transactional_id:
            error = ErrorCode.INVALID_REQUEST
        return TransactionState(error_code=error, transactional_id=transactional_id)

    def refused(machine: TransactionCoordinator, token: Token, now_ms: int) -> None:
        token.fail(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)

    return (transactional_id, event if may_see else refused, failed)
