"""The shell that runs coordinators, with a machine of its own: registers that can be set and read."""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from mainstem.broker.coordination.shell import CoordinatorShell
from mainstem.broker.logs.partition import Partition
from mainstem.coordinator.effects import Effects, Token
from mainstem.coordinator.timers import Timers
from mainstem.protocol.apis.k20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.records.batch import iter_headers
from mainstem.records.compression import Codec
from mainstem.testing.in_process import InProcessBroker
from tests.broker.conftest import MakeBroker
from tests.broker.harness import Client, create_topic, eventually


class Registers:
    """A machine whose state is one value per key; those set in a transaction wait for its end."""

    def __init__(self) -> None:
        self.effects = Effects()
        self.timers = Timers()
        self.values: dict[bytes, bytes] = {}
        self.waiting: dict[int, dict[bytes, bytes]] = {}
        self.unloaded: list[ErrorCode] = []
        self.was_loaded = False

    def replay(self, key: bytes, value: bytes | None) -> None:
        if value is None:
            self.values.pop(key, None)
        else:
            self.values[key] = value

    def replay_transactional(self, producer_id: int, key: bytes, value: bytes | None) -> None:
        assert value is not None
        self.waiting.setdefault(producer_id, {})[key] = value

    def transaction_ended(self, producer_id: int, commit: bool) -> None:
        waiting = self.waiting.pop(producer_id, {})
        if commit:
            self.values |= waiting

    def loaded(self, now_ms: int) -> None:
        self.was_loaded = True

    def unload(self, error: ErrorCode) -> None:
        self.unloaded.append(error)

    def topics_changed(self, now_ms: int) -> None: ...

    def put(self, token: Token, **values: str) -> None:
        """Set registers; the answer is what the first of them was before."""
        former = dict(self.values)
        self.effects.on_failure(lambda: setattr(self, "values", former))
        self.values = dict(self.values)
        for name, value in values.items():
            self.effects.write(name.encode(), value.encode())
            self.replay(name.encode(), value.encode())
        self.effects.reply(token, former.get(next(iter(values)).encode(), b"nothing"))

    def put_in_transaction(self, token: Token, producer_id: int, guard: Any = None, **values: str) -> None:
        """Set registers when the transaction of a producer is committed."""
        former = {known: dict(waiting) for known, waiting in self.waiting.items()}
        self.effects.on_failure(lambda: setattr(self, "waiting", former))
        records = [(name.encode(), value.encode()) for name, value in values.items()]
        for key, value in records:
            self.replay_transactional(producer_id, key, value)
        self.effects.write_transactional(producer_id, 0, [*records], guard)
        self.effects.reply(token, b"waits")


class Answer:
    """A token that remembers its answer."""

    def __init__(self) -> None:
        self.answer: Any = None

    def reply(self, response: Any) -> None:
        assert self.answer is None, "answered twice"
        self.answer = response

    def fail(self, error: ErrorCode) -> None:
        self.reply(error)


Event = Callable[[Registers, Token, int], None]


class Run:
    """A shell over the partitions of one topic of a broker."""

    def __init__(
        self, broker: InProcessBroker, topic: str, reply_timeout_ms: Callable[[], int] | None = None
    ) -> None:
        self.node = broker.node
        self.topic = topic
        self.shell = CoordinatorShell(
            broker.node.server,
            broker.node.replicas,
            topic,
            lambda _: Registers(),
            Codec.NONE,
            1 << 20,
            reply_timeout_ms,
        )
        self.shell.metadata_changed()

    @property
    def machine(self) -> Registers:
        return self.shell.machines()[0]

    def send(self, event: Event, partition: int = 0) -> Answer:
        answer = Answer()
        self.shell.submit(partition, answer, event)
        return answer

    def put(self, **values: str) -> Answer:
        return self.send(lambda machine, token, _: machine.put(token, **values))

    def put_in_transaction(self, producer_id: int, guard: Any = None, **values: str) -> Answer:
        return self.send(
            lambda machine, token, _: machine.put_in_transaction(token, producer_id, guard, **values)
        )

    def end(self, producer_id: int, commit: bool = True) -> None:
        self.shell.write_marker(0, producer_id, 0, 0, commit, 0)

    @property
    def partition(self) -> Partition:
        return self.node.replicas.by_topic(self.topic, 0)

    def get(self, name: str) -> Answer:
        return self.send(
            lambda machine, token, _: machine.effects.reply(token, machine.values.get(name.encode()))
        )

    def batches(self) -> list[int]:
        """How many records each batch of the partition has."""
        log = self.node.replicas.by_topic(self.topic, 0).log
        counts: list[int] = []
        offset = 0
        while offset < log.log_end_offset:
            records = log.read(offset, 1 << 20).records
            assert records is not None
            for _, header in iter_headers(records.read()):
                counts.append(header.last_offset_delta + 1)
                offset = header.next_offset
        return counts


async def run_of(broker: InProcessBroker, client: Client, **configs: str) -> Run:
    topic = await create_topic(client, configs={name.replace("_", "."): v for name, v in configs.items()})
    return Run(broker, topic.name)


async def answered(*answers: Answer) -> list[Any]:
    await eventually(lambda: all(answer.answer is not None for answer in answers))
    return [answer.answer for answer in answers]


async def test_the_events_of_one_turn_share_one_append(broker: InProcessBroker, client: Client) -> None:
    run = await run_of(broker, client)
    answers = [run.put(a="1"), run.put(b="2", c="3"), run.put(a="4"), run.get("a")]
    assert [answer.answer for answer in answers] == [None] * 4, "nothing leaves before it is appended"
    assert await answered(*answers) == [b"nothing", b"nothing", b"1", b"4"]
    assert run.batches() == [4]
    assert run.get("c").answer == b"3", "a read with nothing before it is answered at once"
    await answered(run.put(a="5"))
    assert run.batches() == [4, 1]


async def test_replies_wait_for_the_high_watermark(broker: InProcessBroker, client: Client) -> None:
    run = await run_of(broker, client, flush_messages="1")
    partition = run.node.replicas.by_topic(run.topic, 0)
    first = run.put(a="1")
    while partition.log.log_end_offset == 0:
        await asyncio.sleep(0)
    assert partition.high_watermark == 0
    read = run.get("a")
    assert (first.answer, read.answer) == (None, None), "what is not committed is not seen"
    assert await answered(first, read) == [b"nothing", b"1"]
    assert partition.high_watermark == 1


async def test_an_event_that_is_too_large_is_undone_alone(broker: InProcessBroker, client: Client) -> None:
    run = await run_of(broker, client, max_message_bytes="400")
    await answered(run.put(a="1"))
    answers = [run.put(b="2"), run.put(a="x" * 500), run.put(c="3")]
    # What does not fit into a batch is refused alone.
    assert await answered(*answers) == [b"nothing", ErrorCode.UNKNOWN_SERVER_ERROR, b"nothing"]
    assert run.machine.values == {b"a": b"1", b"b": b"2", b"c": b"3"}
    assert sum(run.batches()) == 3
    # A batch that is just full is not refused.
    assert await answered(run.put(d="x" * (400 - 61 - 10))) == [b"nothing"]


async def test_everything_of_a_turn_goes_with_it_when_it_fails(
    broker: InProcessBroker, client: Client
) -> None:
    run = await run_of(broker, client, min_insync_replicas="1")
    await answered(run.put(a="1"))
    partition = run.node.replicas.by_topic(run.topic, 0)
    partition.has_enough_replicas = False
    answers = [run.put(a="2"), run.put(a="3", b="1"), run.get("a")]
    assert await answered(*answers) == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 3
    assert run.machine.values == {b"a": b"1"}
    partition.has_enough_replicas = True
    assert await answered(run.put(a="2")) == [b"1"]


async def test_events_that_are_too_many_for_one_batch_take_several(
    broker: InProcessBroker, client: Client
) -> None:
    run = await run_of(broker, client, max_message_bytes="1000")
    answers = [run.put(**{f"k{number}": "x" * 200}) for number in range(10)]
    await answered(*answers)
    assert sum(run.batches()) == 10
    assert max(run.batches()) == 4


async def test_an_event_that_breaks_off_leaves_nothing_behind(
    broker: InProcessBroker, client: Client
) -> None:
    run = await run_of(broker, client)

    another = Answer()

    def broken(machine: Registers, token: Token, now_ms: int) -> None:
        machine.put(another, a="1")
        raise ZeroDivisionError

    def broken_late(machine: Registers, token: Token, now_ms: int) -> None:
        machine.put(token, a="1")
        raise ZeroDivisionError

    assert run.send(broken).answer is ErrorCode.UNKNOWN_SERVER_ERROR
    assert another.answer is ErrorCode.UNKNOWN_SERVER_ERROR
    assert run.send(broken_late).answer is ErrorCode.UNKNOWN_SERVER_ERROR
    assert await answered(run.put(b="1")) == [b"nothing"]
    assert run.machine.values == {b"b": b"1"}
    assert run.batches() == [1]


async def test_timers_run_at_their_time(broker: InProcessBroker, client: Client) -> None:
    run = await run_of(broker, client)
    answer = Answer()

    def later(machine: Registers, token: Token, now_ms: int) -> None:
        machine.timers.schedule("x", now_ms + 60_000, lambda _: machine.put(answer, never="1"))
        machine.timers.schedule("x", now_ms + 20, lambda _: machine.put(answer, a="1"))
        machine.effects.reply(token, b"soon")

    assert run.send(later).answer == b"soon"
    await answered(answer)
    assert run.machine.values == {b"a": b"1"}


def _without_time(action: Callable[[], None], now_ms: int) -> None:
    action()


async def test_timers_that_are_due_together_take_as_many_batches_as_they_need(
    broker: InProcessBroker, client: Client
) -> None:
    run = await run_of(broker, client, max_message_bytes="1000")
    answers = [Answer() for _ in range(50)]

    def arm(machine: Registers, token: Token, now_ms: int) -> None:
        for number, answer in enumerate(answers):
            put = partial(machine.put, answer, **{f"k{number}": "x" * 300})
            machine.timers.schedule(number, now_ms + 5, partial(_without_time, put))
        machine.effects.reply(token, b"armed")

    assert run.send(arm).answer == b"armed"
    assert await answered(*answers) == [b"nothing"] * 50
    assert len(run.machine.values) == sum(run.batches()) == 50


async def test_setting_the_clock_moves_no_deadline(
    broker: InProcessBroker, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await run_of(broker, client)
    times: list[int] = []

    def arm(machine: Registers, token: Token, now_ms: int) -> None:
        times.append(now_ms)
        machine.effects.reply(token, b"seen")

    run.send(arm)
    wall = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: wall() + 3600 * 10**9)
    run.send(arm)
    assert times[1] - times[0] < 60_000


async def test_an_answer_that_fails_keeps_no_other_from_its(broker: InProcessBroker, client: Client) -> None:
    class Broken(Answer):
        def reply(self, response: Any) -> None:
            raise ZeroDivisionError

    run = await run_of(broker, client)
    run.shell.submit(0, Broken(), lambda machine, token, _: machine.put(token, a="1"))
    assert await answered(run.put(b="1")) == [b"nothing"]


async def test_a_partition_that_is_not_here_or_no_longer(broker: InProcessBroker, client: Client) -> None:
    run = await run_of(broker, client, flush_messages="1")
    assert run.send(lambda *_: None, partition=7).answer is ErrorCode.NOT_COORDINATOR
    waiting = run.put(a="1")
    machine = run.machine
    await client.call(DeleteTopicsRequest([DeleteTopicState(run.topic)], timeout_ms=10_000))
    run.shell.metadata_changed()
    assert await answered(waiting) in ([b"nothing"], [ErrorCode.COORDINATOR_NOT_AVAILABLE])
    assert run.put(a="2").answer is ErrorCode.NOT_COORDINATOR
    assert machine.unloaded == [ErrorCode.NOT_COORDINATOR]


async def test_a_restart_replays_the_log(make_broker: MakeBroker) -> None:
    broker = await make_broker()
    async with await Client.connect(broker.port) as client:
        run = await run_of(broker, client)
    for number in range(100):
        run.put(**{f"k{number % 10}": str(number)})
        if number % 7 == 0:
            await asyncio.sleep(0)
    await answered(run.get("k0"))
    expected = dict(run.machine.values)
    await broker.close()

    again = await make_broker(data_dir=broker.data_dir)
    run = Run(again, run.topic)
    assert run.get("k0").answer is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    await eventually(lambda: bool(run.shell.machines()))
    assert run.machine.was_loaded
    assert run.machine.values == expected


# ---- transactions


async def test_records_of_a_transaction_are_a_batch_of_their_own_at_once(
    broker: InProcessBroker, client: Client
) -> None:
    run = await run_of(broker, client)
    answers = [run.put(a="1"), run.put(b="2"), run.put_in_transaction(7, c="3", d="4")]
    assert run.batches() == [2, 2], "what was decided before goes first"
    assert [answer.answer for answer in answers] == [b"nothing", b"nothing", b"waits"]
    run.put(e="5")
    run.end(7)
    assert run.batches() == [2, 2, 1, 1], "the marker comes after what was decided before"
    assert run.machine.values == {b"a": b"1", b"b": b"2", b"c": b"3", b"d": b"4", b"e": b"5"}
    assert run.partition.log.producers.state.entries[7].epoch == 0
    assert run.partition.last_stable_offset == run.partition.log.log_end_offset


async def test_nobody_sees_a_marker_before_it_is_committed(broker: InProcessBroker, client: Client) -> None:
    run = await run_of(broker, client, flush_messages="1")
    waits = run.put_in_transaction(7, a="1")
    assert waits.answer is None
    assert await answered(waits) == [b"waits"]
    run.end(7)
    read = run.get("a")
    assert read.answer is None
    assert run.partition.high_watermark < run.partition.log.log_end_offset
    assert await answered(read) == [b"1"]


async def test_a_transaction_that_is_over_fails_its_own_event_alone(
    broker: InProcessBroker, client: Client
) -> None:
    run = await run_of(broker, client)
    guard = run.partition.needs_verification(7, 0, -1)
    assert guard is not None
    run.end(7, commit=False)  # before the records come
    answers = [run.put(a="1"), run.put_in_transaction(7, guard, b="2"), run.put(c="3")]
    assert await answered(*answers) == [b"nothing", ErrorCode.INVALID_TXN_STATE, b"nothing"]
    assert run.machine.waiting == {}
    assert run.machine.values == {b"a": b"1", b"c": b"3"}
    again = run.partition.needs_verification(7, 0, -1)
    assert await answered(run.put_in_transaction(7, again, b="2")) == [b"waits"]


async def test_records_of_a_transaction_go_with_the_turn_before_them(
    broker: InProcessBroker, client: Client
) -> None:
    run = await run_of(broker, client, min_insync_replicas="1")
    run.partition.has_enough_replicas = False
    answers = [run.put(a="1"), run.put_in_transaction(7, b="2"), run.put_in_transaction(8, b="3")]
    with pytest.raises(KafkaError, match="replicas in sync"):
        run.end(7)
    assert await answered(*answers) == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 3
    assert (run.machine.values, run.machine.waiting, run.batches()) == ({}, {}, [])
    run.partition.has_enough_replicas = True
    assert await answered(run.put_in_transaction(7, b="2")) == [b"waits"]


async def test_there_is_no_marker_for_a_partition_that_is_not_coordinated_here(
    broker: InProcessBroker, client: Client
) -> None:
    run = await run_of(broker, client)
    with pytest.raises(KafkaError) as refused:
        run.shell.write_marker(5, 7, 0, 0, True, 0)
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_a_restart_finds_transactions_as_they_were(make_broker: MakeBroker) -> None:
    broker = await make_broker()
    async with await Client.connect(broker.port) as client:
        run = await run_of(broker, client)
    for producer_id, name in enumerate(("committed", "aborted", "open")):
        run.put_in_transaction(producer_id, **{name: "1"})
    run.end(0)
    run.end(1, commit=False)
    await broker.close()

    again = await make_broker(data_dir=broker.data_dir)
    run = Run(again, run.topic)
    with pytest.raises(KafkaError, match="not coordinated here"):
        run.end(2)
    await eventually(lambda: bool(run.shell.machines()))
    assert run.machine.values == {b"committed": b"1"}
    assert run.machine.waiting == {2: {b"open": b"1"}}
    run.end(2)
    assert run.machine.values == {b"committed": b"1", b"open": b"1"}
