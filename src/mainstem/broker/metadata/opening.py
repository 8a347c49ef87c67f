"""Opening the metadata log: making a new one, finding what an old one knows, and taking up this node's part
in the quorum.

Everything that must be on disk before the node may vote or decide anything is on disk when this returns.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from mainstem.broker.errors import MetadataLogError
from mainstem.broker.metadata.formatting import (
    FIRST_SNAPSHOT,
    metadata_folder,
    write_first_records,
    write_first_snapshot,
)
from mainstem.broker.metadata.log import MetadataLog
from mainstem.broker.metadata.snapshot_taking import SnapshotTaking
from mainstem.broker.metadata.snapshots import SnapshotStore
from mainstem.broker.quorum.driver import QuorumDriver
from mainstem.broker.quorum.quorum_log import QuorumLog
from mainstem.broker.randomness import Randomness
from mainstem.cluster.batches import control_records
from mainstem.cluster.features import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    KRAFT_VERSION_LEVEL,
    SUPPORTED_FEATURES,
)
from mainstem.cluster.image import MetadataImage
from mainstem.cluster.raft.control_records import (
    ControlRecord,
    KRaftVersionFeature,
    LeaderChangeMessage,
    VoterEndpoint,
    VoterEntry,
    VotersRecord,
)
from mainstem.cluster.raft.history import ControlHistory
from mainstem.cluster.raft.quorum_state import (
    NOBODY,
    QUORUM_STATE_FILE,
    QuorumState,
    decode_quorum_state,
)
from mainstem.cluster.raft.raft import Identity, Raft
from mainstem.cluster.raft.settings import RaftSettings
from mainstem.cluster.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from mainstem.cluster.records import ConfigRecord, FeatureLevelRecord, MetadataRecord
from mainstem.cluster.releases import bootstrap_records, standalone_levels
from mainstem.cluster.replay import Replayer
from mainstem.cluster.snapshot import BOOTSTRAP_FILE, Snapshot, SnapshotId, read_bootstrap
from mainstem.cluster.topic_names import CLUSTER_METADATA_TOPIC
from mainstem.config import BrokerConfig, LogConfig, parse_listeners
from mainstem.config.quorum import QuorumSettings, quorum_settings
from mainstem.protocol.errors import KafkaError, ProtocolError
from mainstem.protocol.resources import ConfigResourceType
from mainstem.protocol.uuids import ONE_UUID
from mainstem.storage.environment import DirectoryHealth, LogEnvironment
from mainstem.storage.files.checkpoints import read_file
from mainstem.storage.files.files import Files
from mainstem.storage.files.real_files import RealFiles
from mainstem.storage.log import Log

if TYPE_CHECKING:
    from mainstem.broker.quorum.connections import QuorumConnections

logger = logging.getLogger(__name__)

_READ_BYTES_MAX = 8 * 1024 * 1024
_OPEN_FILES_MAX = 8
_MIN_INSYNC_REPLICAS = "min.insync.replicas"


class _Member(Struct, frozen=True):
    """Who this node is in the quorum."""

    directory_id: bytes
    cluster_id: str
    settings: QuorumSettings
    # Its own, on its controller's listeners.
    endpoints: tuple[Endpoint, ...]
    # Whether no setting speaks of another controller.
    is_alone: bool

    @property
    def key(self) -> ReplicaKey:
        return ReplicaKey(self.settings.node_id, self.directory_id)

    @property
    def configured_voters(self) -> VoterSet:
        """Who votes as long as the log does not say."""
        settings = self.settings
        if self.is_alone:
            return VoterSet.of([Voter(ReplicaKey(settings.node_id), self.endpoints)])
        addresses = [(node_id, host, port) for node_id, (host, port) in settings.voters.items()]
        return VoterSet.static(addresses, settings.listener)

    @property
    def voters_record(self) -> VotersRecord:
        """This node as the only voter."""
        endpoints = [VoterEndpoint(each.listener, each.host, each.port) for each in self.endpoints]
        feature = KRaftVersionFeature(0, KRAFT_VERSION_LEVEL)
        return VotersRecord(voters=[VoterEntry(self.key.node_id, self.directory_id, endpoints, feature)])


class _Outside(Struct, frozen=True):
    """What the node hands in: disk, time, randomness, and who is told when the node cannot go on."""

    files: Files
    health: DirectoryHealth
    now_ms: Callable[[], int]
    steady_ms: Callable[[], int]
    randomness: Randomness
    on_fatal: Callable[[str], None]


class _Loaded(Struct):
    """What the files gave."""

    log: QuorumLog
    image: MetadataImage
    history: ControlHistory
    # Who votes by a log that knows no voters' records: what its leaders said, or who registered.
    last_known_voters: frozenset[int]


def open_metadata_log(
    directory: Path,
    *,
    node_id: int,
    directory_id: bytes,
    cluster_id: str,
    config: BrokerConfig,
    now_ms: Callable[[], int],
    steady_ms: Callable[[], int] | None = None,
    voter_endpoints: Sequence[tuple[str, str, int]] = (),
    health: DirectoryHealth | None = None,
    files: Files | None = None,
    randomness: Randomness | None = None,
    on_fatal: Callable[[str], None] = logger.critical,
) -> MetadataLog:
    """The metadata log of this directory, with this node's part in the quorum taken up: alone, it leads a new
    epoch, and all is replayed. `voter_endpoints` are its own, on its controller's listeners.

    A directory that has none gets one, as Kafka's format step with --standalone makes it, unless the settings
    name other controllers. Raises MetadataLogError when the disk fails or the log cannot be understood.
    `health` is that of the directory, for whoever else has to know when a write here fails; `on_fatal` is
    told when the node can take part in nothing any more.
    """
    settings = quorum_settings(config)
    listeners = parse_listeners(config) if settings.bootstrap_servers else []
    endpoints = tuple(Endpoint(*endpoint) for endpoint in voter_endpoints)
    assert settings.node_id == node_id
    member = _Member(directory_id, cluster_id, settings, endpoints, settings.stands_alone(listeners))
    outside = _Outside(
        files or RealFiles(),
        health or DirectoryHealth(directory),
        now_ms,
        steady_ms or now_ms,
        randomness or Randomness(),
        on_fatal,
    )
    return _open(directory, member, config, outside)


def _open(directory: Path, member: _Member, config: BrokerConfig, outside: _Outside) -> MetadataLog:
    folder = metadata_folder(directory)
    try:
        if member.is_alone:
            _format_if_new(outside.files, directory, folder, member.voters_record, outside.now_ms())
        loaded = _load(folder, member, config, outside)
        stored = _read_quorum_state(outside.files, folder, member, loaded)
        if member.is_alone and loaded.history.kraft_version == 0:
            _refuse_others_quorum(folder, member, loaded, stored)
            # The voters are recorded when its epoch begins, so that others can join one day.
            loaded.history.load_snapshot(0, KRAFT_VERSION_LEVEL, member.voters_record)
        metadata_log = _assemble(directory, member, config, outside, loaded, stored)
        metadata_log.quorum.start()
    except OSError as error:
        raise MetadataLogError(
            f"cannot use the metadata log in {folder}: {error.strerror or error}"
        ) from error
    except KafkaError as error:
        raise MetadataLogError(f"cannot use the metadata log in {folder}: {error.message}") from error
    metadata_log.is_opening = False
    return metadata_log


def _assemble(
    directory: Path,
    member: _Member,
    config: BrokerConfig,
    outside: _Outside,
    loaded: _Loaded,
    stored: QuorumState | None,
) -> MetadataLog:
    metadata_log = MetadataLog(
        loaded.log,
        Replayer(loaded.image),
        SnapshotTaking(loaded.log, config, outside.now_ms),
        cluster_id=member.cluster_id,
        now_ms=outside.now_ms,
        first_records=lambda: _first_records(outside.files, directory, config),
    )
    raft_settings = _raft_settings(config)
    identity = Identity(
        member.key,
        member.cluster_id,
        member.endpoints,
        member.settings.listener,
        () if member.is_alone else member.settings.bootstrap_servers,
    )

    def connect() -> "QuorumConnections":
        from mainstem.broker.quorum.connections import QuorumConnections  # only with other controllers

        return QuorumConnections(raft_settings, outside.randomness.fraction)

    metadata_log.quorum = QuorumDriver(
        Raft(
            identity,
            raft_settings,
            loaded.log,
            loaded.history,
            stored,
            lambda end: outside.randomness.number(0, end),
        ),
        loaded.log,
        connect,
        metadata_log,
        now_ms=outside.now_ms,
        steady_ms=outside.steady_ms,
        on_fatal=outside.on_fatal,
    )
    return metadata_log


def _raft_settings(config: BrokerConfig) -> RaftSettings:
    def of(name: str) -> int:
        value: int = config.get(f"controller.quorum.{name}")
        return value

    return RaftSettings(
        election_timeout_ms=of("election.timeout.ms"),
        fetch_timeout_ms=of("fetch.timeout.ms"),
        election_backoff_max_ms=of("election.backoff.max.ms"),
        request_timeout_ms=of("request.timeout.ms"),
        retry_backoff_ms=of("retry.backoff.ms"),
        auto_join=bool(of("auto.join.enable")),
        fetch_max_bytes=of("fetch.max.bytes"),
        fetch_snapshot_max_bytes=of("fetch.snapshot.max.bytes"),
    )


def _format_if_new(files: Files, directory: Path, folder: Path, voters: VotersRecord, now_ms: int) -> None:
    """Leave what Kafka's format step leaves, with this node as the only voter.

    The snapshot comes last: a folder without any snapshot or segment was never finished, and is made again.
    """
    files.make_folders(folder)
    if any(name.endswith((".log", ".checkpoint")) for name in files.listdir(folder)):
        return
    if not files.exists(directory / BOOTSTRAP_FILE):
        write_first_records(files, directory, standalone_levels(), now_ms)
    write_first_snapshot(files, folder, voters, now_ms)


def _first_records(files: Files, directory: Path, config: BrokerConfig) -> list[MetadataRecord]:
    """What the format step left for the first controller, as far as this version supports it. Where eligible
    leader replicas count, all nodes must have one mind about how many make a quorum of a partition.
    """
    try:
        found = read_bootstrap(read_file(files, directory / BOOTSTRAP_FILE))
    except FileNotFoundError:
        return bootstrap_records()
    except ProtocolError as error:
        raise MetadataLogError(f"{directory / BOOTSTRAP_FILE} cannot be read: {error}") from error
    records: list[MetadataRecord] = []
    for record in found:
        if isinstance(record, FeatureLevelRecord):
            supported = SUPPORTED_FEATURES.get(record.name)
            if supported is None or record.feature_level > supported.last:
                logger.warning(
                    "%s begins below level %d, which is not supported here", record.name, record.feature_level
                )
                if supported is None:
                    continue
                record = FeatureLevelRecord(record.name, supported.last)
        records.append(record)
    if FeatureLevelRecord(ELIGIBLE_LEADER_REPLICAS_VERSION, 1) in records:
        replicas = config.get(_MIN_INSYNC_REPLICAS)
        records.append(ConfigRecord(ConfigResourceType.BROKER, "", _MIN_INSYNC_REPLICAS, str(replicas)))
    return records


# ---- what is on disk


def _load(folder: Path, member: _Member, config: BrokerConfig, outside: _Outside) -> _Loaded:
    snapshots = SnapshotStore(outside.files, folder)
    outside.files.make_folders(folder)
    snapshots.remove_leftovers()
    ids = snapshots.ids()
    found = snapshots.newest_sound(member.cluster_id)
    identity, snapshot = found or (
        FIRST_SNAPSHOT,
        Snapshot(MetadataImage(cluster_id=member.cluster_id), None, None),
    )
    now_ms = outside.now_ms()
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
        health=outside.health,
        environment=LogEnvironment(files=outside.files, open_files_max=_OPEN_FILES_MAX),
    )
    _fit_to_snapshot(log, snapshots, identity, now_ms)
    if not member.is_alone:
        log.flush(now_ms)  # what is there is believed to be durable, and told to others
    history = ControlHistory(member.configured_voters)
    history.load_snapshot(identity.offset, snapshot.kraft_version, snapshot.voters)
    _find_control_records(log, history, identity.offset)
    last_known = frozenset[int]()
    if member.is_alone and history.kraft_version == 0:
        last_known = _last_known_voters(log, snapshot.image)
    return _Loaded(QuorumLog(log, snapshots), snapshot.image, history, last_known)


def _fit_to_snapshot(log: Log, snapshots: SnapshotStore, identity: SnapshotId, now_ms: int) -> None:
    """A snapshot is of what is committed: a log that does not lead to it is another one's, or came too
    late.
    """
    if log.log_end_offset < identity.offset:
        logger.warning("the metadata log ends before its newest snapshot, %s", snapshots.path(identity))
        log.truncate_fully_and_start_at(identity.offset, now_ms)
    elif log.log_start_offset < identity.offset:
        epoch = log.leader_epochs.epoch_for_offset(identity.offset - 1)
        if epoch not in (identity.epoch, -1):
            logger.warning("the metadata log differs from its newest snapshot, %s", snapshots.path(identity))
            log.truncate_fully_and_start_at(identity.offset, now_ms)
    if log.log_start_offset > identity.offset:
        raise MetadataLogError(
            f"the metadata log in {log.directory} starts at {log.log_start_offset}, and no snapshot reaches "
            "that; restore the folder from a copy"
        )


def _find_control_records(log: Log, history: ControlHistory, offset: int) -> None:
    """Who votes stands in the log, committed or not."""
    for at, message in _control_records(log, offset):
        history.append(at, message)


def _last_known_voters(log: Log, image: MetadataImage) -> frozenset[int]:
    """Where controller.quorum.voters says who votes, each new leader repeats it in the log. The log may have
    lost that to a snapshot, which has the controllers that registered instead.
    """
    newest = frozenset(image.controllers)
    for _, message in _control_records(log, log.log_start_offset):
        if isinstance(message, LeaderChangeMessage) and message.voters:
            newest = frozenset(voter.voter_id for voter in message.voters)
    return newest


def _control_records(log: Log, offset: int) -> Iterator[tuple[int, ControlRecord]]:
    """Those from this offset on, each with its own."""
    first = offset
    while offset < log.log_end_offset:
        read = log.read(offset, _READ_BYTES_MAX)
        if read.records is None:
            break
        try:
            for at, message in control_records(read.records.read()):
                if at >= first:
                    yield at, message
        except ProtocolError as error:
            raise MetadataLogError(
                f"the metadata log in {log.directory} cannot be understood from offset {offset} on: {error}"
            ) from error
        offset = read.next_offset


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


def _read_quorum_state(files: Files, folder: Path, member: _Member, loaded: _Loaded) -> QuorumState | None:
    """None when there is no such file. Without it a former voter could vote twice in one epoch."""
    path = folder / QUORUM_STATE_FILE
    voters = loaded.history.voters
    peers = sorted(voters.ids - {member.settings.node_id}) if member.settings.is_controller else []
    try:
        return decode_quorum_state(read_file(files, path))
    except FileNotFoundError:
        if peers and voters.find(member.key) is not None and loaded.log.end_offset > loaded.log.start_offset:
            raise _may_have_voted(path, "is not there", peers) from None
        return None
    except ProtocolError as error:
        if peers:
            raise _may_have_voted(path, f"cannot be read ({error})", peers) from error
        # Alone in the quorum, the epochs in the log are enough; there was nobody else to vote for.
        logger.error("%s is ignored: %s", path, error)
        return None


def _may_have_voted(path: Path, problem: str, peers: Sequence[int]) -> MetadataLogError:
    return MetadataLogError(
        f"{path} {problem}, and this node may have voted: with the voters {peers} it must not vote again in "
        "the same epoch; restore the file, or begin with an empty directory"
    )


def _refuse_others_quorum(folder: Path, member: _Member, loaded: _Loaded, stored: QuorumState | None) -> None:
    """A node that settings leave alone takes a log over only if nobody else ever had a say in it: what the
    others acknowledged since may not be in it, and they would never follow it again.
    """
    own = member.settings.node_id
    voters = set(loaded.last_known_voters)
    if stored is not None:
        voters |= {stored.leader_id, stored.voted_id, *stored.current_voters} - {NOBODY}
    if voters - {own}:
        raise MetadataLogError(
            f"the metadata log in {folder} was written with the controllers "
            f"{', '.join(map(str, sorted(voters)))}, and the settings name no other than {own}; start the "
            "node with its own server.properties"
        )
