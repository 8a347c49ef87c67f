"""Snapshot files: an image as batches between a header and a footer, as Kafka's checkpoints are. No I/O.

A snapshot's offset is the first one that it does not contain; replaying goes on from there.
"""

import re
from collections.abc import Iterator
from itertools import islice

from msgspec import Struct

from mainstem.cluster.batches import data_batch, read_batches
from mainstem.cluster.delta import MetadataDelta
from mainstem.cluster.features import metadata_version
from mainstem.cluster.image import MetadataImage
from mainstem.cluster.raft.control_records import (
    ControlRecord,
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
    control_batch,
    decode_control,
)
from mainstem.cluster.records import MetadataRecord, decode_record
from mainstem.cluster.records.versions import record_encoder
from mainstem.cluster.snapshot_records import snapshot_records
from mainstem.protocol.errors import ProtocolError
from mainstem.protocol.primitives import Buffer

BOOTSTRAP_FILE = "bootstrap.checkpoint"
SUFFIX = ".checkpoint"
_FILE_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
# Small enough that making one batch does not hold up whoever shares the thread.
_RECORDS_PER_BATCH = 256


class SnapshotId(Struct, frozen=True, order=True):
    """The end offset, exclusive, and the epoch of the last contained record."""

    offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        return f"{self.offset:020d}-{self.epoch:010d}{SUFFIX}"

    @staticmethod
    def from_file_name(name: str) -> "SnapshotId | None":
        match = _FILE_NAME.fullmatch(name)
        return None if match is None else SnapshotId(int(match[1]), int(match[2]))


class Snapshot(Struct, frozen=True):
    """What a snapshot file holds."""

    image: MetadataImage
    kraft_version: int | None
    voters: VotersRecord | None


def snapshot_id(image: MetadataImage) -> SnapshotId:
    return SnapshotId(image.offset + 1, image.epoch)


def snapshot_batches(
    image: MetadataImage, kraft_version: int | None, voters: VotersRecord | None, now_ms: int
) -> Iterator[bytearray]:
    """The file's batches one by one, so that the caller can do other things in between."""
    quorum: list[ControlRecord] = []
    if kraft_version is not None:
        quorum.append(KRaftVersionRecord(k_raft_version=kraft_version))
    if voters is not None:
        quorum.append(voters)
    return _file_batches(
        image.timestamp_ms, quorum, snapshot_records(image), image.epoch, now_ms, metadata_version(image)
    )


def bootstrap_batches(records: list[MetadataRecord], level: int, now_ms: int) -> Iterator[bytearray]:
    """What Kafka's format step leaves beside the metadata log: the first records of a new cluster, at their
    level of metadata.version.
    """
    return _file_batches(0, [], iter(records), 0, now_ms, level)


def read_bootstrap(data: Buffer) -> list[MetadataRecord]:
    """The records in such a file; ProtocolError when it is not sound."""
    return [
        decode_record(record.value or b"")
        for _, is_control, records in read_batches(data)
        for record in records
        if not is_control
    ]


def _file_batches(
    last_timestamp_ms: int,
    quorum: list[ControlRecord],
    records: Iterator[MetadataRecord],
    epoch: int,
    now_ms: int,
    level: int,
) -> Iterator[bytearray]:
    encode = record_encoder(level)
    header = SnapshotHeaderRecord(last_contained_log_timestamp=last_timestamp_ms)
    yield control_batch([header, *quorum], base_offset=0, epoch=epoch, timestamp_ms=now_ms)
    offset = 1 + len(quorum)
    while values := [encode(record) for record in islice(records, _RECORDS_PER_BATCH)]:
        yield data_batch(values, base_offset=offset, epoch=epoch, timestamp_ms=now_ms)
        offset += len(values)
    yield control_batch([SnapshotFooterRecord()], base_offset=offset, epoch=epoch, timestamp_ms=now_ms)


def read_snapshot(data: Buffer, identity: SnapshotId, cluster_id: str) -> Snapshot:
    """The snapshot in a file's bytes; ProtocolError or ReplayError when it is not complete and sound."""
    delta = MetadataDelta(MetadataImage(cluster_id=cluster_id))
    header: SnapshotHeaderRecord | None = None
    footer: SnapshotFooterRecord | None = None
    kraft_version: int | None = None
    voters: VotersRecord | None = None
    for _, is_control, records in read_batches(data):
        if footer is not None:
            raise ProtocolError("the snapshot goes on after its footer")
        for record in records:
            message = decode_control(record) if is_control else None
            if header is None and not isinstance(message, SnapshotHeaderRecord):
                raise ProtocolError("the snapshot does not begin with its header")
            if not is_control:
                delta.replay(decode_record(record.value or b""))
            elif isinstance(message, SnapshotHeaderRecord):
                header = message
            elif isinstance(message, SnapshotFooterRecord):
                footer = message
            elif isinstance(message, KRaftVersionRecord):
                kraft_version = message.k_raft_version
                delta.set_kraft_version(kraft_version)
            elif isinstance(message, VotersRecord):
                voters = message
    if header is None or footer is None:
        raise ProtocolError("the snapshot ends before its footer")
    image = delta.build(identity.offset - 1, identity.epoch, header.last_contained_log_timestamp)
    return Snapshot(image, kraft_version, voters)
