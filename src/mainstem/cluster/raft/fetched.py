"""What fetches bring: records to append, a place to truncate to, a snapshot to fetch instead.

The leader is believed where its epoch is right; bytes are believed only after a look at each batch.
"""

import logging
from typing import TYPE_CHECKING

from msgspec import Struct

from mainstem.cluster.raft.answers import ABOUT_THE_EPOCH, common_answer
from mainstem.cluster.raft.control_records import ControlRecord, decode_control
from mainstem.cluster.raft.effects import DropSnapshot, InstallSnapshot, WriteSnapshotChunk
from mainstem.cluster.raft.events import SnapshotInstalled, SnapshotUnusable
from mainstem.cluster.raft.follower import FetchingSnapshot, Follower
from mainstem.cluster.raft.framing import endpoints_said, only_answered, only_chunk
from mainstem.cluster.raft.quorum_state import NOBODY
from mainstem.cluster.snapshot import SnapshotId
from mainstem.protocol.apis.k01_fetch import EpochEndOffset, FetchResponse, PartitionData
from mainstem.protocol.apis.k59_fetch_snapshot import FetchSnapshotResponse, ResponsePartitionSnapshot
from mainstem.protocol.errors import ErrorCode, ProtocolError
from mainstem.protocol.primitives import Buffer
from mainstem.records.batch import HEADER_SIZE, MAGIC, BatchHeader, batch_size, crc_is_valid, read_header
from mainstem.records.record import RecordError, iter_records

if TYPE_CHECKING:
    from mainstem.cluster.raft.replica import Replica

logger = logging.getLogger(__name__)


class _Batches(Struct, gc=False):
    """The front part of what was fetched, as far as it is sound and fits onto the log."""

    size: int
    end_offset: int
    last_epoch: int
    control: list[tuple[int, ControlRecord]]


def on_fetch_answer(replica: "Replica", response: FetchResponse) -> bool:
    """Whether it brought anything; the destination is left alone for a while if not."""
    if response.error_code:
        _complain(replica, response.error_code)
        return False
    partition = only_answered(response.responses)
    if partition is None:
        return False
    current = partition.current_leader
    leader_id, epoch = (NOBODY, -1) if current is None else (current.leader_id, current.leader_epoch)
    endpoints = endpoints_said(replica, leader_id, response.node_endpoints)
    handled = common_answer(replica, partition.error_code, leader_id, epoch, endpoints)
    if handled is not None:
        return handled
    role = replica.role
    if partition.error_code or not isinstance(role, Follower):
        return False
    useful = _take(replica, role, partition)
    role.fetched(replica.now_ms)
    return useful


def _complain(replica: "Replica", error: int) -> None:
    if error == ErrorCode.INCONSISTENT_CLUSTER_ID:
        replica.complain(
            "the node that was asked for the metadata log is not of this cluster "
            f"({replica.identity.cluster_id}): check controller.quorum.bootstrap.servers and "
            "controller.quorum.voters"
        )


def _take(replica: "Replica", role: Follower, partition: PartitionData) -> bool:
    diverging, snapshot = partition.diverging_epoch, partition.snapshot_id
    if diverging is not None and diverging.epoch >= 0:
        return _truncate(replica, diverging)
    if snapshot is not None and (snapshot.epoch >= 0 or snapshot.end_offset >= 0):
        return _begin_snapshot(replica, role, SnapshotId(snapshot.end_offset, snapshot.epoch))
    records = partition.records
    useful = (
        not isinstance(records, bytes | bytearray | memoryview) or not records or _append(replica, records)
    )
    if partition.high_watermark >= 0:
        replica.raise_high_watermark(min(partition.high_watermark, replica.end_offset))
    return useful


def _append(replica: "Replica", records: Buffer) -> bool:
    sound = _sound_batches(replica, memoryview(records))
    if sound.size == 0:
        replica.complain(
            f"the records that were fetched at offset {replica.end_offset} of the metadata log are damaged "
            "or do not follow; they are fetched again"
        )
        return False
    replica.appended(memoryview(records)[: sound.size], sound.end_offset, sound.last_epoch)
    for offset, record in sound.control:
        replica.history.append(offset, record)
    return True


def _sound_batches(replica: "Replica", view: memoryview) -> _Batches:
    """A fetch may end within a batch; a batch of an epoch after the leader's, or before the last one's, is no
    part of its log, whatever it says.
    """
    found = _Batches(0, replica.end_offset, replica.last_epoch, [])
    while len(view) - found.size >= HEADER_SIZE:
        size = batch_size(view, found.size)
        if size < HEADER_SIZE or size > len(view) - found.size:
            break
        batch = view[found.size : found.size + size]
        header = read_header(batch)
        if (
            header.magic != MAGIC
            or not crc_is_valid(batch)
            or header.base_offset != found.end_offset
            or header.last_offset_delta < 0
            or not found.last_epoch <= header.partition_leader_epoch <= replica.epoch
        ):
            break
        try:
            if header.is_control:
                found.control += _control_records(header, batch)
        except (ProtocolError, RecordError, ValueError) as error:
            logger.warning("the control batch at offset %d cannot be read: %s", header.base_offset, error)
            break
        found.size += size
        found.end_offset = header.next_offset
        found.last_epoch = header.partition_leader_epoch
    return found


def _control_records(header: BatchHeader, batch: memoryview) -> list[tuple[int, ControlRecord]]:
    records = [
        (record.offset, message)
        for record in iter_records(batch)
        if (message := decode_control(record)) is not None
    ]
    if any(not header.base_offset <= offset <= header.last_offset for offset, _ in records):
        raise ProtocolError("a record's offset lies outside of its batch")
    return records


def _truncate(replica: "Replica", diverging: EpochEndOffset) -> bool:
    """Both logs agree up to the end of the leader's epoch, or of this log's epoch before that."""
    epoch, end_offset = replica.log.end_offset_for_epoch(diverging.epoch)
    agreed = end_offset if epoch != diverging.epoch else min(end_offset, diverging.end_offset)
    if diverging.epoch == 0:
        agreed = min(diverging.end_offset, replica.end_offset)
    lowest = replica.log.start_offset if replica.high_watermark is None else replica.high_watermark
    if not lowest <= agreed < replica.end_offset:
        replica.complain(
            f"the leader wants the metadata log cut at {agreed} (epoch {diverging.epoch}), but it ends at "
            f"{replica.end_offset}, and everything below {lowest} is committed"
        )
        return False
    replica.truncate(agreed)
    return True


# ---- snapshots


def _begin_snapshot(replica: "Replica", role: Follower, snapshot_id: SnapshotId) -> bool:
    if snapshot_id.offset < 0 or not 0 <= snapshot_id.epoch <= replica.epoch:
        return False
    if snapshot_id.offset < (replica.high_watermark or 0):
        replica.complain(
            f"the leader offers the snapshot {snapshot_id.file_name}, but everything below "
            f"{replica.high_watermark} is committed"
        )
        return False
    role.fetching_snapshot = FetchingSnapshot(snapshot_id)
    return True


def on_fetch_snapshot_answer(replica: "Replica", response: FetchSnapshotResponse) -> bool:
    if response.error_code:
        _complain(replica, response.error_code)
        return False
    partition = only_chunk(response.topics)
    if partition is None:
        return False
    current = partition.current_leader
    leader_id, epoch = (NOBODY, -1) if current is None else (current.leader_id, current.leader_epoch)
    endpoints = endpoints_said(replica, leader_id, response.node_endpoints)
    # Other errors are about the snapshot, and end its fetching.
    error = partition.error_code if partition.error_code in ABOUT_THE_EPOCH else ErrorCode.NONE
    handled = common_answer(replica, error, leader_id, epoch, endpoints)
    if handled is not None:
        return handled
    role = replica.role
    if not isinstance(role, Follower) or role.fetching_snapshot is None:
        return False
    role.fetched(replica.now_ms)
    return _take_chunk(replica, role, role.fetching_snapshot, partition)


def _take_chunk(
    replica: "Replica", role: Follower, fetching: FetchingSnapshot, chunk: ResponsePartitionSnapshot
) -> bool:
    snapshot_id, data = fetching.snapshot_id, chunk.unaligned_records
    if not isinstance(data, bytes | bytearray | memoryview):
        data = b""
    size = len(data)
    if (
        chunk.error_code
        or SnapshotId(chunk.snapshot_id.end_offset, chunk.snapshot_id.epoch) != snapshot_id
        or chunk.position != fetching.position
        or not 0 < size <= chunk.size - chunk.position
    ):
        # The leader has a newer one by now, or has made a mistake: its next answer to a fetch will say.
        role.fetching_snapshot = None
        replica.effects.append(DropSnapshot(snapshot_id))
        return False
    replica.effects.append(WriteSnapshotChunk(snapshot_id, fetching.position, data))
    fetching.position += size
    if fetching.position == chunk.size:
        role.fetching_snapshot = None
        replica.installing = snapshot_id
        replica.effects.append(InstallSnapshot(snapshot_id))
    return True


def on_snapshot_installed(replica: "Replica", event: SnapshotInstalled) -> None:
    assert event.snapshot_id == replica.installing
    assert event.snapshot_id.offset >= (replica.high_watermark or 0), "what is committed stays"
    replica.installing = None
    replica.end_offset = replica.durable_offset = event.snapshot_id.offset
    replica.last_epoch = event.snapshot_id.epoch
    replica.history.load_snapshot(event.snapshot_id.offset, event.kraft_version, event.voters)
    replica.raise_high_watermark(event.snapshot_id.offset)
    _disk_is_free(replica)


def on_snapshot_unusable(replica: "Replica", event: SnapshotUnusable) -> None:
    assert event.snapshot_id == replica.installing
    logger.warning(
        "the snapshot %s that was fetched is damaged; it is fetched again", event.snapshot_id.file_name
    )
    replica.installing = None
    _disk_is_free(replica)


def _disk_is_free(replica: "Replica") -> None:
    if isinstance(replica.role, Follower):
        replica.role.own_disk_was_busy(replica.now_ms)
