"""Metadata records in batches: what belongs together stays together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainstem.cluster.batches import control_records, metadata_batches, read_batches
from mainstem.cluster.raft.control_records import (
    ControlRecord,
    KRaftVersionRecord,
    VoterEntry,
    VotersRecord,
    control_batch,
)
from mainstem.cluster.records import (
    BeginTransactionRecord,
    EndTransactionRecord,
    MetadataRecord,
    NoOpRecord,
    TopicRecord,
    decode_record,
)
from mainstem.protocol.errors import ProtocolError


def topics(count: int) -> list[MetadataRecord]:
    return [TopicRecord(f"topic-{number}", number.to_bytes(16)) for number in range(count)]


def decoded(data: bytearray) -> list[list[MetadataRecord]]:
    return [
        [decode_record(record.value or b"") for record in records] for _, _, records in read_batches(data)
    ]


def test_a_change_is_one_batch_with_the_epoch_of_its_leader() -> None:
    data, end_offset = metadata_batches(
        topics(3), base_offset=7, epoch=4, timestamp_ms=99, metadata_version=30
    )
    ((header, is_control, _),) = read_batches(data)
    assert (header.base_offset, header.last_offset, end_offset) == (7, 9, 10)
    assert (header.partition_leader_epoch, header.max_timestamp, is_control) == (4, 99, False)
    assert decoded(data) == [topics(3)]


def test_a_change_that_is_too_large_for_one_batch_is_a_transaction() -> None:
    data, end_offset = metadata_batches(
        topics(50), base_offset=0, epoch=1, timestamp_ms=1, metadata_version=30, bytes_max=500
    )
    batches = decoded(data)
    assert len(batches) > 5
    flat = [record for batch in batches for record in batch]
    assert flat == [BeginTransactionRecord(), *topics(50), EndTransactionRecord()]
    assert end_offset == 52
    assert all(header.size <= 500 for header, _, _ in read_batches(data))


@given(st.data())
def test_torn_or_damaged_batches_are_a_protocol_error(data: st.DataObject) -> None:
    whole, _ = metadata_batches(
        [*topics(2), NoOpRecord()], base_offset=0, epoch=1, timestamp_ms=1, metadata_version=30
    )
    cut = data.draw(st.integers(1, len(whole) - 1))
    with pytest.raises(ProtocolError):
        list(read_batches(whole[:cut]))
    # The checksum covers everything from byte 17 on.
    whole[data.draw(st.integers(17, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ProtocolError):
        list(read_batches(whole))


def test_control_records_are_found_among_others_without_reading_those() -> None:
    data, end_offset = metadata_batches(
        topics(3), base_offset=7, epoch=4, timestamp_ms=9, metadata_version=30
    )
    data[-1] ^= 1  # nobody looks
    said: list[ControlRecord] = [KRaftVersionRecord(k_raft_version=1), VotersRecord(voters=[VoterEntry(1)])]
    data += control_batch(said, base_offset=end_offset, epoch=4, timestamp_ms=9)
    assert list(control_records(data)) == [(10, said[0]), (11, said[1])]
    with pytest.raises(ProtocolError):
        list(control_records(data[:-1] + b"\xff"))
    with pytest.raises(ProtocolError):
        list(control_records(data[:-1]))
