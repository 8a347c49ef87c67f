"""Cutting a log back, as a follower does whose end differs from its leader's."""

import logging
import os
from typing import TYPE_CHECKING

from mainstem.logs import about
from mainstem.storage.producers.producer_state import ProducerState, snapshot_offsets, snapshot_path
from mainstem.storage.producers.replay import rebuild_producer_state
from mainstem.storage.producers.transactions import truncate_index
from mainstem.storage.rolling import new_segment

if TYPE_CHECKING:
    from mainstem.storage.log import Log

logger = logging.getLogger(__name__)


def truncate_to(log: "Log", offset: int, now_ms: int) -> bool:
    """See `Log.truncate_to`."""
    if offset < 0:
        raise ValueError(f"cannot truncate {log.name} to offset {offset}")
    log.health.check()
    if offset >= log.log_end_offset:
        return False
    logger.info(
        "truncating %s from %d to %d", log.name, log.log_end_offset, offset, extra=about(log, offset=offset)
    )
    try:
        if offset < log.bases[0]:
            _start_at(log, offset, now_ms)
        else:
            # From the last one backwards: a crash in between leaves a log without holes.
            while log.bases[-1] > offset:
                remove_segment(log, len(log.segments) - 1, now_ms)
            log.active_segment.truncate_to(offset)
            truncate_index(log, offset)
            log.log_end_offset = offset
            log.log_start_offset = min(log.log_start_offset, offset)
            log.leader_epochs.truncate_from_end(offset)
            log.leader_epochs.write()
            log.producer_state = rebuild_producer_state(log.directory, log.segments, offset)
    except OSError as error:
        raise log.health.refuse(error, f"cannot truncate {log.name}") from error
    log.recovery_point = min(log.recovery_point, offset)
    log.forget_epoch()
    log.schedule_flush()
    return True


def truncate_fully_and_start_at(log: "Log", offset: int, now_ms: int) -> None:
    """See `Log.truncate_fully_and_start_at`."""
    if offset < 0:
        raise ValueError(f"{log.name} cannot start at offset {offset}")
    log.health.check()
    logger.info("emptying %s, which now starts at %d", log.name, offset, extra=about(log, offset=offset))
    try:
        _start_at(log, offset, now_ms)
    except OSError as error:
        raise log.health.refuse(error, f"cannot truncate {log.name}") from error
    log.recovery_point = min(log.recovery_point, offset)
    log.forget_epoch()
    log.schedule_flush()


def _start_at(log: "Log", offset: int, now_ms: int) -> None:
    while len(log.segments) > 1:
        remove_segment(log, len(log.segments) - 1, now_ms)
    old = log.segments[0]
    if old.base_offset == offset:
        old.cut_at(0, offset)
        truncate_index(log, offset)
    else:
        replacement = new_segment(log, offset, now_ms)
        log.segments.append(replacement)
        log.bases.append(offset)
        log.active_segment = replacement
        remove_segment(log, 0, now_ms)
    log.log_start_offset = log.log_end_offset = offset
    log.leader_epochs.clear()
    log.leader_epochs.write()
    for snapshot in snapshot_offsets(os.listdir(log.directory)):
        os.unlink(snapshot_path(log.directory, snapshot))  # of producers whose batches are gone
    log.producer_state = ProducerState()


def remove_segment(log: "Log", number: int, now_ms: int) -> None:
    """Take a segment out of the log; its files are renamed now and removed later."""
    segment = log.segments.pop(number)
    log.bases.pop(number)
    log.aborted.forget(segment.base_offset)
    if log.segments:
        log.active_segment = log.segments[-1]
    for path in segment.mark_deleted():
        log.environment.deletions.add(path, now_ms + log.config.file_delete_delay_ms)
