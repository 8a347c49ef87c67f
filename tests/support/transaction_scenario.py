"""The words of a scenario about transactions: what a transactional producer asks, as bare requests.

Apache Kafka answers the end of a transaction before its markers are in, and whoever is quick meets
CONCURRENT_TRANSACTIONS: `Actor.end` waits until the transaction is over. An actor remembers what a producer
does: its producer id, its epoch and the next sequence of each partition.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mainstem.protocol.apis.k10_find_coordinator import FindCoordinatorRequest
from mainstem.protocol.apis.k22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from mainstem.protocol.apis.k24_add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from mainstem.protocol.apis.k25_add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from mainstem.protocol.apis.k26_end_txn import EndTxnRequest, EndTxnResponse
from mainstem.protocol.apis.k27_write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from mainstem.protocol.apis.k28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from mainstem.protocol.apis.k61_describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from mainstem.protocol.apis.k65_describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.records.batch import TRANSACTIONAL_MASK
from tests.support.scenario import batch, produce_request
from tests.support.target import unique_name
from tests.support.transcript import Transcript
from tests.support.wire import WireClient

# Partitions of topics, by name.
Places = Mapping[str, Sequence[int]]

TRANSACTION = 1  # FindCoordinator's key type
_READY_SECONDS_MAX = 60
_NOT_READY = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)
_ASKED_MAX = 50
# The versions that know TRANSACTION_ABORTABLE.
PRODUCE_ABORTABLE_SINCE = 11
_COMMIT_ABORTABLE_SINCE = 4
_OVER = ("Empty", "CompleteCommit", "CompleteAbort")


def new_transactional_id(client: WireClient) -> str:
    """A transactional id that nobody else has, whose coordinator is there and loaded."""
    name = unique_name("txn")
    await_answer(
        lambda: client.call(FindCoordinatorRequest(name, TRANSACTION), 3),
        lambda found: found.error_code not in _NOT_READY,
    )
    await_answer(
        lambda: describe(client, name),
        lambda found: found.transaction_states[0].error_code not in _NOT_READY,
    )
    return name


def await_answer(ask: Callable[[], Any], is_wanted: Callable[[Any], bool]) -> Any:
    deadline = time.monotonic() + _READY_SECONDS_MAX
    while not is_wanted(answer := ask()):
        assert time.monotonic() < deadline, answer
        time.sleep(0.01)
    return answer


def describe(client: WireClient, *names: str) -> DescribeTransactionsResponse:
    """Topics by name, partitions by number: Kafka lists them in the order of a hash table."""
    answer = client.call(DescribeTransactionsRequest(list(names)))
    for state in answer.transaction_states:
        state.topics.sort(key=lambda topic: topic.topic)
        for topic in state.topics:
            topic.partitions.sort()
    return answer


def await_over(client: WireClient, name: str) -> DescribeTransactionsResponse:
    """Wait until a transaction's markers are in."""
    return await_answer(
        lambda: describe(client, name), lambda found: found.transaction_states[0].transaction_state in _OVER
    )


def describe_producers(client: WireClient, topics: Places) -> DescribeProducersResponse:
    wanted = [TopicRequest(name, list(indexes)) for name, indexes in topics.items()]
    answer = client.call(DescribeProducersRequest(wanted))
    for topic in answer.topics:
        topic.partitions.sort(key=lambda partition: partition.partition_index)
        for partition in topic.partitions:
            partition.active_producers.sort(key=lambda producer: producer.producer_id)
    return answer


def marker(
    producer_id: int,
    epoch: int,
    topics: Places,
    *,
    committed: bool = True,
    **fields: Any,
) -> WritableTxnMarker:
    """`coordinator_epoch` and `transaction_version` may be given."""
    places = [WritableTxnMarkerTopic(name, list(indexes)) for name, indexes in topics.items()]
    return WritableTxnMarker(producer_id, epoch, committed, places, **fields)


def write_markers(
    client: WireClient, markers: Sequence[WritableTxnMarker], version: int = 2
) -> WriteTxnMarkersResponse:
    answer = client.call(WriteTxnMarkersRequest(list(markers)), version)
    answer.markers.sort(key=lambda result: result.producer_id)
    for result in answer.markers:
        result.topics.sort(key=lambda topic: _place(topic.name))
        for topic in result.topics:
            topic.partitions.sort(key=lambda partition: partition.partition_index)
    return answer


def _place(name: str) -> tuple[bool, int, str]:
    """Those that are not there go last; unique names end with a number."""
    return name.startswith("no-such"), len(name), name


def txn_topics(topics: Places) -> list[AddPartitionsToTxnTopic]:
    return [AddPartitionsToTxnTopic(name, list(indexes)) for name, indexes in topics.items()]


def in_order(answer: AddPartitionsToTxnResponse) -> AddPartitionsToTxnResponse:
    """Transactions, topics and partitions come in the order of a hash table."""
    answer.results_by_transaction.sort(
        key=lambda result: (len(result.transactional_id), result.transactional_id)
    )
    for topics in (
        answer.results_by_topic_v3_and_below,
        *(result.topic_results for result in answer.results_by_transaction),
    ):
        topics.sort(key=lambda topic: _place(topic.name))
        for topic in topics:
            topic.results_by_partition.sort(key=lambda partition: partition.partition_index)
    return answer


def as_verified(transcript: Transcript, ask: Callable[[], Any], *, is_abortable: bool) -> Any:
    """The answer to a write, before which the coordinator is asked. Apache Kafka asks for all producers that
    write at one time, and puts the error into the words of one version for all of them: with other tests
    beside this one it has to be asked again.
    """
    wrong = ErrorCode.INVALID_TXN_STATE if is_abortable else ErrorCode.TRANSACTION_ABORTABLE
    for _ in range(_ASKED_MAX):
        answer = ask()
        if transcript.is_of_mainstem or wrong not in _codes(answer):
            break
    return answer


def _codes(answer: Any) -> set[int]:
    if hasattr(answer, "responses"):
        return {part.error_code for topic in answer.responses for part in topic.partition_responses}
    return {part.error_code for topic in answer.topics for part in topic.partitions}


class Actor:
    """One instance of a transactional producer. Fields of a request may be given to say something else than
    what the actor knows: `transactional_id`, `producer_id`, `producer_epoch`.
    """

    def __init__(self, client: WireClient, transcript: Transcript, name: str = "id", of: str = "") -> None:
        self._client = client
        self._transcript = transcript
        self._name = name
        self.id = transcript.stand_in(of or new_transactional_id(client), name)
        self.producer_id = -1
        self.epoch = -1
        self.timeout_ms = 60_000
        self._sequences: Counter[tuple[str, int]] = Counter()

    def init(self, version: int = 5, **fields: Any) -> InitProducerIdResponse:
        request = InitProducerIdRequest(self.id, self.timeout_ms, **fields)
        # Apache Kafka fetches its first block of ids when the first producer asks.
        answer = await_answer(
            lambda: self._client.call(request, version), lambda found: found.error_code not in _NOT_READY
        )
        if not answer.error_code:
            self._adopt(answer.producer_id, answer.producer_epoch)
        return answer

    def add(
        self, topics: Places, version: int = 3, *, verify: bool = False, **fields: Any
    ) -> AddPartitionsToTxnResponse:
        """As a client up to version 3, from version 4 as a broker."""
        who = self._identity(fields)
        if version < 4:
            request = AddPartitionsToTxnRequest([], *who, txn_topics(topics))
        else:
            transaction = AddPartitionsToTxnTransaction(*who, verify, txn_topics(topics))
            request = AddPartitionsToTxnRequest([transaction])
        return in_order(self._client.call(request, version))

    def add_offsets(self, group: str, version: int = 4, **fields: Any) -> AddOffsetsToTxnResponse:
        return self._client.call(AddOffsetsToTxnRequest(*self._identity(fields), group), version)

    def commit_offsets(
        self,
        group: str,
        offsets: Mapping[str, Mapping[int, int]],
        version: int = 5,
        metadata: str | None = "",
        **fields: Any,
    ) -> TxnOffsetCommitResponse:
        """`generation_id`, `member_id` and `group_instance_id` may be given too."""
        transactional_id, producer_id, epoch = self._identity(fields)
        topics = [
            TxnOffsetCommitRequestTopic(
                name,
                [TxnOffsetCommitRequestPartition(n, offset, -1, metadata) for n, offset in places.items()],
            )
            for name, places in offsets.items()
        ]
        member = {key: value for key, value in fields.items() if key not in _IDENTITY}
        request = TxnOffsetCommitRequest(transactional_id, group, producer_id, epoch, **member, topics=topics)
        return as_verified(
            self._transcript,
            lambda: self._client.call(request, version),
            is_abortable=version >= _COMMIT_ABORTABLE_SINCE,
        )

    def produce(
        self, topic: str, count: int = 1, partition: int = 0, version: int = 11, **fields: Any
    ) -> Any:
        """One transactional batch; `sequence` and `value` may be given too. Up to version 12."""
        transactional_id, producer_id, epoch = self._identity(fields)
        place = (topic, partition)
        records = batch(
            count,
            value=fields.get("value", b"value"),
            attributes=fields.get("attributes", TRANSACTIONAL_MASK),
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=fields.get("sequence", self._sequences[place]),
        )
        request = produce_request(topic, records, partition=partition, transactional_id=transactional_id)
        answer = as_verified(
            self._transcript,
            lambda: self._client.call(request, version),
            is_abortable=version >= PRODUCE_ABORTABLE_SINCE,
        )
        if not answer.responses[0].partition_responses[0].error_code:
            self._sequences[place] += count
        return answer

    def ask_end(self, version: int = 4, *, committed: bool = True, **fields: Any) -> EndTxnResponse:
        """Without waiting."""
        answer = self._client.call(EndTxnRequest(*self._identity(fields), committed), version)
        if version >= 5 and not answer.error_code:
            self._adopt(answer.producer_id, answer.producer_epoch)
        return answer

    def end(self, version: int = 4, *, committed: bool = True, **fields: Any) -> EndTxnResponse:
        answer = self.ask_end(version, committed=committed, **fields)
        await_over(self._client, self.id)
        return answer

    def view(self) -> DescribeTransactionsResponse:
        return describe(self._client, self.id)

    def _adopt(self, producer_id: int, epoch: int) -> None:
        if producer_id != self.producer_id:
            self._transcript.stand_in(producer_id, f"{self._name}'s producer", "producer_id")
        if (producer_id, epoch) != (self.producer_id, self.epoch):
            self._sequences.clear()
        self.producer_id, self.epoch = producer_id, epoch

    def _identity(self, fields: Mapping[str, Any]) -> tuple[str, int, int]:
        return (
            fields.get("transactional_id", self.id),
            fields.get("producer_id", self.producer_id),
            fields.get("producer_epoch", self.epoch),
        )


_IDENTITY = ("transactional_id", "producer_id", "producer_epoch")
