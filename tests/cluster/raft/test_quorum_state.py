"""The text of the quorum-state file is Kafka's, and no other text gets through."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainstem.cluster.raft.quorum_state import QuorumState, decode_quorum_state, encode_quorum_state
from mainstem.protocol.errors import ProtocolError

# As Apache Kafka 4.3.0 wrote it.
WRITTEN_BY_KAFKA = (
    b'{"leaderId":1,"leaderEpoch":12,"votedId":-1,'
    b'"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
)


def test_the_text_is_that_of_kafka() -> None:
    state = QuorumState(leader_id=1, leader_epoch=12)
    assert encode_quorum_state(state) == WRITTEN_BY_KAFKA
    assert decode_quorum_state(WRITTEN_BY_KAFKA) == state


def test_the_older_format_is_read() -> None:
    text = (
        b'{"clusterId":"","leaderId":2,"leaderEpoch":7,"votedId":-1,"appliedOffset":0,'
        b'"currentVoters":[{"voterId":2}],"data_version":0}'
    )
    assert decode_quorum_state(text) == QuorumState(leader_id=2, leader_epoch=7, current_voters=(2,))


@given(
    st.integers(-1, 99), st.integers(0, 2**31 - 1), st.integers(-1, 99), st.binary(min_size=16, max_size=16)
)
def test_every_state_survives(leader: int, epoch: int, voted: int, directory: bytes) -> None:
    state = QuorumState(leader, epoch, voted, directory)
    assert decode_quorum_state(encode_quorum_state(state)) == state


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"\xff",
        b'{"leaderId":1}',
        b'{"data_version":2}',
        b'{"leaderEpoch":"1","data_version":1}',
        b'{"leaderEpoch":-2,"data_version":1}',
        b'{"leaderEpoch":true,"data_version":1}',
        b'{"votedDirectoryId":5,"data_version":1}',
        b'{"currentVoters":5,"data_version":0}',
        b'{"currentVoters":[5],"data_version":0}',
        b'{"votedDirectoryId":"x","data_version":1}',
        b"[" * 100_000,
    ],
)
def test_anything_else_is_a_protocol_error(text: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_quorum_state(text)
