"""Fetch and FetchSnapshot as the leader serves them: to voters, observers, and whoever looks who leads."""

from typing import TYPE_CHECKING

from mainstem.cluster.raft.effects import ReplySnapshotChunk
from mainstem.cluster.raft.events import Asked
from mainstem.cluster.raft.framing import (
    fetch_response,
    fetch_snapshot_response,
    has_cluster_id,
    only_fetched,
    only_snapshot,
)
from mainstem.cluster.raft.leader import Leader
from mainstem.cluster.raft.voters import ReplicaKey
from mainstem.cluster.raft.waiting import WaitingFetch, answer_records, good_answer
from mainstem.cluster.snapshot import SnapshotId
from mainstem.protocol.apis import k59_fetch_snapshot as k59
from mainstem.protocol.apis.k01_fetch import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from mainstem.protocol.apis.k01_fetch import SnapshotId as FetchedSnapshotId
from mainstem.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from mainstem.cluster.raft.replica import Replica

# The first version whose requests carry the replica in a struct of its own.
_REPLICA_STATE_VERSION = 15
# What a format step leaves; it holds nothing that is worth fetching.
_BOOTSTRAP_SNAPSHOT = SnapshotId(0, 0)


def refusal(replica: "Replica", epoch: int) -> ErrorCode | None:
    """What is wrong with a request that only the leader of `epoch` answers."""
    if epoch < replica.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch > replica.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    if not isinstance(replica.role, Leader):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if replica.stopping:
        return ErrorCode.BROKER_NOT_AVAILABLE
    return None


# ---- Fetch


def on_fetch(replica: "Replica", asked: Asked) -> None:
    request = asked.request
    assert isinstance(request, FetchRequest)
    response = _fetch(replica, asked, request)
    if response is not None:
        replica.reply(asked.token, response)


def _fetch(replica: "Replica", asked: Asked, request: FetchRequest) -> FetchResponse | None:
    """The answer, or None when it is given in another way or later."""
    if not has_cluster_id(replica, request.cluster_id):
        return FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    wanted = only_fetched(request.topics)
    if wanted is None:
        return FetchResponse(error_code=ErrorCode.INVALID_REQUEST)
    if (
        min(request.max_wait_ms, wanted.fetch_offset, wanted.last_fetched_epoch, wanted.current_leader_epoch)
        < 0
    ):
        return _refused(replica, asked, ErrorCode.INVALID_REQUEST)
    if error := refusal(replica, wanted.current_leader_epoch):
        return _refused(replica, asked, error)
    leader = replica.role
    assert isinstance(leader, Leader)
    if (elsewhere := _send_elsewhere(replica, asked, wanted)) is not None:
        leader.heard(replica, _replica_key(asked, request, wanted))
        return elsewhere
    known_high_watermark = wanted.high_watermark
    fetch = WaitingFetch(
        asked.token,
        asked.listener,
        wanted.fetch_offset,
        min(request.max_bytes, wanted.partition_max_bytes),
        known_high_watermark,
        replica.now_ms + request.max_wait_ms,
    )
    leader.followed(replica, _replica_key(asked, request, wanted), wanted.fetch_offset)
    if wanted.fetch_offset < replica.end_offset:
        answer_records(replica, fetch)
        return None
    committed = -1 if replica.high_watermark is None else replica.high_watermark
    if request.max_wait_ms == 0 or known_high_watermark < committed:
        return good_answer(replica, asked.listener)
    leader.waiting.add(fetch)
    return None


def _refused(replica: "Replica", asked: Asked, error: ErrorCode) -> FetchResponse:
    partition = PartitionData(error_code=error, high_watermark=-1, records=b"")
    return fetch_response(replica, asked.listener, partition)


def _replica_key(asked: Asked, request: FetchRequest, wanted: FetchPartition) -> ReplicaKey:
    state = request.replica_state
    if asked.version >= _REPLICA_STATE_VERSION:
        node_id = -1 if state is None else state.replica_id
    else:
        node_id = request.replica_id
    return ReplicaKey(node_id, wanted.replica_directory_id)


def _send_elsewhere(replica: "Replica", asked: Asked, wanted: FetchPartition) -> FetchResponse | None:
    """An answer that says to fetch a snapshot, or where the logs part; None when they agree up to the offset
    that is wanted.
    """
    offset, epoch = wanted.fetch_offset, wanted.last_fetched_epoch
    log, ids = replica.log, replica.log.snapshot_ids()
    newest = ids[-1] if ids else None
    snapshot: SnapshotId | None = None
    if offset == 0 and newest is not None and newest != _BOOTSTRAP_SNAPSHOT:
        snapshot = newest
    elif offset == 0 and log.start_offset == 0:
        return None
    elif ids and (
        offset < log.start_offset
        or epoch < ids[0].epoch
        or (offset == log.start_offset and epoch != ids[0].epoch)
    ):
        snapshot = newest
    partition = PartitionData(
        high_watermark=-1 if replica.high_watermark is None else replica.high_watermark,
        log_start_offset=log.start_offset,
        records=b"",
    )
    if snapshot is not None:
        partition.snapshot_id = FetchedSnapshotId(snapshot.offset, snapshot.epoch)
        return fetch_response(replica, asked.listener, partition)
    found, end_offset = _end_of(replica, epoch)
    if found == epoch and offset <= end_offset:
        return None
    partition.diverging_epoch = EpochEndOffset(found, end_offset)
    return fetch_response(replica, asked.listener, partition)


def _end_of(replica: "Replica", epoch: int) -> tuple[int, int]:
    """The last epoch of this log that is not above `epoch`, and where it ends."""
    if epoch >= replica.last_epoch:
        return replica.last_epoch, replica.end_offset
    found, end_offset = replica.log.end_offset_for_epoch(epoch)
    ids = replica.log.snapshot_ids()
    if found == epoch and ids and end_offset == ids[0].offset:
        # The log knows nothing that old; its beginning is where the oldest snapshot ends.
        return ids[0].epoch, ids[0].offset
    return found, end_offset


# ---- FetchSnapshot


def on_fetch_snapshot(replica: "Replica", asked: Asked) -> None:
    request = asked.request
    assert isinstance(request, k59.FetchSnapshotRequest)
    if not has_cluster_id(replica, request.cluster_id):
        replica.reply(asked.token, k59.FetchSnapshotResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID))
        return
    wanted = only_snapshot(request.topics)
    if wanted is None:
        replica.reply(asked.token, k59.FetchSnapshotResponse(error_code=ErrorCode.INVALID_REQUEST))
        return
    snapshot_id = SnapshotId(wanted.snapshot_id.end_offset, wanted.snapshot_id.epoch)
    chunk = k59.ResponsePartitionSnapshot(snapshot_id=wanted.snapshot_id, position=wanted.position)
    size = replica.log.snapshot_size(snapshot_id)
    error = refusal(replica, wanted.current_leader_epoch)
    if error is None and (size is None or snapshot_id == _BOOTSTRAP_SNAPSHOT):
        error = ErrorCode.SNAPSHOT_NOT_FOUND
    if error is None and size is not None and not 0 <= wanted.position < size:
        error = ErrorCode.POSITION_OUT_OF_RANGE
    if error is not None or size is None:
        chunk.error_code = error or ErrorCode.SNAPSHOT_NOT_FOUND
        replica.reply(asked.token, fetch_snapshot_response(replica, asked.listener, chunk))
        return
    assert isinstance(replica.role, Leader)
    replica.role.heard(replica, ReplicaKey(request.replica_id, wanted.replica_directory_id))
    chunk.size = size
    replica.effects.append(
        ReplySnapshotChunk(
            asked.token,
            fetch_snapshot_response(replica, asked.listener, chunk),
            snapshot_id,
            wanted.position,
            max(1, min(request.max_bytes, size)),
        )
    )
