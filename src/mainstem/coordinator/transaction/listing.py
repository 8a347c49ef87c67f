"""What administrators see of transactions: DescribeTransactions, ListTransactions, and how many there are."""

from typing import NamedTuple

from mainstem.coordinator.group.regex import compile_pattern
from mainstem.coordinator.transaction.metadata import STATE_NAMES, State, TransactionMetadata
from mainstem.coordinator.transaction.state import CoordinatorState
from mainstem.protocol.apis.k65_describe_transactions import TopicData
from mainstem.protocol.apis.k65_describe_transactions import TransactionState as DescribedTransaction
from mainstem.protocol.apis.k66_list_transactions import ListTransactionsRequest
from mainstem.protocol.apis.k66_list_transactions import TransactionState as ListedTransaction
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import by_topic


class Counts(NamedTuple):
    """Of one partition's transactions. `oldest_started_ms` is None when none is open."""

    open: int
    oldest_started_ms: int | None
    committed: int
    aborted: int


def describe(state: CoordinatorState, transactional_id: str) -> DescribedTransaction:
    if not transactional_id:
        return DescribedTransaction(ErrorCode.INVALID_REQUEST)
    metadata = state.transactions.get(transactional_id)
    if metadata is None or metadata.state is State.DEAD:
        return DescribedTransaction(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, transactional_id)
    return DescribedTransaction(
        transactional_id=transactional_id,
        transaction_state=STATE_NAMES[metadata.state],
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_start_time_ms=metadata.started_ms,
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        topics=[TopicData(topic, indexes) for topic, indexes in by_topic(metadata.partitions).items()],
    )


def unknown_states(request: ListTransactionsRequest) -> list[str]:
    """The filters that name no state."""
    known = STATE_NAMES.values()
    return [name for name in dict.fromkeys(request.state_filters) if name not in known]


def select(state: CoordinatorState, request: ListTransactionsRequest, now_ms: int) -> list[ListedTransaction]:
    """Those that pass every filter; KafkaError (INVALID_REGULAR_EXPRESSION) unless the pattern is one."""
    pattern = compile_pattern(request.transactional_id_pattern) if request.transactional_id_pattern else None
    states = {known for known, name in STATE_NAMES.items() if name in request.state_filters}
    producer_ids = set(request.producer_id_filters)

    def is_wanted(transactional_id: str, metadata: TransactionMetadata) -> bool:
        if metadata.state is State.DEAD or (producer_ids and metadata.producer_id not in producer_ids):
            return False
        if request.state_filters and metadata.state not in states:
            return False
        # One that never began has begun very long ago, to Kafka as well.
        if request.duration_filter >= 0 and now_ms - metadata.started_ms <= request.duration_filter:
            return False
        return pattern is None or pattern.matches(transactional_id)

    return [
        ListedTransaction(transactional_id, metadata.producer_id, STATE_NAMES[metadata.state])
        for transactional_id, metadata in state.transactions.items()
        if is_wanted(transactional_id, metadata)
    ]
