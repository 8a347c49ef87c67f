"""Torn and corrupt files after a crash: the broker starts, says what it cut, serves what stands before it."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from mainstem.records.batch import read_header
from mainstem.records.record import iter_records
from mainstem.testing import Broker
from tests.faults import damage
from tests.faults.ledger import Ledger, connect, read_all, read_batches
from tests.faults.load import IdempotentWriter, Writer, running
from tests.faults.topic_changes import create_topic

PARTITIONS = [("t", 0), ("t", 1)]
SETTINGS = {"log.flush.offset.checkpoint.interval.ms": 50, "log.initial.task.delay.ms": 0}
# Small segments, so that there are sealed ones with indexes and producer snapshots.
TOPIC_CONFIGS = {"internal.segment.bytes": "40000", "index.interval.bytes": "500"}


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(SETTINGS) as broker:
        with connect(broker) as client:
            create_topic(client, "t", len(PARTITIONS), TOPIC_CONFIGS)
        yield broker
        assert "Traceback" not in broker.log


def _crash_after_load(broker: Broker, ledger: Ledger, writers: list[Writer], records: int) -> None:
    with running(broker, ledger, [writer.live for writer in writers]) as load:
        load.await_acknowledged(records)
    broker.kill()


def _writers(ledger: Ledger, seed: int) -> list[Writer]:
    return [
        Writer(f"plain-{seed}", ledger, PARTITIONS, seed),
        IdempotentWriter(f"idempotent-{seed}", ledger, PARTITIONS, seed),
    ]


def _active_log(broker: Broker, partition: int = 0) -> Path:
    return sorted((broker.data_dir / f"t-{partition}").glob("*.log"))[-1]


def _end_before(path: Path, position: int) -> int:
    """The next offset after the batches that lie wholly before `position`."""
    data = path.read_bytes()
    at, end_offset = 0, int(path.stem)
    while at < len(data):
        header = read_header(data, at)
        if at + header.size > position:
            break
        at += header.size
        end_offset = header.next_offset
    return end_offset


def flip_checked_bit(path: Path, random: Random, start: int = 0) -> int:
    """Turn a bit round that a batch's length or checksum covers. Its offset and leader epoch they do not, in
    Kafka's format: a batch with another offset looks like one after a gap, which compaction leaves.
    """
    before = path.read_bytes()
    while True:
        position = damage.flip_bit(path, random, start)
        at = 0
        while at + read_header(before, at).size <= position:
            at += read_header(before, at).size
        if 8 <= position - at < 12 or position - at >= 16:
            return position
        path.write_bytes(before)


LOG_DAMAGES = [flip_checked_bit, damage.cut, damage.add_garbage, damage.add_zeros, damage.zero_the_end]


@pytest.mark.parametrize("harm", LOG_DAMAGES, ids=lambda harm: harm.__name__)
def test_a_damaged_tail_is_cut_at_the_last_good_batch(
    broker: Broker, harm: Callable[[Path, Random, int], int]
) -> None:
    random = Random(harm.__name__)
    ledger = Ledger()
    writers = _writers(ledger, 1)
    for number in range(3):
        _crash_after_load(broker, ledger, writers, 100 + random.randrange(500))
        path = _active_log(broker)
        before = path.read_bytes()
        position = harm(path, random, 0) if before else len(before)
        damaged = path.read_bytes()
        path.write_bytes(before)
        expected_end = _end_before(path, position)
        path.write_bytes(damaged)

        log_length = len(broker.log)
        broker.start()
        with connect(broker) as client:
            records = read_all(client, "t", 0)
            assert len(records) == expected_end
            ledger.forget_from(("t", 0), expected_end)
            ledger.check(client)
        if damaged != before[: len(damaged)] or _end_before(path, len(before)) != expected_end:
            line = re.search(
                r"cutting (\d+) bytes off (\S+) at position (\d+): (.+)", broker.log[log_length:]
            )
            assert line, broker.log[log_length:]
            assert line[2] == str(path)
        # The idempotent producer has lost batches with the tail: a new one goes on.
        writers = _writers(ledger, number + 2)
    with running(broker, ledger, [writer.live for writer in writers]) as load:
        load.await_acknowledged(1)
    with connect(broker) as client:
        ledger.check(client)


SMALL_FILES = [
    ["t-0/*.index", "t-0/*.timeindex", "t-1/*.snapshot"],
    ["t-0/leader-epoch-checkpoint", "t-1/partition.metadata", "recovery-point-offset-checkpoint"],
    ["log-start-offset-checkpoint", "replication-offset-checkpoint"],
    [f"__cluster_metadata-0/{name}" for name in ("quorum-state", "*.*index", "leader-epoch-checkpoint")],
]


@pytest.mark.parametrize(
    "harm",
    [damage.fill_with_garbage, damage.empty, damage.remove, damage.cut],
    ids=lambda harm: harm.__name__,
)
def test_damage_beside_the_batches_loses_nothing(
    broker: Broker, harm: Callable[[Path, Random], object]
) -> None:
    random = Random(harm.__name__)
    ledger = Ledger()
    writers = _writers(ledger, 1)
    for patterns in SMALL_FILES:
        _crash_after_load(broker, ledger, writers, 600)
        for path in [path for pattern in patterns for path in sorted(broker.data_dir.glob(pattern))]:
            if path.stat().st_size:
                harm(path, random)
        broker.start()
        with connect(broker) as client:
            assert ledger.check(client)


def test_flipped_bits_in_indexes_lead_no_reader_astray(broker: Broker) -> None:
    """Also in those of segments that lie before the recovery point, which no scan looks at."""
    random = Random(1)
    ledger = Ledger()
    writers = _writers(ledger, 1)
    for _ in range(3):
        _crash_after_load(broker, ledger, writers, 600)
        for path in sorted(broker.data_dir.glob("t-0/*index")):
            if path.stat().st_size:
                damage.flip_bit(path, random)
        broker.start()
        with connect(broker) as client:
            ledger.check(client)
            for offset, payload in ledger.acknowledged["t", 0].items():
                records = iter_records(next(read_batches(client, "t", 0, offset)))
                assert {record.offset: record.value for record in records}[offset] == payload
