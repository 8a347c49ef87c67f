"""Stock transactional producers behind one interface, and a consume-transform-produce worker for each client.

A worker moves every message of one topic to another, exactly once: what it writes and the offsets that it
read up to are one transaction. It aborts some of them on purpose, and begins those again.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from threading import Event, Thread
from typing import Any

import aiokafka
import kafka
from aiokafka.errors import KafkaError as AioKafkaError
from aiokafka.errors import ProducerFenced
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as ConfluentTopicPartition

from tests.support.target import Target

_TIMEOUT_SECONDS = 30
_POLL_SECONDS = 0.05
_JOIN_SECONDS = 60
_BATCH_MAX = 20
_ABORT_EVERY = 4
_NOTHING_READ_MAX = 100


class FencedError(Exception):
    """Another producer has taken over this one's transactional id."""


class TransactionalProducer(ABC):
    """One producer. Every call waits for its end."""

    @abstractmethod
    def begin(self) -> None: ...

    @abstractmethod
    def send(self, topic: str, partition: int, value: bytes) -> None:
        """Returns when the broker has it."""

    @abstractmethod
    def commit(self) -> None: ...

    @abstractmethod
    def abort(self) -> None: ...

    @abstractmethod
    def close(self) -> None:
        """Gives the client's resources back, whatever state it is in."""


class ConfluentProducer(TransactionalProducer):
    """librdkafka through confluent-kafka."""

    def __init__(self, target: Target, transactional_id: str) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": target.bootstrap_servers,
                "transactional.id": transactional_id,
                "linger.ms": 0,
                "error_cb": lambda error: None,  # calls and delivery reports tell it too
            }
        )
        self._call(self._producer.init_transactions, _TIMEOUT_SECONDS)

    def begin(self) -> None:
        self._call(self._producer.begin_transaction)

    def send(self, topic: str, partition: int, value: bytes) -> None:
        errors: list[Any] = []
        self._producer.produce(
            topic, value, partition=partition, on_delivery=lambda error, _: errors.append(error)
        )
        self._call(self._producer.flush, _TIMEOUT_SECONDS)
        assert errors, "no delivery report"
        if errors[0] is not None:
            raise FencedError(errors[0]) if _is_fenced(errors[0]) else KafkaException(errors[0])

    def commit(self) -> None:
        self._call(self._producer.commit_transaction, _TIMEOUT_SECONDS)

    def abort(self) -> None:
        self._call(self._producer.abort_transaction, _TIMEOUT_SECONDS)

    def close(self) -> None:
        del self._producer

    @staticmethod
    def _call(method: Callable[..., Any], *arguments: Any) -> None:
        try:
            method(*arguments)
        except (KafkaException, SystemError) as error:
            # A fatal error that comes up while a delivery report is given is raised in the midst of that.
            cause = error.__cause__ if isinstance(error, SystemError) else error
            if isinstance(cause, KafkaException) and _is_fenced(cause.args[0]):
                raise FencedError(cause.args[0]) from None
            raise


def _is_fenced(error: Any) -> bool:
    return error.name() in ("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", "_PURGE_QUEUE")


class AioProducer(TransactionalProducer):
    """aiokafka; its loop runs only while a call lasts."""

    def __init__(self, target: Target, transactional_id: str) -> None:
        self._runner = asyncio.Runner()
        self._producer: Any = None
        self._run(self._open(target, transactional_id))

    async def _open(self, target: Target, transactional_id: str) -> None:
        self._producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=target.bootstrap_servers, transactional_id=transactional_id
        )
        await self._producer.start()

    def begin(self) -> None:
        self._run(self._producer.begin_transaction())

    def send(self, topic: str, partition: int, value: bytes) -> None:
        self._run(self._producer.send_and_wait(topic, value, partition=partition))

    def commit(self) -> None:
        self._run(self._producer.commit_transaction())

    def abort(self) -> None:
        self._run(self._producer.abort_transaction())

    def close(self) -> None:
        try:
            self._run(self._producer.stop())
        except FencedError:
            pass
        self._runner.close()

    def _run(self, work: Any) -> None:
        async def within_time() -> None:
            await asyncio.wait_for(work, _TIMEOUT_SECONDS)

        try:
            self._runner.run(within_time())
        except ProducerFenced as error:
            raise FencedError(error) from None


class KafkaPythonProducer(TransactionalProducer):
    """kafka-python."""

    def __init__(self, target: Target, transactional_id: str) -> None:
        self._producer = kafka.KafkaProducer(
            bootstrap_servers=target.bootstrap_servers, transactional_id=transactional_id
        )
        self._call(self._producer.init_transactions)

    def begin(self) -> None:
        self._call(self._producer.begin_transaction)

    def send(self, topic: str, partition: int, value: bytes) -> None:
        self._call(
            lambda: self._producer.send(topic, value, partition=partition).get(timeout=_TIMEOUT_SECONDS)
        )

    def commit(self) -> None:
        self._call(self._producer.commit_transaction)

    def abort(self) -> None:
        self._call(self._producer.abort_transaction)

    def close(self) -> None:
        self._producer.close(timeout=0)

    @staticmethod
    def _call(method: Callable[[], Any]) -> None:
        try:
            method()
        except (kafka.errors.ProducerFencedError, kafka.errors.InvalidProducerEpochError) as error:
            raise FencedError(error) from None


PRODUCERS: dict[str, Callable[[Target, str], TransactionalProducer]] = {
    "confluent-kafka": ConfluentProducer,
    "aiokafka": AioProducer,
    "kafka-python": KafkaPythonProducer,
}


class Worker(ABC):
    """Moves messages in a thread of its own until it is told to stop, or to die within a transaction."""

    def __init__(
        self, target: Target, source: str, sink: str, group: str, name: str, protocol: str = "classic"
    ) -> None:
        self.target = target
        self.source = source
        self.sink = sink
        self.group = group
        self.transactional_id = f"{group}-{name}"
        self.protocol = protocol
        self.commits = 0
        self.failure: BaseException | None = None
        self._transactions = 0
        self._stop = Event()
        self._die = Event()
        self.is_dead = Event()
        self._thread = Thread(target=self._guarded_life, name=name, daemon=True)
        self._thread.start()

    def die(self) -> None:
        """Return when it has left its transaction open and its group unattended."""
        self._die.set()
        assert self.is_dead.wait(_JOIN_SECONDS), "the worker does not die"
        self.check()

    def ask_to_end(self) -> None:
        self._stop.set()

    def close(self) -> None:
        self.ask_to_end()
        self._thread.join(_JOIN_SECONDS)
        assert not self._thread.is_alive(), "the worker does not end"
        self.check()

    def check(self) -> None:
        if self.failure is not None:
            raise AssertionError(f"worker {self._thread.name} failed") from self.failure

    def _guarded_life(self) -> None:
        try:
            self.live()
        except BaseException as error:
            self.failure = error
        finally:
            self.is_dead.set()

    @abstractmethod
    def live(self) -> None: ...

    @property
    def _is_to_abort(self) -> bool:
        self._transactions += 1
        return self._transactions % _ABORT_EVERY == 0


class ConfluentWorker(Worker):
    """librdkafka through confluent-kafka."""

    def live(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self.target.bootstrap_servers,
                "group.id": self.group,
                "group.protocol": self.protocol,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 50,
            }
        )
        producer = Producer(
            {
                "bootstrap.servers": self.target.bootstrap_servers,
                "transactional.id": self.transactional_id,
                "linger.ms": 0,
            }
        )
        producer.init_transactions(_TIMEOUT_SECONDS)
        consumer.subscribe([self.source])
        try:
            while not self._stop.is_set() and not self.is_dead.is_set():
                # Taken first: a rebalance in between must not let what was read before it be committed.
                group = consumer.consumer_group_metadata()
                messages = consumer.consume(_BATCH_MAX, _POLL_SECONDS)
                if messages and not self._move(group, producer, messages):
                    self._rewind(consumer)
        finally:
            consumer.close()

    def _move(self, group: Any, producer: Producer, messages: Sequence[Any]) -> bool:
        """Whether the messages are moved; if not, they are to be read again."""
        producer.begin_transaction()
        try:
            ends: dict[int, int] = {}
            for message in messages:
                assert message.error() is None, message.error()
                producer.produce(self.sink, message.value(), partition=message.partition())
                ends[message.partition()] = message.offset() + 1
            offsets = [ConfluentTopicPartition(self.source, *end) for end in ends.items()]
            producer.send_offsets_to_transaction(offsets, group, _TIMEOUT_SECONDS)
            if self._die.is_set():
                producer.flush(_TIMEOUT_SECONDS)
                self.is_dead.set()
                return True
            if self._is_to_abort:
                producer.abort_transaction(_TIMEOUT_SECONDS)
                return False
            producer.commit_transaction(_TIMEOUT_SECONDS)
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            producer.abort_transaction(_TIMEOUT_SECONDS)
            return False
        self.commits += 1
        return True

    def _rewind(self, consumer: Consumer) -> None:
        for place in consumer.committed(consumer.assignment(), _TIMEOUT_SECONDS):
            offset = place.offset if place.offset >= 0 else OFFSET_BEGINNING
            try:
                consumer.seek(ConfluentTopicPartition(place.topic, place.partition, offset))
            except KafkaException:
                pass  # taken away in the meantime; whoever has it now begins at what is committed


class AioWorker(Worker):
    """aiokafka, in an event loop of its own."""

    def live(self) -> None:
        asyncio.run(self._live())

    async def _live(self) -> None:
        consumer = aiokafka.AIOKafkaConsumer(
            self.source,
            bootstrap_servers=self.target.bootstrap_servers,
            group_id=self.group,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=100,
            fetch_max_wait_ms=50,
        )
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=self.target.bootstrap_servers, transactional_id=self.transactional_id
        )
        await producer.start()
        await consumer.start()
        try:
            while not self._stop.is_set() and not self.is_dead.is_set():
                found = await consumer.getmany(timeout_ms=int(_POLL_SECONDS * 1000), max_records=_BATCH_MAX)
                if found and not await self._move(producer, found):
                    await self._rewind(consumer)
        finally:
            await consumer.stop()
            if not self.is_dead.is_set():
                await producer.stop()

    async def _move(self, producer: Any, found: dict[Any, list[Any]]) -> bool:
        await producer.begin_transaction()
        try:
            for place, records in found.items():
                for record in records:
                    await producer.send(self.sink, record.value, partition=place.partition)
            ends = {place: records[-1].offset + 1 for place, records in found.items()}
            await producer.send_offsets_to_transaction(ends, self.group)
            if self._die.is_set():
                await producer.flush()
                self.is_dead.set()
                return True
            if self._is_to_abort:
                await producer.abort_transaction()
                return False
            await producer.commit_transaction()
        except ProducerFenced:
            raise
        except AioKafkaError:
            await producer.abort_transaction()
            return False
        self.commits += 1
        return True

    async def _rewind(self, consumer: Any) -> None:
        for place in consumer.assignment():
            committed = await consumer.committed(place)
            if place in consumer.assignment():
                consumer.seek(place, committed or 0)


WORKERS: dict[str, type[Worker]] = {"confluent-kafka": ConfluentWorker, "aiokafka": AioWorker}


def read_committed(target: Target, topic: str, partitions: int, *, dirty: bool = False) -> list[list[bytes]]:
    """The values of each partition that a reader of committed messages gets, or with `dirty` all of them."""
    consumer = Consumer(
        {
            "bootstrap.servers": target.bootstrap_servers,
            "group.id": "unused",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_uncommitted" if dirty else "read_committed",
            "fetch.wait.max.ms": 50,
        }
    )
    values: list[list[bytes]] = [[] for _ in range(partitions)]
    at_end: set[Any] = set()
    silence = 0
    try:
        consumer.assign([ConfluentTopicPartition(topic, number, 0) for number in range(partitions)])
        while len(at_end) < partitions:
            message = consumer.poll(0.1)
            if message is None:
                silence += 1
                assert silence < _NOTHING_READ_MAX, f"only the partitions {at_end} come to an end"
            elif (error := message.error()) is not None:
                assert error.name() == "_PARTITION_EOF", error
                at_end.add(message.partition())
            else:
                values[message.partition() or 0].append(message.value() or b"")
    finally:
        consumer.close()
    return values
