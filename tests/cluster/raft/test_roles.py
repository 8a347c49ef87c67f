"""Majorities: who has won, and what is committed."""

import pytest

from mainstem.cluster.raft.roles import Candidate, Leader


@pytest.mark.parametrize(
    ("granted", "voters", "won"),
    [((1,), (1,), True), ((1,), (1, 2), False), ((1, 2), (1, 2, 3), True), ((1, 9), (1, 2, 3), False)],
)
def test_a_candidate_wins_with_more_than_half_of_the_voters(
    granted: tuple[int, ...], voters: tuple[int, ...], won: bool
) -> None:
    assert Candidate(1, frozenset(granted)).has_won(voters) is won


def test_what_a_majority_has_on_disk_is_committed() -> None:
    leader = Leader(2, epoch_start_offset=5, voters=(1, 2, 3))
    assert not leader.voter_is_durable_to(1, 9)
    assert leader.voter_is_durable_to(2, 7)
    assert leader.high_watermark == 7
    assert leader.voter_is_durable_to(3, 20)
    assert leader.high_watermark == 9


def test_records_of_earlier_epochs_are_committed_only_with_one_of_this_epoch() -> None:
    leader = Leader(2, epoch_start_offset=5, voters=(1,))
    assert not leader.voter_is_durable_to(1, 5)
    assert leader.high_watermark == 0
    assert leader.voter_is_durable_to(1, 6)
    assert leader.high_watermark == 6


def test_a_log_never_goes_back() -> None:
    leader = Leader(1, 0, (1,))
    leader.voter_is_durable_to(1, 3)
    with pytest.raises(AssertionError, match="went back"):
        leader.voter_is_durable_to(1, 2)
