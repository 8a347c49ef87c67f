"""A partition's role: what a leader commits, and what becomes of those who wait when the role changes."""

import asyncio
import os
import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from mainstem.broker.logs.partition import Partition
from mainstem.cluster.image import PartitionImage
from mainstem.config import LogConfig
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.records.batch import LOG_OVERHEAD, PREFIX
from mainstem.replication.leader_state import LeaderState
from mainstem.replication.roles import Follower, Offline
from mainstem.storage.environment import LogEnvironment
from mainstem.storage.follower import UnexpectedOffsetError
from mainstem.storage.log import Log
from tests.broker.harness import batch, eventually
from tests.broker.logs.partition_host import Host
from tests.support.failing_files import FailingFiles

NODE = 1
ACKS_ALL = -1


class Waiter:
    """A produce that waits."""

    def __init__(self) -> None:
        self.heard: list[ErrorCode] = []

    def acknowledged(self, partition: Partition, error: ErrorCode) -> None:
        self.heard.append(error)


class Reader:
    """A subscriber that counts what it is told of each of its subscriptions."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def partition_moved(self, subscription: Any) -> None:
        self.heard.append(subscription)

    def watermark_moved(self, subscription: Any) -> None:
        self.heard.append(("committed", subscription))


@pytest.fixture
def opened() -> Iterator[list[Log]]:
    logs: list[Log] = []
    yield logs
    for log in logs:
        log.close()


@pytest.fixture
def log(tmp_path: Path, opened: list[Log]) -> Log:
    """Three records of leader epoch 0, in two batches."""
    log = Log.open(tmp_path / "t-0", "t", 0, bytes(16), LogConfig(), now_ms=0)
    opened.append(log)
    for values in ((b"a", b"b"), (b"c",)):
        log.append_as_leader(bytearray(batch(*values, timestamp=1)), 0, 1)
    return log


def partition_of(log: Log, host: Host | None = None, **options: Any) -> Partition:
    loop = asyncio.get_running_loop()
    return Partition("t", bytes(16), 0, log, loop, host or Host(), node_id=NODE, **options)


partition_epochs = count()


def image(
    leader: int = NODE, epoch: int = 1, isr: tuple[int, ...] = (NODE,), replicas: tuple[int, ...] = (1, 2, 3)
) -> PartitionImage:
    """What the metadata say next."""
    return PartitionImage(0, leader, epoch, next(partition_epochs), replicas, isr)


def append(partition: Partition, *values: bytes) -> int:
    return partition.append(bytearray(batch(*values, timestamp=1)), 1).last_offset


def append_and_wait(partition: Partition, acks: int = ACKS_ALL) -> Waiter:
    waiter = Waiter()
    last_offset = append(partition, b"v")
    assert not partition.is_committed(last_offset, acks)
    partition.add_ack_waiter(last_offset, acks, waiter)
    return waiter


def leading(partition: Partition) -> LeaderState[Any]:
    assert isinstance(partition.role, LeaderState)
    return partition.role


def refusal(call: Any, *args: Any, **options: Any) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        call(*args, **options)
    return refused.value.code


# ---- the high watermark


@pytest.mark.parametrize(("written_down", "begins_at"), [(0, 1), (2, 2), (99, 3)])
async def test_the_high_watermark_begins_where_it_was_written_down_within_the_log(
    log: Log, written_down: int, begins_at: int
) -> None:
    log.advance_log_start_offset(1, 3)
    assert partition_of(log, high_watermark=written_down).high_watermark == begins_at


async def test_a_leader_without_followers_commits_all_that_it_has_at_once(log: Log) -> None:
    partition = partition_of(log, high_watermark=2)
    partition.take_role(image())
    assert partition.high_watermark == 3
    assert partition.is_committed(append(partition, b"d"), ACKS_ALL)
    assert partition.high_watermark == 4


async def test_with_followers_the_high_watermark_waits_for_them(log: Log) -> None:
    partition = partition_of(log, high_watermark=2)
    partition.take_role(image(isr=(NODE, 2)))
    assert partition.high_watermark == 2
    waiter = append_and_wait(partition)
    assert partition.is_committed(3, 1), "acks=1 is about this broker alone"
    assert partition.read(2, 1000, True).records is None, "what is not committed is not read"
    partition.take_role(image(isr=(NODE,)))
    assert (partition.high_watermark, waiter.heard) == (4, [ErrorCode.NONE])


async def test_a_proposed_follower_counts_before_the_metadata_has_it(log: Log) -> None:
    host = Host()
    partition = partition_of(log, host)
    partition.take_role(image())
    partition.fetched_by(2, 20, 3, 0, 0)
    (proposal,) = host.proposals
    assert proposal.isr == (NODE, 2)
    waiter = append_and_wait(partition)
    assert partition.high_watermark == 3
    partition.isr_accepted(proposal, 1, next(partition_epochs), (NODE, 2))
    assert (partition.high_watermark, waiter.heard) == (3, [])
    partition.take_role(image(isr=(NODE,)))
    host.now = host.brokers.lag_ms_max + 2
    partition.review_replicas(host.now)
    assert (partition.high_watermark, waiter.heard) == (4, [ErrorCode.NONE])


async def test_the_high_watermark_stays_when_another_broker_leads_and_when_this_one_does_again(
    log: Log,
) -> None:
    partition = partition_of(log)
    partition.take_role(image())
    partition.take_role(image(leader=2, epoch=2))
    assert partition.high_watermark == 3
    partition.take_role(image(epoch=3, isr=(NODE, 2)))
    assert partition.high_watermark == 3


# ---- changes of the role


async def test_until_the_metadata_says_who_leads_nobody_is_served(log: Log) -> None:
    partition = partition_of(log)
    assert (
        refusal(partition.append, bytearray(batch(b"v", timestamp=1)), 1) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    )
    assert refusal(partition.read_to_end, 0, 1000, True) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert not partition.has_enough_replicas


async def test_a_leader_that_becomes_a_follower_fails_those_who_wait(log: Log) -> None:
    partition = partition_of(log)
    partition.take_role(image(isr=(NODE, 2)))
    waiter, reader = append_and_wait(partition), Reader()
    partition.subscribers["it"] = reader
    partition.take_role(image(leader=2, epoch=2, isr=(2, 3)))
    assert partition.role == Follower(2)
    assert waiter.heard == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert reader.heard == ["it"]
    assert (
        refusal(partition.append, bytearray(batch(b"v", timestamp=1)), 1) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    )
    assert refusal(partition.append_marker, 7, 0, 0, True, 1) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert refusal(partition.check_enough_replicas) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert refusal(partition.read_to_end, 0, 1000, True) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert log.log_end_offset == 4, "nothing was appended, and nothing is cut off by the change alone"


async def test_a_follower_that_becomes_the_leader_appends_in_the_new_epoch(log: Log) -> None:
    partition = partition_of(log)
    partition.take_role(image(leader=2, epoch=4))
    partition.take_role(image(epoch=5))
    append(partition, b"d")
    assert log.end_offset_for_epoch(0) == (0, 3)
    assert log.end_offset_for_epoch(5) == (5, 4)
    assert partition.high_watermark == 4


async def test_the_same_leader_in_a_new_epoch_keeps_those_who_wait_and_tells_those_who_read(
    log: Log,
) -> None:
    partition = partition_of(log)
    partition.take_role(image(isr=(NODE, 2)))
    waiter, reader = append_and_wait(partition), Reader()
    partition.subscribers["it"] = reader
    partition.take_role(image(epoch=2, isr=(NODE, 2)))
    assert (waiter.heard, reader.heard) == ([], ["it"])
    partition.take_role(image(epoch=2, isr=(NODE,)))
    assert waiter.heard == [ErrorCode.NONE]


async def test_an_offline_partition_stays_so_whatever_the_metadata_says(log: Log) -> None:
    partition = partition_of(log)
    partition.take_role(image(isr=(NODE, 2)))
    waiter, reader = append_and_wait(partition), Reader()
    partition.subscribers["it"] = reader
    partition.go_offline("the disk is on fire")
    assert waiter.heard == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert reader.heard == ["it"]
    partition.take_role(image(leader=2, epoch=2))
    partition.take_role(image(epoch=3))
    assert partition.role == Offline(NODE, "the disk is on fire")
    with pytest.raises(KafkaError, match="the disk is on fire"):
        append(partition, b"v")
    assert refusal(partition.check_leader, 3) == ErrorCode.KAFKA_STORAGE_ERROR
    assert refusal(partition.check_leader, 2) == ErrorCode.KAFKA_STORAGE_ERROR


async def test_an_fsync_that_ends_after_the_role_has_changed_answers_nobody(log: Log) -> None:
    partition = partition_of(log)
    partition.update_config(LogConfig(flush_messages=1))
    partition.take_role(image())
    waiter = append_and_wait(partition, acks=1)
    partition.take_role(image(leader=2, epoch=2))
    assert waiter.heard == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    await eventually(lambda: not partition.is_flushing)
    assert waiter.heard == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert (log.recovery_point, partition.high_watermark) == (4, 3)


async def test_whoever_waits_and_leaves_is_not_looked_for_in_another_role(log: Log) -> None:
    partition = partition_of(log)
    partition.take_role(image(isr=(NODE, 2)))
    waiter = append_and_wait(partition)
    partition.take_role(image(leader=2, epoch=2))
    partition.remove_ack_waiter(waiter)
    assert waiter.heard == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


# ---- what look-ups answer


@pytest.mark.parametrize(
    ("asked", "of_leader", "of_follower"),
    [
        (-1, None, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (5, None, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (4, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_LEADER_EPOCH),
        (6, ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
async def test_a_client_is_told_when_it_asks_the_wrong_broker_or_of_another_epoch(
    log: Log, asked: int, of_leader: ErrorCode | None, of_follower: ErrorCode
) -> None:
    partition = partition_of(log)
    partition.take_role(image(epoch=5))
    if of_leader is None:
        partition.check_leader(asked)
    else:
        assert refusal(partition.check_leader, asked) == of_leader
    follower = partition_of(log)
    follower.take_role(image(leader=2, epoch=5))
    assert refusal(follower.check_leader, asked) == of_follower


async def test_min_insync_replicas_is_counted_anew_with_the_settings_and_with_the_metadata(log: Log) -> None:
    partition = partition_of(log)
    partition.take_role(image())
    partition.check_enough_replicas()
    partition.update_config(LogConfig(min_insync_replicas=2))
    assert refusal(partition.check_enough_replicas) == ErrorCode.NOT_ENOUGH_REPLICAS
    partition.take_role(image(isr=(NODE, 3)))
    partition.check_enough_replicas()
    partition.take_role(image(isr=(NODE,)))
    assert not partition.has_enough_replicas


# ---- following


def following(log: Log, host: Host | None = None, **options: Any) -> Partition:
    partition = partition_of(log, host, **options)
    partition.take_role(image(leader=2, epoch=5))
    return partition


def sent(first_offset: int, *values: bytes, epoch: int = 5) -> memoryview:
    """Batches as the leader has them in its log."""
    data = memoryview(bytearray(batch(*values, timestamp=1)))
    PREFIX.pack_into(data, 0, first_offset, len(data) - LOG_OVERHEAD, epoch)
    return data


async def test_a_follower_takes_what_is_sent_and_what_is_said_of_the_log(log: Log) -> None:
    partition, reader = following(log), Reader()
    partition.subscribers["consumer"] = reader
    assert partition.append_from_leader(sent(3, b"d", b"e"), 4, 1)
    assert partition.fetch_position == (5, 5, 1)
    assert (partition.high_watermark, reader.heard) == (4, ["consumer"])
    assert partition.append_from_leader(None, 9, 1)
    assert partition.high_watermark == 5, "no more than there is here"
    assert partition.append_from_leader(None, 2, 1)
    assert partition.high_watermark == 5, "what was committed stays so"


async def test_a_follower_refuses_what_its_leader_cannot_have_written(log: Log) -> None:
    partition = following(log)
    assert refusal(partition.append_from_leader, sent(3, b"d", epoch=6), 4, 0) == ErrorCode.CORRUPT_MESSAGE
    assert log.log_end_offset == 3


async def test_a_follower_begins_with_the_whole_batch_in_which_the_leaders_log_starts(log: Log) -> None:
    """KAFKA-6975."""
    partition = following(log)
    partition.follow_from(leader_start_offset=11, leader_end_offset=20)
    assert partition.fetch_position == (11, -1, 11)
    assert partition.append_from_leader(sent(10, b"a", b"b", b"c"), 13, 11)
    assert partition.fetch_position == (13, 5, 11)
    assert partition.high_watermark == 13


async def test_a_batch_that_does_not_go_on_where_the_log_ends_is_not_taken(log: Log) -> None:
    with pytest.raises(UnexpectedOffsetError):
        following(log).append_from_leader(sent(2, b"c", b"d"), 4, 0)


async def test_a_follower_that_is_cut_knows_less_to_be_committed(log: Log) -> None:
    host = Host()
    partition = following(log, host, high_watermark=3)
    log.append_as_follower(sent(3, b"d", epoch=1), 1)
    partition.cut_where_it_diverges(0, 2)
    assert (partition.fetch_position, partition.high_watermark) == ((2, 0, 0), 2)
    assert host.synced == [partition], "before anything else is appended"


async def test_an_epoch_in_which_nothing_was_appended_is_forgotten(log: Log) -> None:
    """It would differ from the leader's for ever."""
    partition = partition_of(log)
    partition.take_role(image(epoch=4))
    partition.take_role(image(leader=2, epoch=5))
    assert partition.fetch_position == (3, 4, 0)
    partition.cut_where_it_diverges(0, 3)
    assert partition.fetch_position == (3, 0, 0)


async def test_a_follower_in_an_offset_that_the_leader_does_not_have_goes_on_where_it_can(log: Log) -> None:
    partition = following(log)
    partition.follow_from(leader_start_offset=0, leader_end_offset=5)
    assert log.log_end_offset == 3, "the leader has all of it"
    partition.follow_from(leader_start_offset=0, leader_end_offset=2)
    assert log.log_end_offset == 2
    partition.follow_from(leader_start_offset=7, leader_end_offset=9)
    assert (log.log_start_offset, log.log_end_offset, partition.high_watermark) == (7, 7, 7)


async def test_a_log_that_does_not_know_its_epochs_is_cut_to_what_is_committed(log: Log) -> None:
    log.leader_epochs.clear()
    partition = following(log, high_watermark=2)
    partition.begin_to_follow()
    assert log.log_end_offset == 2


async def test_what_a_topic_wants_on_disk_is_told_to_the_leader_when_it_is(log: Log) -> None:
    host = Host()
    partition = following(log, host)
    partition.update_config(LogConfig(flush_messages=1))
    assert not partition.append_from_leader(sent(3, b"d"), 3, 0)
    assert host.on_disk == []
    await eventually(lambda: host.on_disk == [partition])
    assert log.recovery_point == 4


class Gate:
    """Threads wait in an fsync until it is open; the event loop, which cuts logs, does not."""

    def __init__(self) -> None:
        self.waiting = 0
        self._open = threading.Event()

    def fsync(self, fd: int) -> None:
        if threading.current_thread() is not threading.main_thread():
            self.waiting += 1
            assert self._open.wait(10)
        os.fsync(fd)

    def open(self) -> None:
        self._open.set()


async def test_an_fsync_of_what_was_cut_since_commits_nothing(tmp_path: Path, opened: list[Log]) -> None:
    gate, files = Gate(), FailingFiles()
    environment = LogEnvironment(files=files)
    log = Log.open(
        tmp_path / "t-0", "t", 0, bytes(16), LogConfig(flush_messages=1), now_ms=0, environment=environment
    )
    opened.append(log)
    partition = partition_of(log)
    partition.take_role(image(epoch=1, isr=(1, 2)))
    append(partition, *[b"v"] * 10)
    await eventually(lambda: not partition.is_flushing)
    with files.exchanged(fsync=gate.fsync):
        append(partition, b"v")
        await eventually(lambda: gate.waiting == 1)
        partition.take_role(image(leader=2, epoch=2, isr=(1, 2)))
        partition.cut_where_it_diverges(1, 0)
        partition.take_role(image(epoch=3))
        assert (log.log_end_offset, partition.high_watermark) == (0, 0)
        waiter = append_and_wait(partition)
        gate.open()
        await eventually(lambda: not partition.is_flushing)
    assert (log.recovery_point, partition.high_watermark, waiter.heard) == (1, 1, [ErrorCode.NONE])


async def test_a_leader_whose_log_was_cut_syncs_no_more_than_is_demanded(
    tmp_path: Path, opened: list[Log]
) -> None:
    log = Log.open(tmp_path / "t-0", "t", 0, bytes(16), LogConfig(flush_messages=10), now_ms=0)
    opened.append(log)
    partition = partition_of(log)
    partition.take_role(image(epoch=1, isr=(1, 2)))
    for _ in range(12):
        append(partition, b"v")
    await eventually(lambda: not partition.is_flushing)
    partition.take_role(image(leader=2, epoch=2, isr=(1, 2)))
    partition.cut_where_it_diverges(1, 5)
    partition.take_role(image(epoch=3))
    append(partition, b"w")
    assert not partition.is_flushing
    assert partition.high_watermark == 6


async def test_a_follower_has_the_newest_on_disk_before_the_leader_hears_of_it(
    tmp_path: Path, opened: list[Log]
) -> None:
    """An fsync that began before says nothing of what came since."""
    gate, files = Gate(), FailingFiles()
    environment = LogEnvironment(files=files)
    config = LogConfig(flush_messages=2, flush_ms=1)
    log = Log.open(tmp_path / "t-0", "t", 0, bytes(16), config, now_ms=0, environment=environment)
    opened.append(log)
    host = Host()
    partition = following(log, host)
    with files.exchanged(fsync=gate.fsync):
        assert partition.append_from_leader(sent(0, b"a"), 0, 0)
        await eventually(lambda: gate.waiting == 1, "because of its time")
        assert not partition.append_from_leader(sent(1, b"b", b"c"), 0, 0)
        gate.open()
        await eventually(lambda: not partition.is_flushing)
    assert (host.on_disk, log.recovery_point) == ([partition], 3)


async def test_the_replicas_of_a_new_leader_are_expected_to_fetch_soon(log: Log) -> None:
    host = Host()
    partition_of(log, host).take_role(image(isr=(NODE, 2)))
    assert sorted(host.awaited) == [2, 3]


async def test_only_replicas_are_listened_to_and_only_in_their_last_incarnation(log: Log) -> None:
    partition = partition_of(log)
    partition.take_role(image(isr=(NODE, 2), replicas=(NODE, 2)))
    assert refusal(partition.fetched_by, 3, 30, 3, 0, 0) == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert refusal(partition.fetched_by, 2, 19, 3, 0, 0) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    partition.fetched_by(2, 20, 3, 0, 0)
    assert partition.high_watermark == 3


async def test_a_deleted_partition_takes_nothing(log: Log) -> None:
    partition = partition_of(log)
    partition.take_role(image())
    partition.delete()
    assert (
        refusal(partition.append, bytearray(batch(b"v", timestamp=1)), 1)
        == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    )
    assert refusal(partition.read, 0, 1000, True) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
