"""Record batches of one producer: stamped with its id and the sequence numbers of each partition, and sent.

Because a broker knows the sequence numbers, a request that is sent again is never appended twice. A
thread sends while the task encodes what comes next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Self, TypeVar

from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import TopicPartition
from mainstem.records.batch import MAX_SEQUENCE, read_header, stamp_producer
from mainstem.spark.sink.errors import SinkError
from mainstem.wire import Cluster, KafkaRefusal

Answer = TypeVar("Answer")

_TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)


@dataclass
class Stamps:
    """The identity of a producer and the next sequence number of each partition that it has written to."""

    producer_id: int
    producer_epoch: int
    transactional: bool
    next_sequences: dict[TopicPartition, int] = field(default_factory=dict)

    def stamp(self, partition: TopicPartition, batches: Iterable[bytearray]) -> int:
        """Stamp batches in the order in which they will be appended; the number of their records."""
        first = sequence = self.next_sequences.get(partition, 0)
        for batch in batches:
            stamp_producer(
                batch, self.producer_id, self.producer_epoch, sequence, transactional=self.transactional
            )
            sequence = (sequence + read_header(batch).record_count) & MAX_SEQUENCE
        self.next_sequences[partition] = sequence
        return (sequence - first) & MAX_SEQUENCE


class BatchSender:
    """Sends in the background. Leaving the `with` block without an error waits for all acknowledgements."""

    def __init__(self, cluster: Cluster, acks: int, stamps: Stamps | None) -> None:
        self._cluster = cluster
        self._acks = acks
        self._stamps = stamps
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="mainstem-sender")
        self._under_way: Future[object] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                self._wait()
        finally:
            self._thread.shutdown(wait=True, cancel_futures=True)

    def send(self, batches: Mapping[TopicPartition, list[bytearray]]) -> None:
        """Have these appended after all earlier ones; raises what kept the former call's from being so."""
        if self._stamps is not None:
            for partition, some in batches.items():
                self._stamps.stamp(partition, some)
        self._wait()
        self._under_way = self._thread.submit(self._cluster.produce, batches, acks=self._acks)

    def when_idle(self, action: Callable[[], Answer]) -> Answer:
        """Do something with the cluster while the thread does not use it."""
        self._wait()
        return action()

    def _wait(self) -> None:
        under_way, self._under_way = self._under_way, None
        if under_way is not None:
            try:
                under_way.result()
            except KafkaRefusal as error:
                raise SinkError(explain(error)) from error


def explain(error: KafkaRefusal) -> str:
    """What a broker's refusal of a batch means, and what to do where that is known."""
    if error.code in _TOO_LARGE:
        return (
            f"{error}: raise the topic's max.message.bytes, or set kafka.batch.size below it "
            "(one record alone cannot be made smaller)"
        )
    return str(error)
