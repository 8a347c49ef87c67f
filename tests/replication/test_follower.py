"""Where a follower cuts a log that differs from its leader's."""

from bisect import bisect_right

import pytest

from mainstem.replication.follower import UNDEFINED, follower_high_watermark, offset_to_cut_to


class EpochsOfALog:
    """A log as these decisions see it."""

    def __init__(self, end_offset: int, *entries: tuple[int, int]) -> None:
        self.log_start_offset = 0
        self.log_end_offset = end_offset
        self.entries = list(entries)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        found = bisect_right(self.entries, epoch, key=lambda entry: entry[0])
        if not found:
            return UNDEFINED, UNDEFINED
        end = self.entries[found][1] if found < len(self.entries) else self.log_end_offset
        return self.entries[found - 1][0], end

    def cut(self, offset: int) -> None:
        self.log_end_offset = min(offset, self.log_end_offset)
        self.entries = [entry for entry in self.entries if entry[1] < offset]

    @property
    def last_epoch(self) -> int:
        return self.entries[-1][0] if self.entries else UNDEFINED


def cut(log: EpochsOfALog, epoch: int, end_offset: int, high_watermark: int = 0) -> int:
    return offset_to_cut_to(log, epoch, end_offset, high_watermark)


def test_it_is_cut_where_the_leaders_epoch_ends_and_not_at_the_high_watermark() -> None:
    """KIP-101: what lies behind the high watermark here may be committed."""
    assert cut(EpochsOfALog(10, (1, 0), (2, 8)), 1, 8, high_watermark=3) == 8


def test_it_is_cut_to_the_end_of_the_epoch_here_if_that_is_less() -> None:
    assert cut(EpochsOfALog(10, (1, 0), (2, 5)), 1, 8) == 5


def test_nothing_is_cut_behind_its_end() -> None:
    assert cut(EpochsOfALog(4, (1, 0)), 1, 8) == 4


def test_of_an_epoch_that_is_not_here_the_one_before_is_kept() -> None:
    """KIP-279: the leader has to say once more where that one ends."""
    assert cut(EpochsOfALog(10, (1, 0), (4, 6)), 3, 9) == 6


def test_without_an_older_epoch_here_the_leaders_end_counts() -> None:
    assert cut(EpochsOfALog(10, (5, 4)), 3, 2) == 2


def test_a_leader_that_knows_nothing_has_it_cut_to_the_high_watermark() -> None:
    assert cut(EpochsOfALog(10, (1, 0)), UNDEFINED, UNDEFINED, high_watermark=7) == 7


@pytest.mark.parametrize(
    ("own", "leaders", "end_offset", "expected"), [(3, 5, 9, 5), (3, 5, 4, 4), (6, 5, 9, 6), (0, 0, 0, 0)]
)
def test_the_high_watermark_follows_the_leaders_within_the_log_and_never_back(
    own: int, leaders: int, end_offset: int, expected: int
) -> None:
    assert follower_high_watermark(own, leaders, end_offset) == expected


def test_two_logs_that_led_in_turns_agree_after_a_few_cuts() -> None:
    """The example of KIP-279: each was led alone for a while, in epochs that the other has not."""
    leader = EpochsOfALog(40, (1, 0), (3, 10), (5, 20), (7, 30))
    follower = EpochsOfALog(50, (1, 0), (2, 8), (4, 15), (6, 35))
    cuts = []
    while True:
        epoch, end_offset = leader.end_offset_for_epoch(follower.last_epoch)
        if epoch == follower.last_epoch and end_offset >= follower.log_end_offset:
            break
        follower.cut(cut(follower, epoch, end_offset))
        cuts.append(follower.log_end_offset)
        assert len(cuts) < 10
    assert cuts == [35, 15, 8]
    assert follower.entries == [(1, 0)]
