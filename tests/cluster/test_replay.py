"""The log replayed batch by batch, with its transactions resolved."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainstem.cluster.batches import metadata_batches
from mainstem.cluster.delta import MetadataDelta
from mainstem.cluster.image import MetadataImage
from mainstem.cluster.raft.control_records import KRaftVersionRecord, VoterEntry, VotersRecord, control_batch
from mainstem.cluster.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    MetadataRecord,
)
from mainstem.cluster.replay import Replayer
from mainstem.cluster.topics_delta import ReplayError
from mainstem.protocol.errors import ProtocolError
from mainstem.records.record import Record, build_batch
from tests.cluster.metadata_strategies import histories

SET = ConfigRecord(4, "", "a", "1")


def batch(replayer: Replayer, *records: MetadataRecord) -> bytearray:
    offset = replayer.image.offset + 1
    return metadata_batches(records, base_offset=offset, epoch=3, timestamp_ms=77, metadata_version=30)[0]


def replay(*batches: list[MetadataRecord]) -> Replayer:
    replayer = Replayer(MetadataImage())
    for records in batches:
        replayer.replay(batch(replayer, *records))
    return replayer


def test_the_image_carries_offset_epoch_and_time_of_the_last_batch() -> None:
    image = replay([SET, SET], [SET]).image
    assert (image.offset, image.epoch, image.timestamp_ms) == (2, 3, 77)


def test_a_transaction_takes_effect_when_it_ends() -> None:
    replayer = replay([BeginTransactionRecord(), SET])
    assert replayer.in_transaction
    assert not replayer.image.configs
    replayer.replay(batch(replayer, EndTransactionRecord()))
    assert not replayer.in_transaction
    assert replayer.image.configs == {(4, ""): {"a": "1"}}


def test_an_aborted_transaction_has_no_effect() -> None:
    replayer = replay([BeginTransactionRecord(), SET], [AbortTransactionRecord()])
    assert not replayer.in_transaction
    assert not replayer.image.configs
    assert replayer.image.offset == 2


@pytest.mark.parametrize(
    "records",
    [
        [EndTransactionRecord()],
        [AbortTransactionRecord()],
        [BeginTransactionRecord(), BeginTransactionRecord()],
    ],
)
def test_transactions_that_do_not_match_are_an_error(records: list[MetadataRecord]) -> None:
    with pytest.raises(ReplayError, match="transaction"):
        replay(records)


def test_of_the_quorums_records_the_image_has_the_level() -> None:
    replayer = Replayer(MetadataImage())
    voters = VotersRecord(voters=[VoterEntry(1)])
    replayer.replay(control_batch([KRaftVersionRecord(0, 1), voters], base_offset=0, epoch=1, timestamp_ms=1))
    assert replayer.image.features == {"kraft.version": 1}
    assert replayer.image.offset == 1


def test_a_batch_that_is_in_the_image_already_is_passed_over() -> None:
    replayer = Replayer(MetadataImage())
    first = batch(replayer, ConfigRecord(4, "", "a", "1"))
    replayer.replay(first)
    replayer.replay(batch(replayer, ConfigRecord(4, "", "a", "2")))
    replayer.replay(first)
    assert replayer.image.configs == {(4, ""): {"a": "2"}}


def test_a_record_without_a_value_is_a_protocol_error() -> None:
    with pytest.raises(ProtocolError):
        Replayer(MetadataImage()).replay(build_batch([Record(0, 0, None, None)]))


@given(histories(), st.integers(200, 2000))
def test_the_log_gives_the_same_image_however_it_is_cut_into_pieces(
    changes: list[list[MetadataRecord]], bytes_max: int
) -> None:
    pieces, whole = Replayer(MetadataImage()), bytearray()
    for records in changes:
        data, _ = metadata_batches(
            records,
            base_offset=pieces.image.offset + 1,
            epoch=1,
            timestamp_ms=1,
            metadata_version=30,
            bytes_max=bytes_max,
        )
        pieces.replay(data)
        whole += data
    at_once = Replayer(MetadataImage())
    at_once.replay(whole)
    assert at_once.image == pieces.image


@given(histories())
def test_whoever_replays_is_told_of_the_same_changes_as_whoever_decided(
    changes: list[list[MetadataRecord]],
) -> None:
    replayer = Replayer(MetadataImage())
    for records in changes:
        delta = MetadataDelta(replayer.image)
        delta.replay_all(records)
        replayed = replayer.replay(batch(replayer, *records))
        assert replayed == delta.changes(replayer.image)
