"""What a follower does with its log when it differs from its leader's.

Rules:
- It cuts its log by leader epochs (KIP-101, KIP-279), never back to its high watermark: what lies behind that
  may be committed. Only a log that knows no epoch at all is cut to the high watermark.
- It cuts before it believes anything else of an answer (KAFKA-14704).
- Its high watermark is the leader's, as far as its own log goes, and goes back with the log alone.
- Each cut either ends the difference or makes the last epoch here an older one, so that the next fetch tells
  more; nothing goes on for ever.
"""

from typing import Final, Protocol

UNDEFINED: Final = -1


class ReplicaLog(Protocol):
    """What of a log these decisions rest on."""

    log_start_offset: int
    log_end_offset: int

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest epoch here that is not above this one, and where it ends; UNDEFINED without one."""


def offset_to_cut_to(log: ReplicaLog, leader_epoch: int, leader_end_offset: int, high_watermark: int) -> int:
    """The leader says that the epoch of our last record is unknown to it, or ends earlier: the largest one
    that it knows up to there is `leader_epoch`, and ends at `leader_end_offset`.
    """
    end_offset = log.log_end_offset
    if leader_end_offset == UNDEFINED:
        return min(high_watermark, end_offset)
    own_epoch, own_end_offset = log.end_offset_for_epoch(leader_epoch)
    if UNDEFINED in (leader_epoch, own_epoch):
        return min(leader_end_offset, end_offset)
    if own_epoch != leader_epoch:
        return min(own_end_offset, end_offset)  # the leader says more of this epoch the next time
    return min(own_end_offset, leader_end_offset, end_offset)


def follower_high_watermark(own: int, leaders: int, log_end_offset: int) -> int:
    """What was once committed stays so, even if a new leader does not know it yet."""
    return max(own, min(leaders, log_end_offset))
