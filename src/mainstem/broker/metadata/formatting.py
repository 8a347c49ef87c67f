"""Formatting: what is in a node's directories before its first start, as Kafka's format step leaves it.

Each directory gets its identity and the first records of the cluster; the one with the metadata log, where
the first voters are told, a snapshot that names them. The identity comes last: a directory without it was
never finished, and is formatted again.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from mainstem.broker.metadata.snapshots import write_file
from mainstem.cluster.features import KRAFT_VERSION_LEVEL, METADATA_VERSION
from mainstem.cluster.image import MetadataImage
from mainstem.cluster.raft.control_records import VotersRecord
from mainstem.cluster.releases import bootstrap_records, release_name
from mainstem.cluster.snapshot import BOOTSTRAP_FILE, SnapshotId, bootstrap_batches, snapshot_batches
from mainstem.cluster.topic_names import CLUSTER_METADATA_TOPIC
from mainstem.storage.directories.meta_properties import (
    MetaProperties,
    read_meta_properties,
    write_meta_properties,
)
from mainstem.storage.errors import LogDirInvalidError
from mainstem.storage.files.files import Files

FIRST_SNAPSHOT = SnapshotId(0, 0)


class FormatError(Exception):
    """The directories cannot be formatted like this; the message says why and what to do."""


class Formatting(Struct, frozen=True):
    """What a new node is to be."""

    cluster_id: str
    node_id: int
    # The levels of the cluster's features.
    levels: Mapping[str, int]
    # The first voters, where the quorum is to know them from its log.
    voters: VotersRecord | None = None


def metadata_folder(directory: Path) -> Path:
    """Where the metadata log lies in its directory."""
    return directory / f"{CLUSTER_METADATA_TOPIC}-0"


def format_directories(
    files: Files,
    directories: Sequence[Path],
    metadata_directory: Path,
    formatting: Formatting,
    *,
    ignore_formatted: bool,
    new_uuid: Callable[[], bytes],
    now_ms: int,
) -> Iterator[str]:
    """Format what is not formatted yet; a line for each directory. FormatError before anything is done."""
    new = _unformatted(files, directories, formatting, ignore_formatted=ignore_formatted)
    if not new:
        yield "All of the log directories are already formatted."
    version = release_name(formatting.levels[METADATA_VERSION])
    for directory in new:
        own_id = None
        kind = "data directory"
        if directory == metadata_directory:
            own_id = _own_directory_id(formatting)
            kind = _kind(formatting, own_id)
        yield f"Formatting {kind} {directory} with {METADATA_VERSION} {version}."
        files.make_folders(directory)
        write_first_records(files, directory, formatting.levels, now_ms)
        if directory == metadata_directory and formatting.voters is not None:
            write_first_snapshot(files, metadata_folder(directory), formatting.voters, now_ms)
        meta = MetaProperties(formatting.cluster_id, formatting.node_id, own_id or new_uuid())
        write_meta_properties(files, directory, meta, now_ms)


def write_first_records(files: Files, directory: Path, levels: Mapping[str, int], now_ms: int) -> None:
    batches = bootstrap_batches(bootstrap_records(levels), levels[METADATA_VERSION], now_ms)
    write_file(files, directory / BOOTSTRAP_FILE, batches)


def write_first_snapshot(files: Files, folder: Path, voters: VotersRecord, now_ms: int) -> None:
    """An empty snapshot that names the voters."""
    files.make_folders(folder)
    empty = MetadataImage(timestamp_ms=now_ms)
    batches = snapshot_batches(empty, KRAFT_VERSION_LEVEL, voters, now_ms)
    write_file(files, folder / FIRST_SNAPSHOT.file_name, batches)


def _unformatted(
    files: Files, directories: Sequence[Path], formatting: Formatting, *, ignore_formatted: bool
) -> list[Path]:
    new = []
    for directory in directories:
        try:
            meta = read_meta_properties(files, directory)
        except (LogDirInvalidError, OSError) as error:
            raise FormatError(f"{directory} cannot be formatted: {error}") from error
        if meta is None:
            new.append(directory)
        elif meta.cluster_id != formatting.cluster_id:
            raise FormatError(
                f"log directory {directory} belongs to cluster {meta.cluster_id}, not to "
                f"{formatting.cluster_id}; give its cluster id, or choose another directory"
            )
        elif meta.node_id != formatting.node_id:
            raise FormatError(
                f"log directory {directory} belongs to node {meta.node_id}, this is node "
                f"{formatting.node_id}; check node.id, or choose another directory"
            )
        elif not ignore_formatted:
            raise FormatError(
                f"log directory {directory} is already formatted; use --ignore-formatted to leave it as it "
                "is and format the others"
            )
    return new


def _own_directory_id(formatting: Formatting) -> bytes | None:
    """The id under which the voters name the directory of this node's metadata log."""
    voters = formatting.voters.voters if formatting.voters is not None else ()
    return next((v.voter_directory_id for v in voters if v.voter_id == formatting.node_id), None)


def _kind(formatting: Formatting, own_id: bytes | None) -> str:
    if formatting.voters is None:
        return "metadata directory"
    return "dynamic metadata directory" if own_id is None else "dynamic metadata voter directory"
