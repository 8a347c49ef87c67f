"""Sets of voters, and what the log says of them by offset."""

import pytest

from mainstem.cluster.raft.control_records import KRaftVersionRecord
from mainstem.cluster.raft.history import BEFORE_ALL, ControlHistory
from mainstem.cluster.raft.voters import ReplicaKey, VoterSet
from mainstem.protocol.uuids import ZERO_UUID
from tests.cluster.raft.nodes import directory, static, voter


def test_a_voter_is_an_id_and_a_directory_as_far_as_both_are_known() -> None:
    voters = VoterSet.of([voter(1), voter(2)])
    assert voters.find(ReplicaKey(1, directory(1))) == voter(1)
    assert voters.find(ReplicaKey(1, directory(1, 5))) is None
    assert voters.find(ReplicaKey(1, ZERO_UUID)) == voter(1)
    assert static(1, 2).find(ReplicaKey(1, directory(1))) is not None
    assert voters.find(ReplicaKey(3, directory(3))) is None


def test_a_node_votes_once() -> None:
    with pytest.raises(ValueError, match="votes twice"):
        VoterSet.of([voter(1), voter(1, 5)])


def test_a_set_survives_its_record() -> None:
    voters = VoterSet.of([voter(3), voter(1)])
    assert VoterSet.from_record(voters.to_record()) == voters
    assert [each.key.node_id for each in voters] == [1, 3]


def test_one_voter_more_or_less_shares_a_voter_with_every_majority() -> None:
    three = VoterSet.of([voter(1), voter(2), voter(3)])
    assert three.overlaps_majority(three.with_voter(voter(4)))
    assert three.overlaps_majority(three.without(voter(3).key))
    assert not three.overlaps_majority(three.with_voter(voter(4)).with_voter(voter(5)))
    assert not three.overlaps_majority(three.with_voter(voter(3, 5))), "another directory, another voter"


@pytest.mark.parametrize(("size", "majority"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)])
def test_a_majority_is_more_than_half(size: int, majority: int) -> None:
    assert static(*range(size)).majority == majority


def test_a_record_of_voters_overrides_the_configuration_and_truncation_brings_it_back() -> None:
    history = ControlHistory(static(1))
    history.append(4, VoterSet.of([voter(1), voter(2)]).to_record())
    history.append(5, KRaftVersionRecord(k_raft_version=1))
    history.append(9, VoterSet.of([voter(1)]).to_record())
    assert (history.voters, history.voters_offset, history.kraft_version) == (VoterSet.of([voter(1)]), 9, 1)
    history.truncate(9)
    assert (history.voters.ids, history.voters_offset) == (frozenset((1, 2)), 4)
    history.truncate(4)
    assert (history.voters, history.voters_offset, history.kraft_version) == (static(1), BEFORE_ALL, 0)


def test_a_snapshot_names_the_voters_as_of_its_offset() -> None:
    history = ControlHistory(static(1))
    two, three = VoterSet.of([voter(1), voter(2)]), VoterSet.of([voter(1), voter(2), voter(3)])
    history.append(4, two.to_record())
    history.append(5, KRaftVersionRecord(k_raft_version=1))
    history.append(9, three.to_record())
    assert (history.voters_at(4), history.kraft_version_at(4)) == (None, 0)
    assert (history.voters_at(9), history.kraft_version_at(9)) == (two.to_record(), 1)
    assert history.voters_at(10) == three.to_record()
    history.trim(8)
    assert history.voters_at(9) == two.to_record()
    history.trim(20)
    assert history.voters_at(9) is None
    history.load_snapshot(20, 1, two.to_record())
    assert (history.voters, history.voters_offset) == (two, 19)
