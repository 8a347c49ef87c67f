"""Produce: record batches to the leaders of their partitions, in order, until each is acknowledged.

The batches are sent as they are: whoever wants them once only has stamped producer id, epoch and sequences. A
Produce request carries one batch of a partition, so several batches of one are several requests. Batches of
an idempotent producer may be under way together; others wait for the one before, because a retry would
reorder them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mainstem.protocol.apis.k00_produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import TopicPartition
from mainstem.protocol.uuids import ZERO_UUID
from mainstem.records.batch import HEADER_SIZE, NO_PRODUCER_ID, read_header
from mainstem.wire.brokers import STALE_LEADER_CODES, Brokers
from mainstem.wire.connection import Connection
from mainstem.wire.errors import ConnectionLost, KafkaRefusal, WireError, error_code, name_of
from mainstem.wire.leaders import learn

Batch = bytes | bytearray | memoryview

UNKNOWN_OFFSET = -1
# What a broker takes with batches under way: it remembers the last five of a producer.
REQUESTS_UNDER_WAY_MAX = 5
# Kafka's max.request.size is 1 MiB for a producer, but a broker takes 100 MiB; one batch may always be
# larger.
REQUEST_BYTES_MAX = 16 * 1024 * 1024
# From the next version on topics are named by their ids alone.
_VERSION_WITH_NAMES = 12

_RETRIED_CODES = STALE_LEADER_CODES | {
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.CONCURRENT_TRANSACTIONS,
}


@dataclass(eq=False, slots=True)
class _Queue:
    """The batches of one partition that are not acknowledged yet; the first `under_way` of them are sent."""

    partition: TopicPartition
    batches: deque[Batch]
    idempotent: bool
    under_way: int = 0
    first_offset: int | None = None
    # The first batch goes alone: a broker that knows nothing of the producer would take the second for the
    # first if that one failed.
    limit: int = 1
    failed: bool = False

    def start_over(self) -> None:
        self.under_way, self.limit, self.failed = 0, 1, False

    def next_batch(self) -> Batch | None:
        """The batch to send now, if one may be."""
        if self.failed or self.under_way >= min(self.limit, len(self.batches)):
            return None
        return self.batches[self.under_way]

    def acknowledge(self, offset: int) -> None:
        self.batches.popleft()
        if self.first_offset is None:
            self.first_offset = offset
        if self.idempotent:
            self.limit = REQUESTS_UNDER_WAY_MAX


@dataclass(frozen=True, slots=True)
class ProduceSettings:
    """How Produce requests are to be sent."""

    acks: int = -1
    timeout_ms: int = 30_000
    transactional_id: str | None = None
    version_max: int | None = None


@dataclass(slots=True)
class _Sender:
    """The requests of one broker, of which several may be under way."""

    connection: Connection
    queues: list[_Queue]
    sent: deque[list[_Queue]] = field(default_factory=deque)


def produce(
    brokers: Brokers, batches: Mapping[TopicPartition, Sequence[Batch]], settings: ProduceSettings
) -> dict[TopicPartition, int]:
    """The offset of the first record of each partition; -1 where the broker does not tell it."""
    queues = {
        partition: _Queue(partition, deque(some), _is_idempotent(some))
        for partition, some in batches.items()
        if some
    }
    attempts = brokers.attempts()
    problem = learn(brokers, {name for name, _ in queues if name not in brokers.topics})
    while missing := {partition: queue for partition, queue in queues.items() if queue.batches}:
        before = sum(len(queue.batches) for queue in missing.values())
        shared, leaderless = brokers.by_leader(missing)
        problem = problem or next(iter(leaderless.values()), None)
        for queue in missing.values():
            queue.start_over()
        problem = _produce_at(brokers, shared, settings) or problem
        left = {partition: queue for partition, queue in missing.items() if queue.batches}
        if left:
            if sum(len(queue.batches) for queue in left.values()) < before:
                attempts = brokers.attempts()
            attempts.pause(problem or WireError("produce: the broker left partitions out of its answer"))
            problem = learn(brokers, {name for name, _ in left})
    return {
        partition: UNKNOWN_OFFSET if queue.first_offset is None else queue.first_offset
        for partition, queue in queues.items()
    }


def _is_idempotent(batches: Sequence[Batch]) -> bool:
    for batch in batches:
        if len(batch) < HEADER_SIZE:
            raise ValueError(f"a record batch has at least {HEADER_SIZE} bytes, this one has {len(batch)}")
    return bool(batches) and read_header(batches[0]).producer_id != NO_PRODUCER_ID


def _produce_at(
    brokers: Brokers, shared: Mapping[int, Mapping[TopicPartition, _Queue]], settings: ProduceSettings
) -> WireError | None:
    """Send to all leaders what they lead; what kept some of it from being acknowledged, if anything did."""
    problem: WireError | None = None
    senders: list[_Sender] = []
    for node_id, queues in shared.items():
        try:
            senders.append(_Sender(brokers.connection(node_id), list(queues.values())))
        except ConnectionLost as error:
            problem = error
    timeout_s = (settings.timeout_ms + brokers.options.request_timeout_ms) / 1000
    while senders:
        for sender in list(senders):
            try:
                while len(sender.sent) < REQUESTS_UNDER_WAY_MAX and _send_next(brokers, sender, settings):
                    pass
            except ConnectionLost as error:
                problem = error
                senders.remove(sender)
        for sender in list(senders):
            try:
                if not sender.sent:
                    senders.remove(sender)
                    continue
                answer: ProduceResponse = sender.connection.receive(timeout_s=timeout_s)
                problem = _take_in(brokers, answer, sender.sent.popleft()) or problem
            except ConnectionLost as error:
                problem = error
                senders.remove(sender)
    return problem


def _send_next(brokers: Brokers, sender: _Sender, settings: ProduceSettings) -> bool:
    """Send one request with the next batch of every partition that may have one under way; whether it did."""
    topics: dict[str, TopicProduceData] = {}
    chosen: list[_Queue] = []
    size = 0
    with_ids = True
    for queue in sender.queues:
        batch = queue.next_batch()
        if batch is None:
            continue
        if chosen and size + len(batch) > REQUEST_BYTES_MAX:
            continue
        size += len(batch)
        name, number = queue.partition
        topic_id = brokers.topics[name].topic_id
        with_ids = with_ids and topic_id != ZERO_UUID
        topic = topics.setdefault(name, TopicProduceData(name, topic_id, []))
        topic.partition_data.append(PartitionProduceData(number, memoryview(batch)))
        chosen.append(queue)
    if not chosen:
        return False
    request = ProduceRequest(
        settings.transactional_id, settings.acks, settings.timeout_ms, list(topics.values())
    )
    limits = [settings.version_max, None if with_ids else _VERSION_WITH_NAMES]
    version_max = min((limit for limit in limits if limit is not None), default=None)
    sender.connection.send(request, version_max=version_max, answered=settings.acks != 0)
    for queue in chosen:
        if settings.acks:
            queue.under_way += 1
        else:
            queue.acknowledge(UNKNOWN_OFFSET)
    if settings.acks:
        sender.sent.append(chosen)
    return True


def _take_in(brokers: Brokers, answer: ProduceResponse, asked: list[_Queue]) -> WireError | None:
    names = {brokers.topics[queue.partition[0]].topic_id: queue.partition[0] for queue in asked}
    results = {
        (topic.name or names.get(topic.topic_id, ""), part.index): part
        for topic in answer.responses
        for part in topic.partition_responses
    }
    problem: WireError | None = None
    for queue in asked:
        queue.under_way -= 1
        result = results.get(queue.partition)
        if result is None:
            queue.failed = True
        else:
            problem = _settle(queue, result) or problem
    return problem


def _settle(queue: _Queue, result: PartitionProduceResponse) -> WireError | None:
    """Take the result of the oldest batch under way. After a failure those behind it are sent again, too."""
    code = error_code(result.error_code)
    accepted = result.error_code == ErrorCode.NONE or code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER
    if accepted and not queue.failed:
        queue.acknowledge(result.base_offset if result.error_code == ErrorCode.NONE else UNKNOWN_OFFSET)
        return None
    if accepted:
        return None
    refusal = KafkaRefusal(result.error_code, f"produce to {name_of(queue.partition)}", result.error_message)
    follows = queue.failed and code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    if code not in _RETRIED_CODES and not follows:
        raise refusal
    queue.failed = True
    return refusal
