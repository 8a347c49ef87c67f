"""A whole run: clients, an administrator and a killer, then everything is read once more and written down."""

import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from threading import Event, Thread

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as ConfluentTopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from mainstem.protocol.resources import TopicPartition
from tests.faults.history import Kind, Operation, Outcome, Poll, Progress, Recorder
from tests.faults.transaction_brokers import Killable
from tests.faults.transaction_client import Client, Topics, now
from tests.support.group_views import until
from tests.support.target import stable_ends

CLIENTS = 8
_TOPICS = 5
_LASTING_TOPICS = 2
PARTITIONS = 2
_PARTITIONS_MAX = 5
# What a broker is given for a run.
SETTINGS = {
    "num.partitions": str(PARTITIONS),
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}
_REQUEST_SECONDS = 30
_END_SECONDS_MAX = 120  # for clients to end what they began
Ends = dict[TopicPartition, int]


@dataclass
class Run:
    """What all its threads share."""

    broker: Killable
    topics: Topics
    recorder: Recorder
    clients: list[Client]
    random: Random

    def await_operations(self, count: int) -> None:
        """Wait until so many more went well."""
        goal = self.recorder.count + count
        until(lambda: self.recorder.count >= goal, f"{count} operations to go well")


class Administrator:
    """Makes topics larger and deletes them, while they are in use."""

    def __init__(self, run: Run, seed: int) -> None:
        self._run = run
        self._random = Random(seed)
        self._admin = AdminClient({"bootstrap.servers": run.broker.bootstrap_servers, "log_level": 0})

    def live(self, stop: Event) -> None:
        goal = 0
        while not stop.wait(0.05):
            if self._run.recorder.count >= goal:
                goal = self._run.recorder.count + self._random.randint(30, 80)
                self._random.choice([self._repartition, self._delete])()

    def _repartition(self) -> None:
        topic = self._random.choice(self._run.topics.names())
        count = self._run.topics.partitions(topic) + 1
        if count <= _PARTITIONS_MAX:
            began = now()
            future = self._admin.create_partitions([NewPartitions(topic, count)])[topic]
            if self._note(Kind.REPARTITION, topic, began, lambda: future.result(_REQUEST_SECONDS)):
                self._run.topics.grown(topic, count)

    def _delete(self) -> None:
        topic = self._random.choice(self._run.topics.passing())
        self._run.topics.retire(topic)
        began = now()
        future = self._admin.delete_topics([topic])[topic]
        self._note(Kind.DELETE, topic, began, lambda: future.result(_REQUEST_SECONDS))

    def _note(self, kind: Kind, topic: str, began: int, answer: Callable[[], object]) -> bool:
        operation = Operation("administrator", kind, began, 0, Outcome.OK, topic=topic)
        try:
            answer()
        except KafkaException as error:
            operation.outcome = Outcome.UNKNOWN
            operation.note = str(error)
        operation.ended = now()
        self._run.recorder.note(operation)
        return operation.outcome == Outcome.OK


def run(broker: Killable, history: Path, kills: int, seed: int) -> None:
    """Live through the kills, come to rest, and leave the history in a file."""
    recorder = Recorder(history)
    topics = Topics(_TOPICS, _LASTING_TOPICS, PARTITIONS)
    clients = [
        Client(f"client-{number}", broker.bootstrap_servers, topics, recorder, seed * 100 + number)
        for number in range(CLIENTS)
    ]
    this = Run(broker, topics, recorder, clients, Random(seed))
    lives = [*(client.live for client in clients), Administrator(this, seed).live]
    try:
        _while_living(lives, lambda: _kill_often(this, kills))
        recorder.note(_read_everything(this))
    finally:
        recorder.close()


def _while_living(lives: Sequence[Callable[[Event], None]], harm: Callable[[], None]) -> None:
    """Each of `lives` has a thread; what fails in one fails the run."""
    stop = Event()
    failures: list[BaseException] = []

    def guarded(live: Callable[[Event], None]) -> None:
        try:
            live(stop)
        except BaseException as error:
            failures.append(error)

    threads = [Thread(target=guarded, args=(live,), daemon=True) for live in lives]
    for thread in threads:
        thread.start()
    try:
        harm()
    finally:
        stop.set()
        deadline = time.monotonic() + _END_SECONDS_MAX
        for thread in threads:
            thread.join(max(0, deadline - time.monotonic()))
        if failures:
            raise failures[0]
    hanging = [thread.ident for thread in threads if thread.is_alive()]
    assert not hanging, "a client hangs\n" + "\n".join(
        "".join(traceback.format_stack(frame))
        for ident, frame in sys._current_frames().items()
        if ident in hanging
    )


def _kill_often(this: Run, kills: int) -> None:
    for _ in range(kills):
        this.await_operations(this.random.randint(20, 80))
        operation = Operation("killer", Kind.KILL, now(), 0, Outcome.UNKNOWN)
        this.broker.kill()
        this.broker.start()
        operation.ended = now()
        this.recorder.note(operation)
    this.await_operations(100)


def _read_everything(this: Run) -> Operation:
    """Every transaction is decided, so that the end of every partition is stable: this is what is there."""
    servers = {"bootstrap.servers": this.broker.bootstrap_servers}
    ends, high_watermarks = _ends(AdminClient(dict(servers)), this.topics.names())
    operation = Operation("reader", Kind.FINAL, now(), 0, Outcome.OK, None, [], [], [])
    operation.polls = _read_to_the_end(servers, ends)
    for poll in operation.polls:
        poll.high_watermark = high_watermarks[poll.where]
    for client in this.clients:
        wanted = [where for where in sorted(client.progressed) if where in ends]
        operation.progress += _group_progress(servers, client.group, wanted)
    operation.ended = now()
    return operation


def _ends(admin: AdminClient, names: list[str]) -> tuple[Ends, Ends]:
    """The last stable offsets and the high watermarks of the topics that came to be. They are the same when
    no transaction is open.
    """
    known = admin.list_topics(timeout=_REQUEST_SECONDS).topics
    wanted = [
        ConfluentTopicPartition(name, number)
        for name in names
        if name in known
        for number in known[name].partitions
    ]
    return stable_ends(admin, wanted)


def _read_to_the_end(servers: dict[str, str], ends: Ends) -> list[Poll]:
    settings = {
        "group.id": "nobody",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "check.crcs": True,
    }
    consumer = Consumer({**servers, **settings})
    polls = {where: Poll(*where, 0, end, []) for where, end in ends.items()}
    try:
        consumer.assign([ConfluentTopicPartition(*where, 0) for where in ends])
        unread = set(ends)
        while unread:
            message = consumer.poll(_REQUEST_SECONDS)
            assert message is not None, f"nothing comes from {unread}"
            topic, partition, offset = message.topic(), message.partition(), message.offset()
            assert topic is not None
            assert partition is not None
            assert offset is not None
            error = message.error()
            if error is None:
                polls[topic, partition].records.append((offset, (message.value() or b"").decode()))
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                unread.discard((topic, partition))
    finally:
        consumer.close()
    return list(polls.values())


def _group_progress(servers: dict[str, str], group: str, wanted: list[TopicPartition]) -> list[Progress]:
    if not wanted:
        return []
    settings = {"group.id": group, "enable.auto.commit": False, "isolation.level": "read_committed"}
    consumer = Consumer({**servers, **settings})
    try:
        found = consumer.committed([ConfluentTopicPartition(*where) for where in wanted], _REQUEST_SECONDS)
    finally:
        consumer.close()
    steps = []
    for where in found:
        assert where.error is None, where
        position = max(0, where.offset)
        steps.append(Progress(group, where.topic, where.partition, position, position))
    return steps
