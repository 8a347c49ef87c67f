"""The bytes that are packed for speed are those of the schemas, and a restart gives the state of before."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mainstem.coordinator.group.offset_store import CommittedOffset, OffsetStore, TopicOffsets, decode_usual
from mainstem.coordinator.group.records import decode_key, decode_value, encode_key
from mainstem.coordinator.group.records.offsets import OffsetCommitKey, OffsetCommitValue
from mainstem.protocol.errors import ProtocolError
from tests.coordinator.offset_world import World

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
    usual = decode_usual(data)
    assert usual in (None, committed)
    assert (usual is None) == bool(own_expiry or committed.metadata or committed.topic_id == bytes(16))


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


_WHERE = st.tuples(st.sampled_from("gh"), st.sampled_from("tu"), st.integers(0, 2))
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), _WHERE, st.integers(0, 100), st.sampled_from(["", "note"])),
        st.tuples(st.just("delete"), _WHERE),
        st.tuples(st.just("delete group"), st.sampled_from("gh")),
        st.tuples(st.just("delete topic"), st.sampled_from("tu")),
    ),
    max_size=30,
)


@given(_STEPS)
@settings(max_examples=60)
def test_a_restart_gives_the_state_of_before(steps: list[tuple[Any, ...]]) -> None:
    world = World()
    for step in steps:
        match step:
            case ("commit", (group, topic, partition), offset, note):
                world.commit(group, topic, at={partition: offset}, metadata=note)
            case ("delete", (group, topic, partition)):
                world.delete(group, topic, partition)
            case ("delete group", group):
                world.delete_group(group)
            case ("delete topic", topic):
                world.topics.delete(topic)
                world.topics.create(topic, 4)
                world.topics_changed()
    before = [world.fetch_all(group) for group in "gh"]
    groups = {group for group, offsets in zip("gh", before, strict=True) if offsets}
    world.harness.restart()
    assert [world.fetch_all(group) for group in "gh"] == before
    assert groups <= world.groups()


@pytest.mark.parametrize(
    "key", [b"", b"\0\1", b"\0\1\0\5g", b"\0\0\0\1g\0\1t\0\0\0", b"\0\1\xff\xff\0\0\0\0\0\0"]
)
def test_what_is_no_key_of_an_offset_changes_nothing(key: bytes) -> None:
    world = World()
    with pytest.raises(ProtocolError):
        world.harness.machine.replay(key, CommittedOffset(1, -1, "", 0).encode())
    assert world.groups() == set()


@pytest.mark.parametrize("value", [b"", b"\0", b"\0\x09" + bytes(40), b"\0\4" + bytes(3), bytes(42)])
def test_what_is_no_offset_changes_nothing(value: bytes) -> None:
    world = World()
    world.commit("g", at={0: 5})
    world.harness.restart()
    machine = world.harness.machine
    for topic in ("t", "u"):
        with pytest.raises(ProtocolError):
            machine.replay(encode_key(OffsetCommitKey("g", topic, 0)), value)
    assert world.fetch_all("g") == {"t": {0: 5}}
