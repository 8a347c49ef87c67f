"""Transactions with stock Python clients: money moves whole or not at all, messages exactly once, zombies do
not come back.
"""

import random
from collections import Counter
from collections.abc import Iterator
from threading import Thread

import pytest

from tests.interop.test_group_side_by_side import streaming
from tests.support.group_views import fill, until
from tests.support.target import Target, unique_name
from tests.support.transaction_clients import (
    PRODUCERS,
    WORKERS,
    ConfluentWorker,
    FencedError,
    TransactionalProducer,
    Worker,
    read_committed,
)

PARTITIONS = 4
TELLERS = 3
TRANSFERS = 30
MESSAGES = 300


class Teller:
    """Moves money between accounts, one per partition; every third is aborted, halfway or at its end."""

    def __init__(self, producer: TransactionalProducer, topic: str, name: str) -> None:
        self._producer = producer
        self._topic = topic
        self._name = name
        self.committed: list[str] = []
        self.failure: BaseException | None = None
        self.thread = Thread(target=self._guarded_work, daemon=True)
        self.thread.start()

    def _guarded_work(self) -> None:
        try:
            self._work()
        except BaseException as error:
            self.failure = error
        finally:
            self._producer.close()

    def _work(self) -> None:
        dice = random.Random(self._name)
        for number in range(TRANSFERS):
            transfer = f"{self._name}.{number}"
            giver, taker = dice.sample(range(PARTITIONS), 2)
            amount = dice.randint(1, 100)
            self._producer.begin()
            self._producer.send(self._topic, giver, f"{transfer} {-amount}".encode())
            if number % 6 == 2:
                self._producer.abort()
                continue
            self._producer.send(self._topic, taker, f"{transfer} {amount}".encode())
            if number % 6 == 5:
                self._producer.abort()
                continue
            self._producer.commit()
            self.committed.append(transfer)


@pytest.mark.parametrize("client", PRODUCERS)
def test_bank_transfers(target: Target, client: str) -> None:
    topic = target.create_topic(partitions=PARTITIONS)
    tellers = [
        Teller(PRODUCERS[client](target, unique_name("teller")), topic, f"t{number}")
        for number in range(TELLERS)
    ]
    # What a reader sees on the way is never undone later.
    seen = [read_committed(target, topic, PARTITIONS) for _ in range(3)]
    for teller in tellers:
        teller.thread.join(60)
        assert not teller.thread.is_alive()
        assert teller.failure is None, teller.failure
    final = read_committed(target, topic, PARTITIONS)
    for earlier in seen:
        assert all(part == final[number][: len(part)] for number, part in enumerate(earlier))
    entries = [value.decode().split() for part in final for value in part]
    expected = [transfer for teller in tellers for transfer in teller.committed]
    assert Counter(transfer for transfer, _ in entries) == Counter(dict.fromkeys(expected, 2))
    assert sum(int(amount) for _, amount in entries) == 0
    everything = read_committed(target, topic, PARTITIONS, dirty=True)
    aborted = TELLERS * TRANSFERS - len(expected)
    assert sum(map(len, everything)) == 2 * len(expected) + aborted + aborted // 2


@pytest.mark.parametrize("client", PRODUCERS)
def test_the_older_of_two_instances_is_fenced(target: Target, client: str) -> None:
    topic, name = target.create_topic(), unique_name("instance")
    zombie = PRODUCERS[client](target, name)
    zombie.begin()
    zombie.send(topic, 0, b"from the grave")
    heir = PRODUCERS[client](target, name)
    with pytest.raises(FencedError):
        zombie.commit()
    heir.begin()
    heir.send(topic, 0, b"alive")
    heir.commit()
    assert read_committed(target, topic, 1) == [[b"alive"]]
    assert read_committed(target, topic, 1, dirty=True) == [[b"from the grave", b"alive"]]
    zombie.close()
    heir.close()


@pytest.mark.parametrize("client", PRODUCERS)
def test_the_writes_of_a_fenced_instance_are_refused(target: Target, client: str) -> None:
    topic, name = target.create_topic(), unique_name("instance")
    zombie = PRODUCERS[client](target, name)
    zombie.begin()
    zombie.send(topic, 0, b"in time")
    zombie.commit()
    heir = PRODUCERS[client](target, name)
    heir.begin()
    heir.send(topic, 0, b"alive")
    with pytest.raises(FencedError):
        _write_one(zombie, topic)
    heir.commit()
    assert read_committed(target, topic, 1) == [[b"in time", b"alive"]]
    zombie.close()
    heir.close()


def _write_one(producer: TransactionalProducer, topic: str) -> None:
    """Where a client learns that it is fenced is its own affair."""
    producer.begin()
    producer.send(topic, 0, b"from the grave")
    producer.commit()


@pytest.fixture
def workers() -> Iterator[list[Worker]]:
    workers: list[Worker] = []
    yield workers
    for worker in workers:
        worker.ask_to_end()
    for worker in workers:
        worker.close()


def await_commits(worker: Worker, count: int) -> None:
    def has_committed() -> bool:
        worker.check()
        return worker.commits >= count

    until(has_committed, lambda: f"{count} commits, there are {worker.commits}")


def await_moved(target: Target, sink: str, workers: list[Worker], count: int) -> None:
    """Wait until so many messages are moved, and check that each is there once, in order."""

    def moved() -> list[list[bytes]]:
        for worker in workers:
            worker.check()
        return read_committed(target, sink, PARTITIONS)

    until(lambda: sum(map(len, moved())) >= count, lambda: f"{sum(map(len, moved()))} of {count} messages")
    expected = [[b"%d" % number for number in range(part, count, PARTITIONS)] for part in range(PARTITIONS)]
    assert moved() == expected
    everything = read_committed(target, sink, PARTITIONS, dirty=True)
    assert sum(map(len, everything)) > count, "no transaction was aborted"


@pytest.mark.parametrize("client", WORKERS)
def test_messages_are_moved_exactly_once(target: Target, workers: list[Worker], client: str) -> None:
    """One worker dies within a transaction; its heir, with its transactional id, begins where it was."""
    source, sink = (target.create_topic(partitions=PARTITIONS) for _ in range(2))
    group = unique_name("group")
    fill(target, source, PARTITIONS, MESSAGES)
    workers.append(WORKERS[client](target, source, sink, group, "w"))
    await_commits(workers[0], 6)
    workers[0].die()
    workers.append(WORKERS[client](target, source, sink, group, "w"))
    await_moved(target, sink, workers, MESSAGES)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_workers_share_a_group(target: Target, workers: list[Worker], protocol: str) -> None:
    """Partitions move between workers while transactions are open: nothing is lost, nothing doubled."""
    source, sink = (target.create_topic(partitions=PARTITIONS) for _ in range(2))
    group = unique_name("group")

    def start(name: str) -> None:
        workers.append(ConfluentWorker(target, source, sink, group, name, protocol))

    with streaming(target, source, PARTITIONS) as stream:
        start("w0")
        await_commits(workers[0], 3)
        start("w1")
        await_commits(workers[1], 3)
        workers[0].die()
        start("w0")
        await_commits(workers[2], 3)
    await_moved(target, sink, workers, stream.count)
