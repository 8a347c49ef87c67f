"""A coordinator in one leader epoch and in the next: no answer is of the one before, and nothing is lost."""

import asyncio
import errno
import os
import threading
from typing import Any

import pytest

from mainstem.broker.logs.partition import Partition
from mainstem.protocol.apis.k61_describe_producers import DescribeProducersRequest, TopicRequest
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.testing.in_process import InProcessBroker
from tests.broker.coordination.test_shell import Run, answered, run_of
from tests.broker.harness import (
    Client,
    create_topic,
    elect,
    eventually,
    forget_follower,
    lose_follower,
    unique_name,
    without_follower,
)
from tests.broker.transactional import Producer, committed_values
from tests.support.failing_files import FailingFiles

OLDER_PROTOCOL = 4  # of EndTxn: the next transaction has the same epoch
TRANSACTION_STATE = "__transaction_state"
SAME_LEADER_AND_EPOCH = -2


async def with_follower(broker: InProcessBroker, topic: str, index: int = 0) -> None:
    """Another replica is in sync, and nobody has heard of it: nothing is committed any more."""
    await elect(broker, topic, index, SAME_LEADER_AND_EPOCH, replicas=[1, 2], isr=[1, 2])


async def waiting(broker: InProcessBroker, run: Run, **values: str) -> Any:
    """Registers that are set, and whose answer waits for a replica."""
    before = run.partition.log.log_end_offset
    await with_follower(broker, run.topic)
    answer = run.put(**values)
    await eventually(lambda: run.partition.log.log_end_offset > before)
    assert answer.answer is None
    return answer


async def reloaded(run: Run) -> None:
    run.shell.metadata_changed()
    await eventually(lambda: bool(run.shell.machines()))


async def test_the_same_leader_in_a_new_epoch_loads_its_state_again(
    broker: InProcessBroker, client: Client
) -> None:
    run = await run_of(broker, client)
    await answered(run.put(a="1"))
    former = run.machine
    await elect(broker, run.topic)
    assert run.get("a").answer == ErrorCode.NOT_COORDINATOR
    assert (run.shell.machine(0), run.shell.leader_epoch(0)) == (None, -1)
    assert not run.shell.try_at_once(0, lambda *_: True)
    with pytest.raises(KafkaError, match="not coordinated here"):
        run.end(7)
    await reloaded(run)
    assert former.unloaded == [ErrorCode.NOT_COORDINATOR]
    assert (run.machine.values, run.shell.leader_epoch(0)) == ({b"a": b"1"}, 1)
    assert await answered(run.put(a="2")) == [b"1"]


async def test_an_answer_of_one_epoch_is_not_given_in_the_next(
    broker: InProcessBroker, client: Client
) -> None:
    run = await run_of(broker, client)
    answers = [await waiting(broker, run, a="1"), run.get("a")]
    await elect(broker, run.topic, isr=[1])  # what they wait for is committed at the same time
    assert [answer.answer for answer in answers] == [ErrorCode.NOT_COORDINATOR] * 2
    await reloaded(run)
    assert await answered(run.get("a")) == [b"1"]


async def test_answers_fail_before_another_leader_can_cut_anything_off(
    broker: InProcessBroker, client: Client
) -> None:
    run = await run_of(broker, client)
    answers = [await waiting(broker, run, a="1"), run.get("a")]
    partition = run.partition
    without_follower(broker, partition, leader=2, leader_epoch=1)
    assert [answer.answer for answer in answers] == [ErrorCode.NOT_COORDINATOR] * 2
    assert run.shell.partitions == []
    assert run.get("a").answer == ErrorCode.NOT_COORDINATOR


async def test_what_was_decided_and_not_written_is_not_written_in_the_next_epoch(
    broker: InProcessBroker, client: Client
) -> None:
    run = await run_of(broker, client)
    partition = run.partition
    answers = [run.put(a="1"), run.get("a")]
    without_follower(broker, partition, leader_epoch=1)
    assert await answered(*answers) == [ErrorCode.NOT_COORDINATOR] * 2
    assert (partition.log.log_end_offset, run.machine.values) == (0, {})


async def test_whoever_leads_again_begins_with_what_the_log_says(
    broker: InProcessBroker, client: Client
) -> None:
    run = await run_of(broker, client)
    await answered(run.put(a="1"))
    await elect(broker, run.topic, leader=2)
    run.shell.metadata_changed()
    assert run.shell.partitions == []
    await elect(broker, run.topic)
    await reloaded(run)
    assert (run.machine.values, run.shell.leader_epoch(0)) == ({b"a": b"1"}, 2)


async def test_an_answer_whose_records_are_not_committed_in_time_says_so_and_they_may_be_later(
    broker: InProcessBroker, client: Client
) -> None:
    topic = await create_topic(client)
    run = Run(broker, topic.name, lambda: 20)
    first = await waiting(broker, run, a="1")
    assert await answered(first) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    read = run.get("a")
    await elect(broker, run.topic, leader=SAME_LEADER_AND_EPOCH, isr=[1])
    assert await answered(read, run.put(a="2")) == [b"1", b"1"]
    assert first.answer == ErrorCode.COORDINATOR_NOT_AVAILABLE


async def test_a_coordinator_knows_what_was_acknowledged_and_tells_it_when_it_is_committed_for_sure(
    broker: InProcessBroker, client: Client
) -> None:
    """A new leader does not know yet how much of its log is committed."""
    run = await run_of(broker, client)
    await answered(run.put(a="1"))
    await elect(broker, run.topic, isr=[1, 2], replicas=[1, 2])
    run.partition.high_watermark = 0
    run.shell.metadata_changed()
    for _ in range(10):
        await asyncio.sleep(0.001)
        assert run.get("a").answer == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert run.shell.is_loading
    await elect(broker, run.topic, leader=SAME_LEADER_AND_EPOCH, isr=[1])
    assert await answered_when_loaded(run) == b"1"


async def test_whoever_is_still_loading_lets_go_when_another_leads(
    broker: InProcessBroker, client: Client
) -> None:
    run = await run_of(broker, client)
    await answered(run.put(a="1"))
    await elect(broker, run.topic, isr=[1, 2], replicas=[1, 2])
    run.partition.high_watermark = 0
    run.shell.metadata_changed()
    await asyncio.sleep(0.01)
    await elect(broker, run.topic, leader=2)
    run.shell.metadata_changed()
    assert run.shell.partitions == []
    assert run.get("a").answer == ErrorCode.NOT_COORDINATOR


async def test_a_load_that_has_failed_is_tried_again(broker: InProcessBroker, client: Client) -> None:
    run = await run_of(broker, client)
    await answered(run.put(a="1"))
    failures = []

    def pread(fd: int, length: int, position: int) -> bytes:
        if threading.current_thread() is not threading.main_thread():
            failures.append(position)
            raise OSError(errno.EIO, "Input/output error")
        return os.pread(fd, length, position)

    assert isinstance(broker.files, FailingFiles)
    with broker.files.exchanged(pread=pread):
        await elect(broker, run.topic)
        run.shell.metadata_changed()
        await eventually(lambda: run.shell.missing == [0])
        assert failures
        assert run.get("a").answer == ErrorCode.NOT_COORDINATOR
        run.shell.metadata_changed()  # about something else
        assert run.shell.missing == [0], "it is not tried more often because of that"
    assert await answered_when_loaded(run) == b"1"


async def answered_when_loaded(run: Run) -> Any:
    await eventually(lambda: bool(run.shell.machines()))
    (answer,) = await answered(run.get("a"))
    return answer


# ---- transactions


async def _producer(client: Client, broker: InProcessBroker) -> tuple[Producer, Partition]:
    """A producer, and the partition of its coordinator."""
    producer = await Producer(client, unique_name("id")).init()
    index = broker.node.transactions.partition_of(producer.transactional_id)
    return producer, broker.node.replicas.by_topic(TRANSACTION_STATE, index)


async def test_a_transaction_that_is_ending_is_ended_by_its_coordinator_of_the_next_epoch(
    client: Client, broker: InProcessBroker
) -> None:
    topic = await create_topic(client, configs={"min.insync.replicas": "2"})
    producer, coordinator = await _producer(client, broker)
    assert await producer.add(topic, 0) == [0]
    assert await producer.send(topic, b"v", version=11) == 0
    await lose_follower(broker, topic)
    assert await producer.end(True, OLDER_PROTOCOL) == 0
    await elect(broker, TRANSACTION_STATE, coordinator.index)
    while (await producer.describe()).transaction_state != "PrepareCommit":
        await asyncio.sleep(0.005)
    await forget_follower(broker, topic)
    while (await producer.describe()).transaction_state != "CompleteCommit":
        await asyncio.sleep(0.005)
    assert await committed_values(client, topic) == [b"v"]
    described = await client.call(DescribeProducersRequest([TopicRequest(topic.name, [0])]))
    (known,) = described.topics[0].partitions[0].active_producers
    assert known.coordinator_epoch == coordinator.leader_epoch == 1


@pytest.mark.parametrize("commit", [True, False])
async def test_a_decision_whose_answer_was_lost_with_the_epoch_holds(
    client: Client, broker: InProcessBroker, commit: bool
) -> None:
    topic = await create_topic(client)
    producer, coordinator = await _producer(client, broker)
    assert await producer.add(topic, 0) == [0]
    assert await producer.send(topic, b"v", version=11) == 0
    end_offset = coordinator.log.log_end_offset
    await with_follower(broker, TRANSACTION_STATE, coordinator.index)
    ending = asyncio.ensure_future(producer.end(commit, OLDER_PROTOCOL))
    await eventually(lambda: coordinator.log.log_end_offset > end_offset)
    assert not ending.done()
    await elect(broker, TRANSACTION_STATE, coordinator.index, isr=[1])
    assert await ending == ErrorCode.NOT_COORDINATOR
    wanted = "CompleteCommit" if commit else "CompleteAbort"
    while (await producer.describe()).transaction_state != wanted:
        await asyncio.sleep(0.005)
    assert await producer.end(commit, OLDER_PROTOCOL) == 0
    assert await committed_values(client, topic) == ([b"v"] if commit else [])
