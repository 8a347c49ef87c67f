"""Opening the metadata log: making a new one, replaying an old one, and beginning a new epoch as its leader.

Everything that must be on disk before the node may decide anything is on disk when this returns.
"""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from mainstem.broker.metadata.log import MetadataLog
from mainstem.broker.metadata.snapshots import SnapshotStore, write_file
from mainstem.cluster.batches import metadata_batches
from mainstem.cluster.features import (
    KRAFT_VERSION_LEVEL,
    METADATA_VERSION,
    bootstrap_records,
    metadata_version,
)
from mainstem.cluster.image import MetadataImage
from mainstem.cluster.raft.control_records import (
    ControlRecord,
    KRaftVersionFeature,
    KRaftVersionRecord,
    VoterEndpoint,
    VoterEntry,
    VotersRecord,
    control_batch,
)
from mainstem.cluster.raft.quorum import Effect, Quorum, StoreQuorumState
from mainstem.cluster.raft.quorum_state import (
    QUORUM_STATE_FILE,
    QuorumState,
    decode_quorum_state,
    encode_quorum_state,
)
from mainstem.cluster.records import AbortTransactionRecord
from mainstem.cluster.replay import Replayer
from mainstem.cluster.snapshot import (
    BOOTSTRAP_FILE,
    Snapshot,
    SnapshotId,
    bootstrap_batches,
    snapshot_batches,
)
from mainstem.cluster.topic_names import CLUSTER_METADATA_TOPIC
from mainstem.cluster.topics_delta import ReplayError
from mainstem.config import BrokerConfig, LogConfig
from mainstem.protocol.errors import KafkaError, ProtocolError
from mainstem.protocol.uuids import ONE_UUID
from mainstem.storage.environment import DirectoryHealth, LogEnvironment
from mainstem.storage.files.checkpoints import read_file, write_atomically
from mainstem.storage.files.files import Files
from mainstem.storage.log import Log

logger = logging.getLogger(__name__)

_READ_BYTES_MAX = 8 * 1024 * 1024
_OPEN_FILES_MAX = 8
_FIRST_SNAPSHOT = SnapshotId(0, 0)


class MetadataLogError(Exception):
    """The metadata log cannot be used; the message says why and what to do."""


class _Loaded(Struct):
    """What the files gave."""

    log: Log
    replayer: Replayer
    snapshots: SnapshotStore
    bytes_since_snapshot: int


def open_metadata_log(
    directory: Path,
    *,
    node_id: int,
    directory_id: bytes,
    cluster_id: str,
    config: BrokerConfig,
    now_ms: Callable[[], int],
    voter_endpoints: Sequence[tuple[str, str, int]],
    health: DirectoryHealth | None,
    files: Files,
) -> MetadataLog:
    """See `MetadataLog.open`."""
    folder = directory / f"{CLUSTER_METADATA_TOPIC}-0"
    voters = _voters(node_id, directory_id, voter_endpoints)
    try:
        _format_if_new(files, directory, folder, voters, now_ms())
        loaded = _load(files, folder, cluster_id, config, health or DirectoryHealth(directory), now_ms())
        log, replayer = loaded.log, loaded.replayer
        stored = _read_quorum_state(files, folder, _peers(node_id, replayer.voters))
        quorum = Quorum(node_id, (node_id,), stored, log.leader_epochs.latest_epoch, log.log_end_offset)
        for effect in quorum.start():
            _perform(effect, folder, log, replayer, voters, now_ms())
        _complete(log, replayer, quorum.epoch, now_ms())
        log.flush(now_ms())
    except OSError as error:
        raise MetadataLogError(
            f"cannot use the metadata log in {folder}: {error.strerror or error}"
        ) from error
    except KafkaError as error:
        raise MetadataLogError(f"cannot use the metadata log in {folder}: {error.message}") from error
    quorum.log_is_durable_to(log.log_end_offset)
    return MetadataLog(
        log,
        loaded.snapshots,
        quorum,
        replayer.image.with_controller(quorum.leader_id),
        kraft_version=replayer.kraft_version,
        voters=replayer.voters,
        config=config,
        now_ms=now_ms,
        bytes_since_snapshot=loaded.bytes_since_snapshot,
    )


def _voters(node_id: int, directory_id: bytes, endpoints: Sequence[tuple[str, str, int]]) -> VotersRecord:
    entry = VoterEntry(
        node_id,
        directory_id,
        [VoterEndpoint(*endpoint) for endpoint in endpoints],
        KRaftVersionFeature(0, KRAFT_VERSION_LEVEL),
    )
    return VotersRecord(voters=[entry])


def _format_if_new(files: Files, directory: Path, folder: Path, voters: VotersRecord, now_ms: int) -> None:
    """Leave what Kafka's format step leaves: the first records, and a snapshot that names the voters.

    The snapshot comes last: a folder without any snapshot or segment was never finished, and is made again.
    """
    files.make_folders(folder)
    if any(name.endswith((".log", ".checkpoint")) for name in files.listdir(folder)):
        return
    write_file(files, directory / BOOTSTRAP_FILE, bootstrap_batches(bootstrap_records(), now_ms))
    empty = MetadataImage(timestamp_ms=now_ms)
    batches = snapshot_batches(empty, KRAFT_VERSION_LEVEL, voters, now_ms)
    write_file(files, folder / _FIRST_SNAPSHOT.file_name, batches)


def _load(
    files: Files, folder: Path, cluster_id: str, config: BrokerConfig, health: DirectoryHealth, now_ms: int
) -> _Loaded:
    snapshots = SnapshotStore(files, folder)
    snapshots.remove_leftovers()
    ids = snapshots.ids()
    found = snapshots.newest_sound(cluster_id)
    identity, snapshot = found or (
        _FIRST_SNAPSHOT,
        Snapshot(MetadataImage(cluster_id=cluster_id), None, None),
    )
    log = Log.open(
        folder,
        CLUSTER_METADATA_TOPIC,
        0,
        ONE_UUID,
        _log_config(config),
        now_ms=now_ms,
        # A snapshot is taken of what is durable, so that the log before it needs no second look.
        recovery_point=identity.offset,
        log_start_offset=ids[0].offset if ids else 0,
        health=health,
        environment=LogEnvironment(files=files, open_files_max=_OPEN_FILES_MAX),
    )
    if log.log_end_offset < identity.offset:
        logger.warning("the metadata log ends before its newest snapshot, %s", snapshots.path(identity))
        log.truncate_fully_and_start_at(identity.offset, now_ms)
    if log.log_start_offset > identity.offset:
        raise MetadataLogError(
            f"the metadata log in {folder} starts at {log.log_start_offset}, and no snapshot reaches that; "
            "restore the folder from a copy"
        )
    replayer = Replayer(snapshot.image)
    replayer.kraft_version, replayer.voters = snapshot.kraft_version, snapshot.voters
    return _Loaded(log, replayer, snapshots, _replay(log, replayer, identity.offset))


def _replay(log: Log, replayer: Replayer, offset: int) -> int:
    """Replay the log from `offset` on; returns how many bytes that was."""
    total = 0
    while offset < log.log_end_offset:
        read = log.read(offset, _READ_BYTES_MAX)
        if read.records is None:
            break
        data = read.records.read()
        try:
            replayer.replay(data)
        except (ProtocolError, ReplayError) as error:
            raise MetadataLogError(
                f"the metadata log in {log.directory} cannot be understood after offset "
                f"{replayer.image.offset}: {error}"
            ) from error
        total += len(data)
        offset = replayer.image.offset + 1
    return total


def _log_config(config: BrokerConfig) -> LogConfig:
    segment_bytes = config.get("metadata.log.segment.bytes")
    return LogConfig(
        segment_bytes=segment_bytes,
        segment_ms=config.get("metadata.log.segment.ms"),
        max_message_bytes=segment_bytes,
        # Snapshots decide what is forgotten, never age or size alone.
        retention_ms=-1,
        retention_bytes=-1,
        # Nobody sends from these files, so that they can go at once.
        file_delete_delay_ms=0,
    )


def _peers(node_id: int, voters: VotersRecord | None) -> list[int]:
    """The other voters, as far as the log says."""
    return [voter.voter_id for voter in (voters.voters if voters else ()) if voter.voter_id != node_id]


def _read_quorum_state(files: Files, folder: Path, peers: list[int]) -> QuorumState:
    path = folder / QUORUM_STATE_FILE
    try:
        return decode_quorum_state(read_file(files, path))
    except FileNotFoundError:
        return QuorumState()
    except ProtocolError as error:
        if peers:
            raise MetadataLogError(
                f"{path} cannot be read ({error}), and this node may have voted: with the voters {peers} it "
                "must not vote again in the same epoch; restore the file, or begin with an empty directory"
            ) from error
        # Alone in the quorum, the epochs in the log are enough; there was nobody else to vote for.
        logger.error("%s is ignored: %s", path, error)
        return QuorumState()


def _perform(
    effect: Effect, folder: Path, log: Log, replayer: Replayer, voters: VotersRecord, now_ms: int
) -> None:
    if isinstance(effect, StoreQuorumState):
        write_atomically(log.environment.files, folder / QUORUM_STATE_FILE, encode_quorum_state(effect.state))
        return
    control: list[ControlRecord] = [effect.message]
    # What the log itself does not say yet: at the first start, or after the node's address has changed.
    if log.log_end_offset == 0 or replayer.kraft_version != KRAFT_VERSION_LEVEL:
        control.append(KRaftVersionRecord(k_raft_version=KRAFT_VERSION_LEVEL))
    if log.log_end_offset == 0 or replayer.voters != voters:
        control.append(voters)
    _append(
        log,
        replayer,
        control_batch(control, base_offset=log.log_end_offset, epoch=effect.epoch, timestamp_ms=now_ms),
        now_ms,
    )


def _complete(log: Log, replayer: Replayer, epoch: int, now_ms: int) -> None:
    """Finish what an earlier start began and did not get done."""
    if replayer.in_transaction:
        abort = [AbortTransactionRecord("the node stopped before the transaction was complete")]
        _append_records(log, replayer, abort, epoch, now_ms)
    if METADATA_VERSION not in replayer.image.features:
        _append_records(log, replayer, bootstrap_records(), epoch, now_ms)


def _append_records(log: Log, replayer: Replayer, records: Sequence[object], epoch: int, now_ms: int) -> None:
    data, _ = metadata_batches(
        records,
        base_offset=log.log_end_offset,
        epoch=epoch,
        timestamp_ms=now_ms,
        metadata_version=metadata_version(replayer.image),
    )
    _append(log, replayer, data, now_ms)


def _append(log: Log, replayer: Replayer, data: bytearray, now_ms: int) -> None:
    replayer.replay(data)
    log.append_as_follower(data, now_ms)
