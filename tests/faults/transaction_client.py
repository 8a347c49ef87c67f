"""A client that produces, in transactions and plainly, and polls, at random, and notes all of it.

It knows what it does not know: an answer that never came makes an outcome unknown. It drops a producer now
and then in the middle of a transaction and lets it go on as a zombie, which must not get anywhere.
"""

import time
from collections.abc import Callable
from random import Random
from threading import Event, Lock, Thread
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as ConfluentTopicPartition

from mainstem.protocol.resources import TopicPartition
from tests.faults.history import Kind, Operation, Outcome, Poll, Progress, Recorder, Write

TRANSACTION_TIMEOUT_MS = 15_000
_CALL_SECONDS = 15.0
_CALLS_MAX = 4
_STUCK_SECONDS = _CALL_SECONDS + 10
_REST_SECONDS = 1.0
_POLL_SECONDS = 0.2
# A broker that is back is met at once, and a topic that is new or larger is noticed soon.
_IMPATIENT = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 100,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 100,
    "topic.metadata.refresh.interval.ms": 500,
    "topic.metadata.refresh.fast.interval.ms": 50,
    "topic.metadata.propagation.max.ms": 1000,
    "log_level": 0,
}


def now() -> int:
    return time.monotonic_ns()


class Topics:
    """The topics that clients write to. None is created by hand: whoever writes first creates it. Some last
    from the beginning of a run to its end.
    """

    def __init__(self, count: int, lasting: int, partitions: int) -> None:
        self._lock = Lock()
        self._lasting = {f"topic-{number}" for number in range(lasting)}
        self._initial_partitions = partitions
        self._made = 0
        self._partitions: dict[str, int] = {}
        self._ends: dict[TopicPartition, int] = {}
        for _ in range(count):
            self._add()

    def _add(self) -> None:
        self._partitions[f"topic-{self._made}"] = self._initial_partitions
        self._made += 1

    def names(self) -> list[str]:
        with self._lock:
            return list(self._partitions)

    def passing(self) -> list[str]:
        """Those that may be deleted."""
        return [name for name in self.names() if name not in self._lasting]

    def partitions(self, name: str) -> int:
        with self._lock:
            return self._partitions.get(name, 0)

    def choose(self, random: Random) -> TopicPartition:
        with self._lock:
            name = random.choice(list(self._partitions))
            return name, random.randrange(self._partitions[name])

    def retire(self, name: str) -> None:
        """Nobody shall choose it any more; a new one takes its place."""
        with self._lock:
            del self._partitions[name]
            self._add()

    def grown(self, name: str, partitions: int) -> None:
        with self._lock:
            if name in self._partitions:
                self._partitions[name] = partitions

    def reached(self, where: TopicPartition, end: int) -> None:
        with self._lock:
            self._ends[where] = max(end, self._ends.get(where, 0))

    def end(self, where: TopicPartition) -> int:
        """As far as somebody has come."""
        with self._lock:
            return self._ends.get(where, 0)


def _in_time(call: Callable[[], None]) -> None:
    """librdkafka lets go of a broker that metadata does not name, as one that is fenced, and may then wait
    for ever, whatever time it was given, for a group's coordinator to be reached through it. Such a producer
    is given up, with its thread; the next one fences it.
    """
    outcome: list[BaseException | None] = []

    def guarded() -> None:
        try:
            call()
        except BaseException as error:
            outcome.append(error)
        else:
            outcome.append(None)

    thread = Thread(target=guarded, daemon=True)
    thread.start()
    thread.join(_STUCK_SECONDS)
    if not outcome:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "stuck in the client"))
    if outcome[0] is not None:
        raise outcome[0]


class Client:
    """One of several. Its transactional id is its name, its group is its own."""

    def __init__(
        self, name: str, bootstrap_servers: str, topics: Topics, recorder: Recorder, seed: int
    ) -> None:
        self.name = name
        self.group = f"group-of-{name}"
        self.progressed: set[TopicPartition] = set()
        self._topics = topics
        self._recorder = recorder
        self._random = Random(seed)
        self._written = 0
        self._shared = {"bootstrap.servers": bootstrap_servers, "client.id": name, **_IMPATIENT}
        # Else librdkafka loses its transaction coordinator for good when all brokers are gone for a moment.
        self._shared["metadata.recovery.strategy"] = "none"
        self._transactional: Producer | None = None
        self._plain = Producer({**self._shared, "enable.idempotence": True, "message.timeout.ms": 20_000})
        self._consumer = Consumer(
            {
                **self._shared,
                "group.id": self.group,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 100,
            }
        )
        self._positions: dict[TopicPartition, int] = {}

    def live(self, stop: Event) -> None:
        acts = [self._transact, self._transact, self._send, self._poll]
        while not stop.is_set():
            self._random.choice(acts)()
        self._fence()
        self._plain.flush(_CALL_SECONDS)
        self._consumer.close()

    # ---- transactions

    def _fence(self) -> bool:
        """Make sure that there is a producer and that none of its transactions before is undecided."""
        if self._transactional is None:
            producer = Producer(
                {
                    **self._shared,
                    "transactional.id": self.name,
                    "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
                }
            )
            try:
                self._insist(producer.init_transactions)
            except KafkaException:
                return False
            self._transactional = producer
        return True

    def _insist(self, call: Callable[..., object], *arguments: Any) -> None:
        """Some calls that ran out of time may and must be made again."""
        for attempt in range(_CALLS_MAX):
            try:
                call(*arguments, _CALL_SECONDS)
            except KafkaException as error:
                if attempt + 1 == _CALLS_MAX or not error.args[0].retriable():
                    raise
            else:
                return

    def _transact(self) -> None:
        if not self._fence():
            return
        operation = self._new(Kind.TRANSACTION)
        if self._random.random() < 0.5:
            self._take_input(operation)
        producer = self._transactional
        assert producer is not None
        chance = self._random.random()
        try:
            producer.begin_transaction()
            self._write(producer, operation, self._random.randint(1, 5))
            self._send_offsets(producer, operation)
            if chance < 0.05:
                self._become_a_zombie(producer, operation)
            elif chance < 0.25:
                operation.outcome = Outcome.FAILED
                self._abort(producer, _CALL_SECONDS)
            else:
                operation.decided_at = now()
                if chance < 0.35:  # one that does not wait for the answer, and begins anew
                    producer.commit_transaction(self._random.uniform(0.001, 0.02))
                else:
                    self._insist(producer.commit_transaction)
                operation.outcome = Outcome.OK
        except KafkaException as error:
            self._give_up(producer, operation, error.args[0])
        self._close(operation)

    def _send_offsets(self, producer: Producer, operation: Operation) -> None:
        offsets = [ConfluentTopicPartition(it.topic, it.partition, it.after) for it in operation.progress]
        if offsets:
            metadata = self._consumer.consumer_group_metadata()
            _in_time(lambda: self._insist(producer.send_offsets_to_transaction, offsets, metadata))

    def _give_up(self, producer: Producer, operation: Operation, error: KafkaError) -> None:
        """Abort if the client is allowed to, otherwise begin anew; nobody asked to commit, nothing is."""
        operation.note = str(error)
        operation.outcome = Outcome.UNKNOWN if operation.decided_at is not None else Outcome.FAILED
        if error.txn_requires_abort():
            try:
                if self._abort(producer, _REST_SECONDS):
                    operation.outcome = Outcome.FAILED
                    return
            except KafkaException as second:
                operation.note += f"; {second}"
        self._transactional = None

    def _abort(self, producer: Producer, seconds: float) -> bool:
        """Abort, unless records are left that were not acknowledged in this time: then the next producer does
        it when it takes over.

        librdkafka gives the sequence numbers of records that it drops from its queue to the next ones. A
        record that waits there to be sent again may be in the log already, when a kill took its answer away:
        the broker then takes the next one for its repetition, acknowledges it there and does not write it.
        """
        if producer.flush(seconds):
            self._transactional = None
            return False
        self._insist(producer.abort_transaction)
        return True

    def _become_a_zombie(self, producer: Producer, operation: Operation) -> None:
        """Another with the same id comes up, and only then the older one tries to commit."""
        operation.outcome = Outcome.FAILED
        producer.flush(_CALL_SECONDS)
        self._transactional = None
        if not self._fence() or not any(write.acknowledged for write in operation.writes):
            return
        try:
            producer.commit_transaction(_CALL_SECONDS)
        except KafkaException as error:
            operation.note = f"a zombie: {error}"
        else:
            raise AssertionError(f"a zombie of {self.name} has committed {operation}")

    def _take_input(self, operation: Operation) -> None:
        """Read on where the group stands; what is read belongs to the transaction."""
        where = self._topics.choose(self._random)
        try:
            (found,) = self._consumer.committed([ConfluentTopicPartition(*where)], _CALL_SECONDS)
        except KafkaException:
            return
        if found.error is not None:
            return
        position = max(0, found.offset)
        self._assign({where: position})
        for poll in self._consume(5):
            operation.polls.append(poll)
            operation.progress.append(Progress(self.group, *where, position, poll.end))
            self.progressed.add(where)

    # ---- plain records

    def _send(self) -> None:
        operation = self._new(Kind.SEND)
        self._write(self._plain, operation, self._random.randint(1, 6))
        self._plain.flush(30)
        if all(write.acknowledged is not None for write in operation.writes):
            operation.outcome = Outcome.OK
        self._close(operation)

    def _write(self, producer: Producer, operation: Operation, count: int) -> None:
        for _ in range(count):
            topic, partition = self._topics.choose(self._random)
            self._written += 1
            write = Write(topic, f"{self.name}.{self._written}", now(), partition)
            try:
                producer.produce(topic, write.value, partition=partition, on_delivery=self._delivery(write))
            except KafkaException:
                continue  # this client has not heard of that partition yet: nothing was sent
            operation.writes.append(write)
            if self._random.random() < 0.3:
                producer.poll(0.01)

    def _delivery(self, write: Write) -> Callable[[KafkaError | None, Message], None]:
        def note(error: KafkaError | None, message: Message) -> None:
            offset = message.offset()
            if error is None and offset is not None:
                write.offset = offset
                write.acknowledged = now()

        return note

    # ---- polls

    def _poll(self) -> None:
        if not self._positions or self._random.random() < 0.5:
            chosen = sorted({self._topics.choose(self._random) for _ in range(3)})
            self._assign({where: self._random.randint(0, self._topics.end(where)) for where in chosen})
        operation = self._new(Kind.POLL)
        operation.polls = self._consume(30)
        operation.outcome = Outcome.OK
        self._close(operation)

    def _assign(self, positions: dict[TopicPartition, int]) -> None:
        self._positions = positions
        self._consumer.assign([ConfluentTopicPartition(*where, at) for where, at in positions.items()])

    def _consume(self, count: int) -> list[Poll]:
        """What comes next from the assigned partitions."""
        found: dict[TopicPartition, list[tuple[int, str]]] = {}
        lost = False
        for message in self._consumer.consume(count, _POLL_SECONDS):
            if message.error() is not None:
                lost = True  # e.g. the topic is gone
                continue
            topic, partition, offset, value = (
                message.topic(),
                message.partition(),
                message.offset(),
                message.value(),
            )
            assert topic is not None
            assert partition is not None
            assert offset is not None
            assert value is not None
            found.setdefault((topic, partition), []).append((offset, value.decode()))
        polls = []
        for where, records in found.items():
            end = records[-1][0] + 1
            polls.append(Poll(*where, self._positions[where], end, records))
            self._positions[where] = end
            self._topics.reached(where, end)
        if lost:
            self._assign({})
        return polls

    # ---- notes

    def _new(self, kind: Kind) -> Operation:
        return Operation(self.name, kind, now(), 0, Outcome.UNKNOWN, None, [], [], [])

    def _close(self, operation: Operation) -> None:
        operation.ended = now()
        self._recorder.note(operation)
