"""Opening the log in a partition's folder: which files count, where it starts and ends, who produced into it.

After a clean stop this asks for the sizes of the segments and reads nothing else.
"""

import logging
import os
from pathlib import Path
from typing import Unpack

from mainstem.config import LogConfig
from mainstem.logs import about
from mainstem.storage.cleaner.recovery import is_broken_off, recover_swaps
from mainstem.storage.environment import DirectoryHealth, LogEnvironment, OpenOptions
from mainstem.storage.files.checkpoints import read_partition_metadata, write_partition_metadata
from mainstem.storage.files.deletion import remove_path
from mainstem.storage.files.files import Files
from mainstem.storage.log import Log
from mainstem.storage.producers.producer_state import ProducerState, snapshot_offsets, snapshot_path
from mainstem.storage.producers.replay import rebuild_producer_state
from mainstem.storage.producers.transaction_index import TXN_INDEX_SUFFIX, AbortedTransactions
from mainstem.storage.recovery import list_segments, recover_log
from mainstem.storage.segments.segment import (
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    Segment,
)
from mainstem.storage.segments.segments import create_segment

logger = logging.getLogger(__name__)

# Left behind by a crash in the middle of a deletion or the writing of a checkpoint.
_LEFTOVER_SUFFIXES = (DELETED_SUFFIX, ".tmp")
_INDEX_SUFFIXES = (INDEX_SUFFIX, TIME_INDEX_SUFFIX)
_NEED_A_LOG = (*_INDEX_SUFFIXES, TXN_INDEX_SUFFIX)


def open_log(
    directory: Path,
    topic: str,
    partition: int,
    topic_id: bytes | None,
    config: LogConfig,
    **options: Unpack[OpenOptions],
) -> Log:
    """See `Log.open`. Half of a new log is not left behind: the next attempt may make it elsewhere."""
    environment = options.setdefault("environment", LogEnvironment())
    was_there = environment.files.exists(directory)
    try:
        return _open_log(directory, topic, partition, topic_id, config, **options)
    except OSError:
        if not was_there:
            remove_path(environment.files, str(directory))
        raise


def _open_log(
    directory: Path,
    topic: str,
    partition: int,
    topic_id: bytes | None,
    config: LogConfig,
    **options: Unpack[OpenOptions],
) -> Log:
    now_ms, log_start_offset = options["now_ms"], options.get("log_start_offset", 0)
    recovery_point = options.get("recovery_point", 0)
    environment = options["environment"]
    files = environment.files
    path = str(directory)
    segments, names = _list_folder(path, environment, now_ms)
    if topic_id is not None and "partition.metadata" not in names:
        write_partition_metadata(files, path, topic_id)
    elif topic_id is None:
        topic_id = read_partition_metadata(files, path)
    state, closed_well = ProducerState(), True
    if not segments:
        # Never below what was once known, so that no offset is used twice even if somebody removed the files.
        end_offset = max(log_start_offset, recovery_point)
        segments = [create_segment(path, end_offset, now_ms, config, environment)]
    elif options.get("clean") and _is_believable(segments, names, recovery_point):
        end_offset = recovery_point
        state = _load_producer_state(files, path, names, segments, end_offset)
    else:
        whole_from = None if config.compact else options.get("cleaned_to", 0)
        report = options.get("recovered") or recover_log(
            files, path, recovery_point, config.index_interval_bytes, now_ms, whole_from=whole_from
        )
        end_offset, state = report.log_end_offset, report.producer_state
        recovery_point, closed_well = min(recovery_point, end_offset), False
        names = set()
        segments = list_segments(path, environment.handles, now_ms, names)
    log = Log(
        path,
        topic,
        partition,
        topic_id,
        config,
        segments,
        log_start_offset=max(log_start_offset, segments[0].base_offset),
        log_end_offset=end_offset,
        recovery_point=recovery_point,
        producer_state=state,
        aborted=AbortedTransactions(files, path, _with_transaction_index(names), synced=closed_well),
        health=options.get("health") or DirectoryHealth(directory.parent),
        environment=environment,
        closed_well=closed_well,
        now_ms=now_ms,
    )
    state.remove_expired(now_ms, environment.producer_id_expiration_ms)
    if log.log_start_offset > end_offset:
        _begin_at_start_offset(log, now_ms)
    return log


def _begin_at_start_offset(log: Log, now_ms: int) -> None:
    """The log ends before the offset that it starts at: nothing in it can be read any more."""
    end_offset, start_offset = log.log_end_offset, log.log_start_offset
    logger.warning(
        "%s ends at %d, before its start offset %d",
        log.name,
        end_offset,
        start_offset,
        extra=about(log, offset=end_offset),
    )
    log.truncate_fully_and_start_at(start_offset, now_ms)


def _list_folder(path: str, environment: LogEnvironment, now_ms: int) -> tuple[list[Segment], set[str]]:
    """The segments and all file names of a folder, which is made if need be and cleared of leftovers."""
    names: set[str] = set()
    try:
        segments = list_segments(path, environment.handles, now_ms, names)
    except FileNotFoundError:
        environment.files.make_folders(path)
        return [], names
    if is_broken_off(names):
        recover_swaps(environment.files, path)
        names.clear()
        segments = list_segments(path, environment.handles, now_ms, names)
    _remove_leftovers(environment.files, path, names)
    return segments, names


def _remove_leftovers(files: Files, path: str, names: set[str]) -> None:
    """Remove what a crash left behind, and indexes without a log, from the folder and from `names`."""
    leftovers = [
        name
        for name in names
        if name.endswith(_LEFTOVER_SUFFIXES)
        or (name.endswith(_NEED_A_LOG) and name.rpartition(".")[0] + LOG_SUFFIX not in names)
    ]
    for name in leftovers:
        remove_path(files, os.path.join(path, name))
        names.discard(name)


def _with_transaction_index(names: set[str]) -> list[int]:
    """The base offsets of the segments that have one."""
    return [int(name[:20]) for name in names if name.endswith(TXN_INDEX_SUFFIX) and name[:20].isdigit()]


def _is_believable(segments: list[Segment], names: set[str], end_offset: int) -> bool:
    """Whether the files can be what a clean stop at `end_offset` left."""
    active = segments[-1]
    if end_offset < active.base_offset or (active.size > 0 and end_offset == active.base_offset):
        return False
    return all(
        f"{segment.base_offset:020d}{suffix}" in names
        for segment in segments
        for suffix in _INDEX_SUFFIXES
        if segment.size
    )


def _load_producer_state(
    files: Files, path: str, names: set[str], segments: list[Segment], end_offset: int
) -> ProducerState:
    """From the snapshots. A log that was closed well and has none had no producers to remember."""
    offsets = snapshot_offsets(names)
    if not offsets:
        return ProducerState()
    bases = {segment.base_offset for segment in segments}
    for offset in offsets[:-1]:
        if offset not in bases:
            remove_path(files, snapshot_path(path, offset))
    return rebuild_producer_state(files, path, segments, end_offset)
