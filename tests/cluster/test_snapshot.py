"""A snapshot gives back the image it was taken of, and only a whole one is believed."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainstem.cluster.batches import read_batches
from mainstem.cluster.image import MetadataImage
from mainstem.cluster.raft.control_records import VoterEntry, VotersRecord
from mainstem.cluster.records import MetadataRecord, ProducerIdsRecord
from mainstem.cluster.releases import bootstrap_records
from mainstem.cluster.snapshot import (
    SnapshotId,
    bootstrap_batches,
    read_bootstrap,
    read_snapshot,
    snapshot_batches,
    snapshot_id,
)
from mainstem.cluster.topics_delta import ReplayError
from mainstem.protocol.errors import ProtocolError
from tests.cluster.cluster_model import apply, cluster_of
from tests.cluster.metadata_strategies import histories

VOTERS = VotersRecord(voters=[VoterEntry(1, b"\x33" * 16)])


def replayed(changes: list[list[MetadataRecord]], image: MetadataImage | None = None) -> MetadataImage:
    image = MetadataImage() if image is None else image
    for records in changes:
        image = apply(image, records)
    return image


def snapshot_of(image: MetadataImage) -> bytes:
    return b"".join(snapshot_batches(image, None, VOTERS, 5))


@given(histories(), st.data())
def test_a_snapshot_and_the_records_after_it_give_what_all_records_give(
    changes: list[list[MetadataRecord]], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(changes)))
    before = replayed(changes[:cut])
    restored = read_snapshot(snapshot_of(before), snapshot_id(before), "")
    assert restored.image == before
    assert replayed(changes[cut:], restored.image) == replayed(changes)


@given(histories())
def test_the_records_of_one_change_can_be_replayed_in_one_delta_with_those_of_others(
    changes: list[list[MetadataRecord]],
) -> None:
    together = apply(MetadataImage(), [record for records in changes for record in records])
    assert together == replayed(changes)


def test_the_quorums_own_records_are_kept() -> None:
    image = cluster_of((1,))
    snapshot = read_snapshot(b"".join(snapshot_batches(image, 1, VOTERS, 5)), snapshot_id(image), "c")
    assert snapshot.kraft_version == 1
    assert snapshot.voters == VOTERS
    assert snapshot.image.features["kraft.version"] == 1
    assert snapshot.image.cluster_id == "c"


def test_file_names_are_those_of_kafka() -> None:
    assert SnapshotId(1234, 7).file_name == "00000000000000001234-0000000007.checkpoint"
    assert SnapshotId.from_file_name("00000000000000001234-0000000007.checkpoint") == SnapshotId(1234, 7)
    for name in ("bootstrap.checkpoint", "1-2.checkpoint", "00000000000000001234-0000000007.checkpoint.part"):
        assert SnapshotId.from_file_name(name) is None
    assert SnapshotId(2, 1) < SnapshotId(10, 0)


def test_offsets_inside_a_snapshot_count_from_zero_without_a_gap() -> None:
    headers = [header for header, _, _ in read_batches(snapshot_of(cluster_of(range(600))))]
    assert len(headers) == 5
    assert headers[0].base_offset == 0
    for earlier, later in pairwise(headers):
        assert later.base_offset == earlier.last_offset + 1


def test_the_bootstrap_file_holds_the_first_records() -> None:
    data = b"".join(bootstrap_batches(bootstrap_records(), 30, 5))
    assert read_snapshot(data, SnapshotId(0, 0), "").image.features == {
        "group.version": 1,
        "metadata.version": 30,
        "transaction.version": 2,
    }


@given(st.data())
def test_a_damaged_or_cut_snapshot_is_not_believed(data: st.DataObject) -> None:
    image = cluster_of((1, 2))
    whole = bytearray(snapshot_of(image))
    where = data.draw(st.integers(0, len(whole) - 1))
    if data.draw(st.booleans()):
        whole = whole[:where]
    else:
        whole[where] ^= data.draw(st.integers(1, 255))
    try:
        assert read_snapshot(whole, snapshot_id(image), image.cluster_id).image == image
    except (ProtocolError, ReplayError):
        pass


@pytest.mark.parametrize("part", ["no footer", "no header", "after the footer"])
def test_a_snapshot_needs_its_header_first_and_its_footer_last(part: str) -> None:
    batches = list(snapshot_batches(cluster_of((1,)), 1, VOTERS, 5))
    parts = {
        "no footer": batches[:-1],
        "no header": batches[1:],
        "after the footer": [*batches, batches[-1]],
    }
    with pytest.raises(ProtocolError):
        read_snapshot(b"".join(parts[part]), SnapshotId(5, 1), "")


def test_producer_ids_are_in_a_snapshot_only_once_there_are_any() -> None:
    image = apply(cluster_of((1,)), [ProducerIdsRecord(1, 2, 3000)])
    assert read_snapshot(snapshot_of(image), snapshot_id(image), "").image.next_producer_id == 3000


def test_the_first_records_are_read_again() -> None:
    data = b"".join(bootstrap_batches(bootstrap_records(), 30, 5))
    assert read_bootstrap(data) == bootstrap_records()
    with pytest.raises(ProtocolError):
        read_bootstrap(data[:-1])
