"""Which directory holds the metadata log, and whether it is the one that this node has always had.

A node that lost that directory has forgotten for whom it voted and what it acknowledged, so that an empty
one in its place is refused: it is formatted on purpose, or brought back. A node of which no directory is
formatted yet is new, which is for others to judge.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from mainstem.broker.errors import StartupError
from mainstem.broker.metadata.formatting import metadata_folder
from mainstem.config import BrokerConfig
from mainstem.storage.directories.meta_properties import (
    MetaProperties,
    read_meta_properties,
    write_meta_properties,
)
from mainstem.storage.errors import LogDirInvalidError
from mainstem.storage.files.files import Files


def metadata_directory(config: BrokerConfig) -> Path:
    return Path(config.get("metadata.log.dir") or config.log_dirs()[0])


def check_kept(files: Files, directory: Path, log_dirs: Sequence[Path]) -> None:
    """Refuse to begin anew in `directory` where another one knows of a life before. StartupError then."""
    if _has_log(files, directory):
        return
    for other in log_dirs:
        if other != directory and _has_log(files, other):
            raise StartupError(
                f"the metadata log lies in {other}, but metadata.log.dir, or else the first of log.dirs, is "
                f"{directory}; give the directories in their former order"
            )
    formatted = [other for other in log_dirs if other != directory and _is_formatted(files, other)]
    if formatted and not _is_formatted(files, directory):
        raise StartupError(
            f"{directory}, where the metadata log belongs, is not formatted, but {formatted[0]} is; bring it "
            "back or, if it is gone for good and the other controllers are well, run mainstem storage format "
            "--ignore-formatted --cluster-id ID --config FILE"
        )


def own_identity(
    files: Files, directory: Path, of_log_dirs: MetaProperties, new_uuid: Callable[[], bytes], now_ms: int
) -> MetaProperties:
    """`meta.properties` of a metadata directory that is none of the log directories. One that has a log but
    no such file went by the identity of the first log directory, and goes on with it.
    """
    meta = read_meta_properties(files, directory)
    if meta is None:
        own_id = of_log_dirs.directory_id if _has_log(files, directory) else new_uuid()
        meta = MetaProperties(of_log_dirs.cluster_id, of_log_dirs.node_id, own_id)
        files.make_folders(directory)
        write_meta_properties(files, directory, meta, now_ms)
    if (meta.cluster_id, meta.node_id) != (of_log_dirs.cluster_id, of_log_dirs.node_id):
        raise LogDirInvalidError(
            f"{directory} belongs to node {meta.node_id} of cluster {meta.cluster_id}, log.dirs to node "
            f"{of_log_dirs.node_id} of cluster {of_log_dirs.cluster_id}"
        )
    return meta


def _has_log(files: Files, directory: Path) -> bool:
    return files.exists(metadata_folder(directory))


def _is_formatted(files: Files, directory: Path) -> bool:
    """One that cannot be read counts as formatted: whoever uses it says what is wrong."""
    try:
        return read_meta_properties(files, directory) is not None
    except (LogDirInvalidError, OSError):
        return True
