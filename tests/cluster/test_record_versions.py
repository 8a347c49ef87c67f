"""Each level of `metadata.version` has its versions of the records, as in Apache Kafka."""

import pytest

from mainstem.cluster.batches import metadata_batches
from mainstem.cluster.records import (
    RECORD_CLASSES,
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
    versions_of,
)
from mainstem.cluster.records.versions import as_written, has_directories, version_at
from mainstem.protocol.errors import ErrorCode, KafkaError

DIRECTORY = b"\x22" * 16


def test_at_the_newest_level_every_record_has_its_newest_version() -> None:
    assert {cls: version_at(cls, 30) for cls in RECORD_CLASSES} == {
        cls: versions_of(cls).last for cls in RECORD_CLASSES
    }


@pytest.mark.parametrize(
    ("level", "register", "change", "partition"),
    [(7, 1, 1, 0), (8, 2, 1, 0), (16, 2, 1, 0), (17, 3, 2, 1), (22, 3, 2, 1), (23, 3, 2, 2), (29, 3, 2, 2)],
)
def test_older_levels_have_older_versions(level: int, register: int, change: int, partition: int) -> None:
    assert version_at(RegisterBrokerRecord, level) == register
    assert version_at(BrokerRegistrationChangeRecord, level) == change
    assert version_at(PartitionRecord, level) == version_at(PartitionChangeRecord, level) == partition
    assert version_at(TopicRecord, level) == 0
    assert has_directories(level) == (partition > 0)


def test_what_a_level_cannot_say_is_not_there_for_anybody() -> None:
    record = PartitionRecord(0, b"\x11" * 16, [1], [1], directories=[DIRECTORY], last_known_elr=[1])
    (old,), (newer,) = as_written([record], 16), as_written([record], 17)
    assert (old.directories, old.last_known_elr) == ([], None)
    assert (newer.directories, newer.last_known_elr) == ([DIRECTORY], None)
    assert as_written([record], 30) == [record]


def test_a_change_of_several_batches_needs_a_level_that_has_transactions() -> None:
    records = [TopicRecord(f"topic-{number}", bytes([number]) * 16) for number in range(50)]
    options = {"base_offset": 0, "epoch": 1, "timestamp_ms": 1, "bytes_max": 500}
    assert metadata_batches(records, metadata_version=13, **options)[1] == 52
    with pytest.raises(KafkaError) as refused:
        metadata_batches(records, metadata_version=12, **options)
    assert refused.value.code is ErrorCode.POLICY_VIOLATION
