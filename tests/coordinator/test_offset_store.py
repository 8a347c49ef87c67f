"""The bytes that are packed for speed are those of the schemas."""

from hypothesis import given
from hypothesis import strategies as st

from mainstem.coordinator.group.offset_store import CommittedOffset, OffsetStore, TopicOffsets
from mainstem.coordinator.group.records import decode_key, decode_value, encode_key
from mainstem.coordinator.group.records.offsets import OffsetCommitKey, OffsetCommitValue

_I64 = st.integers(-(2**63), 2**63 - 1)
_I32 = st.integers(-(2**31), 2**31 - 1)
_OFFSETS = st.builds(
    CommittedOffset,
    offset=_I64,
    leader_epoch=_I32,
    metadata=st.text(max_size=200),
    commit_timestamp=_I64,
    expire_timestamp=st.sampled_from([-1, 0, 2**40]),
    topic_id=st.sampled_from([bytes(16), b"0123456789abcdef"]),
)


@given(_OFFSETS)
def test_a_value_reads_back(committed: CommittedOffset) -> None:
    data = committed.encode()
    read = decode_value(OffsetCommitKey(), data)
    own_expiry = committed.expire_timestamp != -1
    assert data[:2] == (b"\0\1" if own_expiry else b"\0\4")
    assert read == OffsetCommitValue(
        committed.offset,
        -1 if own_expiry else committed.leader_epoch,
        committed.metadata,
        committed.commit_timestamp,
        committed.expire_timestamp,
        bytes(16) if own_expiry else committed.topic_id,
    )


@given(st.text(max_size=20), st.text(max_size=20), _I32)
def test_a_key_reads_back(group: str, topic: str, partition: int) -> None:
    key = TopicOffsets(group, topic).key(partition)
    assert key == encode_key(OffsetCommitKey(group, topic, partition))
    assert decode_key(key) == OffsetCommitKey(group, topic, partition)


def test_nothing_empty_is_kept() -> None:
    store = OffsetStore()
    committed = CommittedOffset(1, -1, "", 0)
    store.put("g", "t", 0, committed)
    store.put("g", "t", 1, committed)
    store.put("h", "t", 0, committed)
    store.put("g", "t", 0, None)
    assert sorted(store.groups_of_topic("t")) == ["g", "h"]
    store.put("g", "t", 1, None)
    store.put("g", "t", 7, None)
    store.put("nobody", "t", 0, None)
    assert store.of_group("g") == {}
    assert list(store.groups_of_topic("t")) == ["h"]
    store.restore("h", [("t", 0, None)])
    assert list(store.topics()) == []
