"""What the leader of a partition decides: what is committed, who may be answered, and who is in sync."""

import pytest

from mainstem.replication.brokers import Brokers
from mainstem.replication.leader_state import NOTHING_COMMITTED, LeaderState, Proposal

LAG_MS = 100
EPOCH = 5


def brokers(*unfenced: int) -> Brokers:
    """Each in an epoch ten times its id."""
    known = Brokers(LAG_MS)
    known.epochs = {broker_id: 10 * broker_id for broker_id in unfenced or (1, 2, 3)}
    return known


def leader(
    *isr: int,
    replicas: tuple[int, ...] = (),
    end_offset: int = 0,
    min_isr: int = 1,
    known: Brokers | None = None,
) -> LeaderState[str]:
    isr = isr or (1,)
    state: LeaderState[str] = LeaderState(1, known or brokers(), end_offset, min_isr)
    state.take_metadata(EPOCH, 0, replicas or isr, isr, end_offset, 0)
    return state


def fetched(state: LeaderState[str], broker_id: int, offset: int, now_ms: int = 0, *, start: int = 0) -> None:
    assert state.fetched(broker_id, 10 * broker_id, offset, start, now_ms)


def proposed(proposal: Proposal | None) -> tuple[int, ...] | None:
    return None if proposal is None else proposal.isr


# ---- what is committed


def test_a_replica_set_of_one_is_committed_as_soon_as_it_is_durable() -> None:
    state = leader()
    assert state.local_log_advanced(3, 0) == 3
    assert (state.local_end_offset, state.committed_end_offset(0)) == (3, 3)


def test_what_is_in_the_log_at_the_start_is_committed() -> None:
    assert leader(end_offset=7).committed_end_offset(0) == 7


def test_committed_is_what_all_in_sync_replicas_have() -> None:
    state = leader(1, 2, 3)
    assert state.local_log_advanced(10, 0) < 0, "one that was not heard of holds everything back"
    fetched(state, 2, 8)
    fetched(state, 3, 4)
    assert state.local_log_advanced(10, 0) == 4


def test_a_shrunk_in_sync_set_commits_more() -> None:
    state = leader(1, 2)
    state.local_log_advanced(10, 0)
    state.take_metadata(EPOCH, 1, (1, 2), (1,), 10, LAG_MS + 1)
    assert state.committed_end_offset(LAG_MS + 1) == 10


def test_a_replica_that_is_proposed_counts_until_the_proposal_is_decided() -> None:
    """KAFKA-12686: nobody knows which of the two sets the controller has until it says so."""
    known = brokers()
    state = leader(1, 2, replicas=(1, 2, 3), known=known)
    state.local_log_advanced(10, 0)
    fetched(state, 2, 8)
    fetched(state, 3, 5)
    proposal = state.propose_expansion(5, 0)
    assert proposed(proposal) == (1, 2, 3)
    assert state.committed_end_offset(10_000) == 5
    assert proposal is not None
    assert state.refused(proposal)
    assert state.committed_end_offset(10_000) == 8


def test_a_replica_that_is_to_leave_counts_until_it_has_left() -> None:
    state = leader(1, 2, min_isr=2, replicas=(1, 2, 3))
    fetched(state, 2, 0)
    state.local_log_advanced(8, 0)
    fetched(state, 2, 8, 1)
    state.local_log_advanced(10, 2)
    proposal = state.propose_shrinking(1_000)
    assert proposed(proposal) == (1,)
    assert state.committed_end_offset(1_000) == 8
    assert state.has_enough_replicas, "min.insync.replicas is about the set that holds"
    assert proposal is not None
    state.take_min_insync_replicas(1)
    assert state.accepted(proposal, EPOCH, 1, (1,))
    assert state.committed_end_offset(1_000) == 10


def test_nothing_is_committed_below_min_insync_replicas() -> None:
    state = leader(1, replicas=(1, 2, 3), min_isr=2)
    assert state.local_log_advanced(3, 10_000) == NOTHING_COMMITTED
    state.take_min_insync_replicas(1)
    assert state.committed_end_offset(10_000) == 3


def test_more_replicas_than_there_are_need_not_be_in_sync() -> None:
    state = leader(1, min_isr=2)
    assert state.has_enough_replicas
    assert state.local_log_advanced(3, 0) == 3


def test_a_replica_that_is_about_to_come_into_sync_holds_the_high_watermark_back() -> None:
    state = leader(1, replicas=(1, 2))
    state.local_log_advanced(10, 0)
    fetched(state, 2, 10, 1)
    assert state.local_log_advanced(12, 2) == 10
    assert state.committed_end_offset(2 + LAG_MS) == 10
    assert state.committed_end_offset(3 + LAG_MS) == 12, "it has not caught up since"


@pytest.mark.parametrize("state_of_2", ["fenced", "leaving", "another incarnation"])
def test_a_replica_that_cannot_come_into_sync_holds_nothing_back(state_of_2: str) -> None:
    """KAFKA-15021."""
    known = brokers()
    state = leader(1, replicas=(1, 2), known=known)
    state.local_log_advanced(10, 0)
    fetched(state, 2, 10, 1)
    match state_of_2:
        case "fenced":
            known.epochs = {1: 10}
        case "leaving":
            known.leaving = {2}
        case _:
            known.epochs = {1: 10, 2: 21}
    assert state.local_log_advanced(12, 2) == 12


def test_a_replica_never_heard_of_that_is_not_in_sync_holds_nothing_back() -> None:
    assert leader(1, replicas=(1, 2)).local_log_advanced(3, 0) == 3


# ---- who waits


def test_acks_all_waits_for_the_high_watermark_and_acks_1_for_the_local_end() -> None:
    state = leader(1, 2)
    state.ack_waiters.add(3, "all")
    state.local_waiters.add(3, "one")
    assert state.take_acknowledged(state.local_log_advanced(3, 0)) == ["one"]
    fetched(state, 2, 3)
    assert state.take_acknowledged(state.committed_end_offset(0)) == ["all"]
    assert state.take_acknowledged(3) == []


def test_everybody_who_waits_is_handed_out_when_the_role_ends() -> None:
    state = leader(1, 2)
    state.ack_waiters.add(3, "all")
    state.local_waiters.add(2, "one")
    state.start_waiters.add(1, "start")
    assert state.take_all_waiters() == ["one", "all", "start"]
    assert state.take_all_waiters() == []


def test_enough_replicas_are_counted_in_the_in_sync_set() -> None:
    state = leader(1, 2, min_isr=2)
    assert state.has_enough_replicas
    state.take_min_insync_replicas(3)
    assert state.has_enough_replicas, "there are no more than two"
    state.take_metadata(EPOCH, 1, (1, 2), (1,), 0, 0)
    assert not state.has_enough_replicas


def test_the_low_watermark_is_the_smallest_start_of_the_brokers_that_are_there() -> None:
    known = brokers()
    state = leader(1, 2, 3, known=known)
    assert state.low_watermark(5) == -1, "two were not heard of"
    fetched(state, 2, 9, start=4)
    fetched(state, 3, 9, start=2)
    assert state.low_watermark(5) == 2
    known.epochs = {1: 10, 2: 20}
    assert state.low_watermark(5) == 4
    assert leader().low_watermark(5) == 5


# ---- who comes into sync


def test_a_replica_comes_into_sync_at_the_high_watermark_and_the_start_of_the_epoch() -> None:
    """KAFKA-7128, KIP-207: between the two there may be records that are committed."""
    state = leader(1, replicas=(1, 2), end_offset=10)
    fetched(state, 2, 6)
    assert state.propose_expansion(7, 0) is None, "it lacks what is committed"
    fetched(state, 2, 9)
    assert state.propose_expansion(7, 0) is None, "it lacks what the leader had at its election"
    fetched(state, 2, 10)
    proposal = state.propose_expansion(7, 0)
    assert proposal is not None
    assert (proposal.leader_epoch, proposal.partition_epoch) == (EPOCH, 0)
    assert proposal.members == ((1, -1), (2, 20))
    assert proposal.is_expansion


@pytest.mark.parametrize("state_of_2", ["fenced", "leaving", "another incarnation"])
def test_a_replica_whose_broker_may_not_stay_does_not_come_into_sync(state_of_2: str) -> None:
    """KIP-841, KIP-903: it would leave at once, or may have lost what its former incarnation had."""
    known = brokers()
    state = leader(1, replicas=(1, 2), known=known)
    fetched(state, 2, 0)
    match state_of_2:
        case "fenced":
            known.epochs = {1: 10}
        case "leaving":
            known.leaving = {2}
        case _:
            known.epochs = {1: 10, 2: 21}
    assert state.propose_expansion(0, 0) is None
    known.epochs, known.leaving = {1: 10, 2: 20}, frozenset()
    assert proposed(state.propose_expansion(0, 0)) == (1, 2)


def test_a_fetch_of_a_former_incarnation_is_not_listened_to() -> None:
    state = leader(1, 2)
    state.local_log_advanced(5, 0)
    assert not state.fetched(2, 19, 5, 0, 0)
    assert state.committed_end_offset(0) < 0
    assert state.fetched(2, -1, 5, 0, 0), "one that does not say its epoch is older than epochs"
    assert state.committed_end_offset(0) == 5


def test_all_that_have_come_into_sync_are_proposed_together() -> None:
    state = leader(1, replicas=(1, 2, 3))
    fetched(state, 2, 0)
    fetched(state, 3, 0)
    assert proposed(state.propose_expansion(0, 0)) == (1, 2, 3)
    assert state.propose_expansion(0, 0) is None, "one proposal at a time"
    assert state.propose_shrinking(10_000) is None


def test_one_that_was_taken_out_of_the_set_comes_back_by_a_fetch_alone() -> None:
    """Its disk may have failed: what it said before says nothing of what it has now."""
    state = leader(1, 2, 3)
    for broker_id in (2, 3):
        fetched(state, broker_id, 0)
    state.take_metadata(EPOCH, 1, (1, 2, 3), (1, 2), 0, 1)
    assert state.propose_expansion(0, 1) is None
    state.local_log_advanced(5, 2)
    fetched(state, 2, 5, 2)
    assert state.committed_end_offset(2) == 5, "it holds nothing back either"
    fetched(state, 3, 5, 3)
    assert proposed(state.propose_expansion(5, 3)) == (1, 2, 3)


# ---- who leaves


def test_a_replica_that_does_not_catch_up_in_time_leaves() -> None:
    state = leader(1, 2, 3)
    for broker_id in (2, 3):
        fetched(state, broker_id, 0)
    state.local_log_advanced(4, 10)
    fetched(state, 2, 4, 20)
    assert state.propose_shrinking(10 + LAG_MS) is None
    assert proposed(state.propose_shrinking(11 + LAG_MS)) == (1, 2)


def test_a_replica_that_has_everything_stays_however_long_nothing_comes() -> None:
    state = leader(1, 2)
    fetched(state, 2, 0)
    assert state.propose_shrinking(1_000_000) is None
    state.local_log_advanced(1, 1_000_000)
    assert state.propose_shrinking(1_000_000 + LAG_MS) is None, "it was caught up until just now"
    assert proposed(state.propose_shrinking(1_000_001 + LAG_MS)) == (1,)


def test_one_that_is_always_a_little_behind_stays() -> None:
    state = leader(1, 2)
    fetched(state, 2, 0)
    for turn in range(1, 50):
        state.local_log_advanced(turn * 10, turn * 50)
        fetched(state, 2, turn * 10 - 10, turn * 50 + 1)
        assert state.propose_shrinking(turn * 50 + 2) is None
    assert proposed(state.propose_shrinking(49 * 50 + 2 * LAG_MS)) == (1,)


def test_a_replica_never_heard_of_has_its_time_from_the_beginning_of_the_epoch() -> None:
    state = leader(1, 2, end_offset=3)
    assert state.propose_shrinking(LAG_MS) is None
    assert proposed(state.propose_shrinking(LAG_MS + 1)) == (1,)


# ---- answers and metadata


def test_an_answer_that_comes_after_the_metadata_says_nothing() -> None:
    state = leader(1, replicas=(1, 2, 3))
    fetched(state, 2, 0)
    proposal = state.propose_expansion(0, 0)
    assert proposal is not None
    state.take_metadata(EPOCH, 2, (1, 2, 3), (1, 3), 0, 0)
    assert not state.accepted(proposal, EPOCH, 1, (1, 2))
    assert not state.refused(proposal)
    assert state.isr == (1, 3)


def test_metadata_that_come_after_the_answer_say_nothing() -> None:
    state = leader(1, replicas=(1, 2, 3))
    fetched(state, 2, 0)
    proposal = state.propose_expansion(0, 0)
    assert proposal is not None
    assert state.accepted(proposal, EPOCH, 1, (1, 2))
    fetched(state, 3, 0)
    following = state.propose_expansion(0, 0)
    assert following is not None
    assert following.partition_epoch == 1
    for partition_epoch in (0, 1):
        state.take_metadata(EPOCH, partition_epoch, (1, 2, 3), (1,), 0, 0)
        assert (state.isr, state.proposal) == ((1, 2), following)


def test_an_answer_of_another_epoch_says_nothing() -> None:
    state = leader(1, replicas=(1, 2))
    fetched(state, 2, 0)
    proposal = state.propose_expansion(0, 0)
    assert proposal is not None
    assert not state.accepted(proposal, EPOCH + 1, 9, (1, 2))
    assert state.proposal is proposal


def test_the_same_leader_in_a_new_epoch_begins_where_its_log_ends() -> None:
    state = leader(1, 2)
    fetched(state, 2, 0)
    state.local_log_advanced(6, 0)
    state.take_metadata(EPOCH + 1, 1, (1, 2), (1,), 6, 50)
    fetched(state, 2, 5, 51)
    assert state.propose_expansion(0, 0) is None
    fetched(state, 2, 6, 52)
    proposal = state.propose_expansion(0, 0)
    assert proposal is not None
    assert proposal.leader_epoch == EPOCH + 1


def test_replicas_come_and_go_with_the_metadata() -> None:
    state = leader(1, 2)
    fetched(state, 2, 0)
    state.take_metadata(EPOCH, 1, (1, 3), (1,), 0, 0)
    assert set(state.followers) == {3}
    assert state.lacks_replicas
    fetched(state, 3, 0)
    assert proposed(state.propose_expansion(0, 0)) == (1, 3)


def test_what_followers_had_before_another_leaders_epoch_counts_no_more() -> None:
    """The metadata may tell of several elections at once."""
    state = leader(1, 2)
    state.local_log_advanced(5, 0)
    fetched(state, 2, 4, 0)
    state.take_metadata(EPOCH + 1, 1, (1, 2), (1, 2), 5, 1)
    assert state.committed_end_offset(1) == 4, "it went on with the same leader"
    state.take_metadata(EPOCH + 3, 2, (1, 2), (1, 2), 5, 1)
    assert state.committed_end_offset(1) < 0
    fetched(state, 2, 3, 2)
    assert state.committed_end_offset(2) == 3
