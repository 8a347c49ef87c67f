"""AddPartitionsToTxn (key 24), versions 0 to 5: take partitions into a transaction, before writing into them.

Clients send versions 0 to 3, for one transaction; those of transactions version 2 leave it to the broker.
From version 4 on it is sent by brokers, for many transactions at once, and may only ask whether partitions
are part of one (KIP-890). v2 knows PRODUCER_FENCED.
"""

from collections.abc import Mapping
from typing import Any, Final

from mainstem.broker.apis import Api
from mainstem.broker.coordination.internal_topics import is_internal
from mainstem.broker.requests.context import RequestContext
from mainstem.coordinator.transaction.known_errors import ADD_PARTITIONS_TO_TXN, as_known
from mainstem.protocol.apis.k24_add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import TopicPartition
from mainstem.security.authorizer import CLUSTER_NAME, Operation, ResourceType

API: Final = Api("broker")
_BATCHED_SINCE = 4
_VERSION_2_SINCE = 5  # of this API: the producers are those of transactions version 2


def handle(ctx: RequestContext, request: AddPartitionsToTxnRequest) -> Any:
    if ctx.version < _BATCHED_SINCE:
        transactions = [
            AddPartitionsToTxnTransaction(
                transactional_id=request.v3_and_below_transactional_id,
                producer_id=request.v3_and_below_producer_id,
                producer_epoch=request.v3_and_below_producer_epoch,
                topics=request.v3_and_below_topics,
            )
        ]
    elif not ctx.authorize(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        return AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    else:
        # Of transactions that are named twice the last one counts, as Kafka has it.
        transactions = list({entry.transactional_id: entry for entry in request.transactions}.values())
    refused: list[AddPartitionsToTxnResult] = []
    asked: list[AddPartitionsToTxnTransaction] = []
    parts: list[tuple[str, Any, Any]] = []
    for transaction in transactions:
        places = [(topic.name, index) for topic in transaction.topics for index in topic.partitions]
        errors = _refusals(ctx, transaction, places)
        if errors:
            refused.append(_result(ctx.version, transaction.transactional_id, errors))
        else:
            asked.append(transaction)
            parts.append(_part(ctx.version, transaction, places))

    def assemble(answers: list[dict[TopicPartition, ErrorCode]]) -> AddPartitionsToTxnResponse:
        results = refused + [_answer(ctx.version, *answer) for answer in zip(asked, answers, strict=True)]
        if ctx.version >= _BATCHED_SINCE:
            return AddPartitionsToTxnResponse(results_by_transaction=results)
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results[0].topic_results)

    return ctx.broker.transactions.gather(ctx, parts, assemble)


def _refusals(
    ctx: RequestContext, transaction: AddPartitionsToTxnTransaction, places: list[TopicPartition]
) -> dict[TopicPartition, ErrorCode]:
    """Errors for all partitions when one of them cannot be added; nothing when the coordinator is to say."""
    from_client = ctx.version < _BATCHED_SINCE
    if from_client and not ctx.authorize(
        Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transaction.transactional_id
    ):
        return dict.fromkeys(places, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    errors = {}
    for topic, index in places:
        if from_client and (
            is_internal(topic) or not ctx.authorize(Operation.WRITE, ResourceType.TOPIC, topic)
        ):
            errors[topic, index] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif ctx.broker.image.partition(topic, index) is None:
            errors[topic, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if not errors:
        return {}
    return {place: errors.get(place, ErrorCode.OPERATION_NOT_ATTEMPTED) for place in places}


def _part(
    version: int, transaction: AddPartitionsToTxnTransaction, places: list[TopicPartition]
) -> tuple[str, Any, Any]:
    return (
        transaction.transactional_id,
        lambda machine, token, now_ms: machine.add_partitions(
            transaction.transactional_id,
            transaction.producer_id,
            transaction.producer_epoch,
            places,
            transaction.verify_only,
            2 if version >= _VERSION_2_SINCE else 0,
            token,
            now_ms,
        ),
        lambda error: dict.fromkeys(places, error),
    )


def _answer(
    version: int, transaction: AddPartitionsToTxnTransaction, errors: Mapping[TopicPartition, ErrorCode]
) -> AddPartitionsToTxnResult:
    """The coordinator's word. Partitions that were to be added are answered as they were asked for, the empty
    topics and those named twice too.
    """
    if transaction.verify_only:
        return _result(version, transaction.transactional_id, errors)
    topics = [
        AddPartitionsToTxnTopicResult(
            topic.name, [_partition(version, index, errors[topic.name, index]) for index in topic.partitions]
        )
        for topic in transaction.topics
    ]
    return AddPartitionsToTxnResult(transaction.transactional_id, topics)


def _result(
    version: int, transactional_id: str, errors: Mapping[TopicPartition, ErrorCode]
) -> AddPartitionsToTxnResult:
    topics: dict[str, AddPartitionsToTxnTopicResult] = {}
    for (topic, index), error in errors.items():
        found = topics.setdefault(topic, AddPartitionsToTxnTopicResult(name=topic))
        found.results_by_partition.append(_partition(version, index, error))
    return AddPartitionsToTxnResult(transactional_id, list(topics.values()))


def _partition(version: int, index: int, error: ErrorCode) -> AddPartitionsToTxnPartitionResult:
    return AddPartitionsToTxnPartitionResult(index, as_known(error, ADD_PARTITIONS_TO_TXN, version))
