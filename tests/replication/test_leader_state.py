"""What the leader of a partition decides: the high watermark, and who may be answered."""

from mainstem.replication.leader_state import LeaderState


def leader(*isr: int, end_offset: int = 0) -> LeaderState[str]:
    return LeaderState(1, 5, isr or (1,), isr or (1,), end_offset)


def test_a_replica_set_of_one_is_committed_as_soon_as_it_is_durable() -> None:
    state = leader()
    assert state.local_log_advanced(3)
    assert (state.local_end_offset, state.high_watermark) == (3, 3)
    assert not state.local_log_advanced(3), "nothing moved"


def test_what_is_in_the_log_at_the_start_is_committed() -> None:
    assert leader(end_offset=7).high_watermark == 7


def test_the_high_watermark_is_the_smallest_end_among_the_in_sync_replicas() -> None:
    state = leader(1, 2, 3)
    assert not state.local_log_advanced(10)
    state.replica_end_offsets.update({2: 8, 3: 4})
    assert state.local_log_advanced(10)
    assert state.high_watermark == 4


def test_an_in_sync_replica_that_was_not_heard_of_holds_everything_back() -> None:
    state = leader(1, 2)
    assert not state.local_log_advanced(10)
    assert state.high_watermark == 0


def test_the_high_watermark_never_moves_back() -> None:
    state = leader(1, 2, end_offset=0)
    state.replica_end_offsets[2] = 6
    state.local_log_advanced(6)
    state.replica_end_offsets[2] = 2
    assert not state.local_log_advanced(7)
    assert state.high_watermark == 6
    state.local_log_truncated(6)
    assert (state.local_end_offset, state.high_watermark) == (6, 6)


def test_a_shrunk_in_sync_set_lets_the_watermark_go_on() -> None:
    state = leader(1, 2)
    state.local_log_advanced(10)
    state.isr = (1,)
    assert state.local_log_advanced(10)
    assert state.high_watermark == 10


def test_acks_all_waits_for_the_high_watermark_and_acks_1_for_the_local_end() -> None:
    state = leader(1, 2)
    state.ack_waiters.add(3, "all")
    state.local_waiters.add(3, "one")
    state.local_log_advanced(3)
    assert state.take_acknowledged() == ["one"]
    state.replica_end_offsets[2] = 3
    state.local_log_advanced(3)
    assert state.take_acknowledged() == ["all"]
    assert state.take_acknowledged() == []


def test_enough_replicas_are_counted_in_the_in_sync_set() -> None:
    state = leader(1, 2)
    assert state.has_enough_replicas(2)
    assert not state.has_enough_replicas(3)
    state.isr = (1,)
    assert not state.has_enough_replicas(2)
