"""What leaders of partitions ask the coordinator of a transaction on another broker: whether partitions are
part of it, or to take them in (AddPartitionsToTxn, in the versions that brokers send).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from mainstem.broker.coordination.broker_questions import BrokerQuestions, Question
from mainstem.protocol.apis.k24_add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import TopicPartition, by_topic
from mainstem.wire.errors import error_code

if TYPE_CHECKING:
    from mainstem.broker.coordination.transactions import TransactionCoordinators, Verdicts
    from mainstem.broker.shared_server import SharedServer


class _CoordinatorQuestion(Question):
    """About partitions of one transaction. To verify is to ask whether they are part of it, and adds none."""

    __slots__ = ("places", "producer_epoch", "producer_id", "then", "transactional_id", "verify_only")

    def __init__(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        places: list[TopicPartition],
        verify_only: bool,
        then: "Callable[[Verdicts], None]",
    ) -> None:
        super().__init__(transactional_id, (producer_id, producer_epoch, verify_only))
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.places = places
        self.verify_only = verify_only
        self.then = then


class CoordinatorQuestions(BrokerQuestions[_CoordinatorQuestion]):
    """To all brokers that coordinate transactions."""

    def __init__(self, server: "SharedServer", transactions: "TransactionCoordinators") -> None:
        super().__init__(server)
        self._transactions = transactions

    def decide(
        self,
        broker_id: int,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        places: list[TopicPartition],
        verify_only: bool,
        then: "Callable[[Verdicts], None]",
    ) -> None:
        """As `TransactionCoordinators.decide`, by the broker that coordinates the transaction."""
        self.ask(
            broker_id,
            _CoordinatorQuestion(transactional_id, producer_id, producer_epoch, places, verify_only, then),
        )

    def _is_for(self, broker_id: int, question: _CoordinatorQuestion) -> bool:
        return self._transactions.leader_of(question.transactional_id) == broker_id

    def _request(self, questions: list[_CoordinatorQuestion]) -> AddPartitionsToTxnRequest:
        """Several questions about one transaction are one."""
        places: dict[str, set[TopicPartition]] = {}
        for question in questions:
            places.setdefault(question.transactional_id, set()).update(question.places)
        return AddPartitionsToTxnRequest(
            [
                AddPartitionsToTxnTransaction(
                    question.transactional_id,
                    question.producer_id,
                    question.producer_epoch,
                    question.verify_only,
                    [
                        AddPartitionsToTxnTopic(*topic)
                        for topic in by_topic(places.pop(question.transactional_id)).items()
                    ],
                )
                for question in questions
                if question.transactional_id in places
            ]
        )

    def _answer(self, questions: list[_CoordinatorQuestion], response: AddPartitionsToTxnResponse) -> None:
        if response.error_code:
            self._refuse(questions, _refusal(response.error_code))
            return
        errors = {
            (result.transactional_id, (topic.name, part.partition_index)): part.partition_error_code
            for result in response.results_by_transaction
            for topic in result.topic_results
            for part in topic.results_by_partition
        }
        for question in questions:
            question.then(
                {
                    place: error_code(
                        errors.get((question.transactional_id, place), ErrorCode.UNKNOWN_SERVER_ERROR)
                    )
                    for place in question.places
                }
            )

    def _give_back(self, questions: list[_CoordinatorQuestion]) -> None:
        self._refuse(questions, ErrorCode.NETWORK_EXCEPTION)

    def _refuse(self, questions: list[_CoordinatorQuestion], error: ErrorCode) -> None:
        for question in questions:
            question.then(dict.fromkeys(question.places, error))


def _refusal(code: int) -> ErrorCode:
    """Of a whole request. A broker that may not ask cannot help its client by asking again."""
    if code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        return ErrorCode.INVALID_TXN_STATE
    return error_code(code)
