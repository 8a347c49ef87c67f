"""A voter's state machine: alone it leads at once, in an epoch that was never used."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainstem.cluster.raft.control_records import LeaderChangeMessage, LeaderVoter
from mainstem.cluster.raft.quorum import AppendLeaderChange, Quorum, StoreQuorumState
from mainstem.cluster.raft.quorum_state import QuorumState
from mainstem.cluster.raft.roles import Leader, Unattached


def test_a_new_quorum_of_one_leads_from_epoch_one() -> None:
    quorum = Quorum(1, (1,), QuorumState(), log_epoch=-1, log_end_offset=0)
    assert quorum.role == Unattached(0)
    assert quorum.leader_id == -1
    effects = quorum.start()
    voter = [LeaderVoter(1)]
    assert effects == [
        StoreQuorumState(QuorumState(leader_id=1, leader_epoch=1)),
        AppendLeaderChange(1, LeaderChangeMessage(0, 1, voter, voter)),
    ]
    assert isinstance(quorum.role, Leader)
    assert (quorum.leader_id, quorum.epoch) == (1, 1)


@given(st.integers(-1, 1000), st.integers(-1, 1000))
def test_a_new_epoch_is_above_the_stored_one_and_those_in_the_log(stored: int, in_log: int) -> None:
    quorum = Quorum(1, (1,), QuorumState(leader_epoch=stored), in_log, 10)
    quorum.start()
    assert quorum.epoch == max(stored, in_log, 0) + 1


def test_only_what_is_durable_is_committed() -> None:
    quorum = Quorum(1, (1,), QuorumState(), 3, 10)
    quorum.start()
    assert quorum.high_watermark == 0
    assert quorum.log_is_durable_to(12)
    assert quorum.high_watermark == 12
    assert not quorum.log_is_durable_to(12)


@pytest.mark.parametrize("voters", [(), (2,), (1, 2, 3)])
def test_a_quorum_that_is_not_this_node_alone_is_refused(voters: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="only a quorum of node 1 alone"):
        Quorum(1, voters, QuorumState(), 0, 0)
