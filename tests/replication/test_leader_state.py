"""What the leader of a partition decides: what is committed, and who may be answered."""

from mainstem.replication.leader_state import LeaderState


def leader(*isr: int, end_offset: int = 0) -> LeaderState[str]:
    return LeaderState(1, isr or (1,), end_offset)


def test_a_replica_set_of_one_is_committed_as_soon_as_it_is_durable() -> None:
    state = leader()
    assert state.local_log_advanced(3) == 3
    assert (state.local_end_offset, state.committed_end_offset()) == (3, 3)


def test_what_is_in_the_log_at_the_start_is_committed() -> None:
    assert leader(end_offset=7).committed_end_offset() == 7


def test_committed_is_what_all_in_sync_replicas_have() -> None:
    state = leader(1, 2, 3)
    assert state.local_log_advanced(10) == 0, "one that was not heard of holds everything back"
    state.replica_end_offsets.update({2: 8, 3: 4})
    assert state.local_log_advanced(10) == 4


def test_a_shrunk_in_sync_set_commits_more() -> None:
    state = leader(1, 2)
    state.local_log_advanced(10)
    state.take_isr((1,))
    assert state.committed_end_offset() == 10


def test_a_replica_that_is_proposed_counts_until_the_proposal_is_decided() -> None:
    state = leader(1, 2)
    state.replica_end_offsets.update({2: 8, 3: 5})
    state.local_log_advanced(10)
    state.propose_isr((1, 2, 3))
    assert state.committed_end_offset() == 5
    state.take_isr((1, 2))
    assert state.committed_end_offset() == 8


def test_a_replica_that_is_to_leave_counts_until_it_has_left() -> None:
    state = leader(1, 2)
    state.replica_end_offsets[2] = 8
    state.local_log_advanced(10)
    state.propose_isr((1,))
    assert state.local_log_advanced(11) == 8
    assert state.has_enough_replicas(2), "min.insync.replicas is about the set that holds"
    state.take_isr((1,))
    assert state.committed_end_offset() == 11


def test_acks_all_waits_for_the_high_watermark_and_acks_1_for_the_local_end() -> None:
    state = leader(1, 2)
    state.ack_waiters.add(3, "all")
    state.local_waiters.add(3, "one")
    assert state.take_acknowledged(state.local_log_advanced(3)) == ["one"]
    state.replica_end_offsets[2] = 3
    assert state.take_acknowledged(state.committed_end_offset()) == ["all"]
    assert state.take_acknowledged(3) == []


def test_everybody_who_waits_is_handed_out_when_the_role_ends() -> None:
    state = leader(1, 2)
    state.ack_waiters.add(3, "all")
    state.local_waiters.add(2, "one")
    assert state.take_all_waiters() == ["one", "all"]
    assert state.take_all_waiters() == []


def test_enough_replicas_are_counted_in_the_in_sync_set() -> None:
    state = leader(1, 2)
    assert state.has_enough_replicas(2)
    assert not state.has_enough_replicas(3)
    state.take_isr((1,))
    assert not state.has_enough_replicas(2)
