"""Writers that keep a broker busy while a test does something terrible to it.

Every writer sends batches of unique payloads over a raw connection, several requests ahead, and notes in the
ledger what was acknowledged. When the connection breaks it stops; a new life goes on where it was.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from threading import Event, Thread
from typing import Any

from mainstem.protocol.apis.k22_init_producer_id import InitProducerIdRequest
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import TopicPartition
from mainstem.records.record import Record, build_batch
from mainstem.testing import Broker
from tests.faults.ledger import Ledger, connect
from tests.support.scenario import produce_request
from tests.support.wire import ConnectionClosedError, WireClient

WAIT_SECONDS = 30
_PRODUCE_BY_NAME = 12
_BATCH_RECORDS_MAX = 8
_PAYLOAD_BYTES_MAX = 400
# As many as the broker remembers of a producer, so that each can be sent again after a crash.
_IN_FLIGHT_MAX = 5


class _RefusedError(Exception):
    """A batch was refused with an expected error."""


@dataclass
class Batch:
    """A batch that was sent."""

    where: TopicPartition
    payloads: list[bytes]
    sequence: int = -1


class Writer:
    """Sends to its partitions in turn. Without a producer id (acks=1) nothing is ever sent twice."""

    acks = 1
    # Errors at which it gives up its life without complaint.
    expected_errors: frozenset[ErrorCode] = frozenset()

    def __init__(self, name: str, ledger: Ledger, partitions: Sequence[TopicPartition], seed: int) -> None:
        self._name = name
        self._ledger = ledger
        self._partitions = partitions
        self._random = Random(seed)
        self._sent = 0
        self.unanswered: deque[Batch] = deque()
        self.refusals: list[str] = []

    def live(self, broker: Broker, stop: Event) -> None:
        """Write until told to stop, or until the broker is gone."""
        try:
            with connect(broker) as client:
                self.begin(client)
                while not stop.is_set():
                    while len(self.unanswered) < _IN_FLIGHT_MAX:
                        self._send(client, self._next_batch())
                    self._receive(client)
                while self.unanswered:
                    self._receive(client)
        except (ConnectionClosedError, OSError, _RefusedError):
            pass

    def begin(self, client: WireClient) -> None:
        """A new connection: what was not answered may or may not be in the log."""
        self.unanswered.clear()

    def _next_batch(self) -> Batch:
        where = self._partitions[self._random.randrange(len(self._partitions))]
        payloads = []
        for _ in range(self._random.randint(1, _BATCH_RECORDS_MAX)):
            payloads.append(
                f"{self._name}:{self._sent:0{self._random.randint(8, _PAYLOAD_BYTES_MAX)}d}".encode()
            )
            self._sent += 1
        return self.prepare(Batch(where, payloads))

    def prepare(self, batch: Batch) -> Batch:
        return batch

    def producer_fields(self, batch: Batch) -> dict[str, Any]:
        return {}

    def _send(self, client: WireClient, batch: Batch) -> None:
        self.unanswered.append(batch)
        self.transmit(client, batch)

    def transmit(self, client: WireClient, batch: Batch) -> None:
        now_ms = int(time.time() * 1000)
        records = [Record(0, now_ms, None, payload) for payload in batch.payloads]
        data = build_batch(records, **self.producer_fields(batch))
        topic, partition = batch.where
        client.send(produce_request(topic, data, partition=partition, acks=self.acks), _PRODUCE_BY_NAME)

    def _receive(self, client: WireClient) -> None:
        (answer,) = client.receive().responses[0].partition_responses
        batch = self.unanswered[0]
        error = ErrorCode(answer.error_code)
        if error in self.expected_errors:
            self.refusals.append(answer.error_message or "")
            raise _RefusedError
        assert error == ErrorCode.NONE, f"{batch.where}: {error.name}: {answer.error_message}"
        self.unanswered.popleft()
        self._ledger.note(batch.where, answer.base_offset, batch.payloads)


class IdempotentWriter(Writer):
    """acks=all with sequences: after a crash the unanswered batches are sent again, and count once."""

    acks = -1

    def __init__(self, name: str, ledger: Ledger, partitions: Sequence[TopicPartition], seed: int) -> None:
        super().__init__(name, ledger, partitions, seed)
        self._producer_id = -1
        self._sequences = dict.fromkeys(partitions, 0)

    def begin(self, client: WireClient) -> None:
        if self._producer_id < 0:
            self._producer_id = take_producer_id(client, self._ledger)
        for batch in self.unanswered:
            self.transmit(client, batch)

    def prepare(self, batch: Batch) -> Batch:
        batch.sequence = self._sequences[batch.where]
        self._sequences[batch.where] += len(batch.payloads)
        return batch

    def producer_fields(self, batch: Batch) -> dict[str, Any]:
        return {"producer_id": self._producer_id, "producer_epoch": 0, "base_sequence": batch.sequence}


def take_producer_id(client: WireClient, ledger: Ledger) -> int:
    """A new producer id; a disk that cannot record one is a broken connection."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    answer = client.call(request)
    if answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR:
        raise ConnectionClosedError("no producer id can be recorded")
    assert answer.error_code == 0, ErrorCode(answer.error_code).name
    ledger.note_producer_id(answer.producer_id)
    producer_id: int = answer.producer_id
    return producer_id


class Load:
    """Several things that run beside each other for one life of a broker."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._count_at_start = ledger.count

    def await_acknowledged(self, count: int) -> None:
        """Wait until so many more records were acknowledged."""
        wait_until(lambda: self._ledger.count >= self._count_at_start + count, "acknowledgements")


@contextmanager
def running(
    broker: Broker, ledger: Ledger, lives: Sequence[Callable[[Broker, Event], None]]
) -> Iterator[Load]:
    """Run each of `lives` in a thread for the length of the block; what fails in one fails the test."""
    stop = Event()
    failures: list[BaseException] = []

    def guarded(live: Callable[[Broker, Event], None]) -> None:
        try:
            live(broker, stop)
        except BaseException as error:
            failures.append(error)

    threads = [Thread(target=guarded, args=(live,), daemon=True) for live in lives]
    for thread in threads:
        thread.start()
    try:
        yield Load(ledger)
    finally:
        stop.set()
        for thread in threads:
            thread.join(WAIT_SECONDS)
        if failures:
            raise failures[0]
    assert not any(thread.is_alive() for thread in threads), "a writer hangs"


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.002)
