"""Committing, reading and deleting offsets, without a broker."""

from collections.abc import Callable
from typing import Any

import pytest

from mainstem.coordinator.effects import Effects
from mainstem.coordinator.group.records import encode_key, encode_value
from mainstem.coordinator.group.records.offsets import (
    LegacyOffsetCommitKey,
    OffsetCommitKey,
    OffsetCommitValue,
)
from mainstem.protocol.apis.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from mainstem.protocol.errors import ErrorCode, KafkaError, ProtocolError
from tests.coordinator.harness import Waiting
from tests.coordinator.offset_world import World


@pytest.fixture
def world() -> World:
    return World()


def test_offsets_are_read_as_they_were_committed(world: World) -> None:
    assert world.commit("g", at={0: 5, 3: 7}, metadata="note", epoch=2) == {0: "NONE", 3: "NONE"}
    assert world.commit("g", "u", at={1: 9}) == {1: "NONE"}
    assert world.fetch("g") == {0: 5, 3: 7}
    assert world.fetch_all("g") == {"t": {0: 5, 3: 7}, "u": {1: 9}}
    assert world.log() == [
        "g t-0 at 5 'note' (version 4)",
        "g t-3 at 7 'note' (version 4)",
        "g u-1 at 9 (version 4)",
    ]


def test_the_answer_carries_the_note_and_the_leader_epoch(world: World) -> None:
    world.commit("g", at={1: 7}, metadata="note", epoch=2)
    world.commit("g", at={2: 8}, metadata=None)
    (one, two) = world.harness.machine.offsets.store.of_group("g")["t"].partitions.values()
    assert (one.metadata, one.leader_epoch) == ("note", 2)
    assert (two.metadata, two.leader_epoch) == ("", -1)


def test_the_last_commit_counts_even_when_it_goes_back(world: World) -> None:
    world.commit("g", at={0: 5})
    world.commit("g", at={0: 3})
    assert world.fetch("g") == {0: 3}


def test_a_partition_that_is_named_twice_keeps_the_second_offset(world: World) -> None:
    twice = [OffsetCommitRequestPartition(0, 5), OffsetCommitRequestPartition(0, 6)]
    request = OffsetCommitRequest("g", topics=[OffsetCommitRequestTopic("t", bytes(16), twice)])
    world.harness.appends_fail = True
    world.harness.send(lambda m, token, now: m.offsets.commit(request, 9, token, now))
    assert world.fetch("g") == {}
    world.harness.appends_fail = False
    world.harness.send(lambda m, token, now: m.offsets.commit(request, 9, token, now))
    assert world.fetch("g") == {0: 6}


def test_groups_and_partitions_without_offsets_read_as_minus_one(world: World) -> None:
    assert world.fetch("nobody") == {}
    assert world.fetch_all("nobody") == {}
    world.commit("g", at={0: 5})
    assert world.fetch("g", "u") == {}


def test_a_note_is_limited_partition_by_partition() -> None:
    world = World(offset_metadata_max_bytes="4")
    assert world.commit("g", at={0: 1}, metadata="four") == {0: "NONE"}
    assert world.commit("g", at={0: 2, 1: 2}, metadata="fives") == dict.fromkeys(
        (0, 1), "OFFSET_METADATA_TOO_LARGE"
    )
    # Counted as Java does: one such sign is two.
    assert world.commit("g", at={0: 3}, metadata="\N{MUSICAL SYMBOL G CLEF}" * 2) == {0: "NONE"}
    assert world.commit("g", at={0: 4}, metadata="\N{MUSICAL SYMBOL G CLEF}" * 3) == {
        0: "OFFSET_METADATA_TOO_LARGE"
    }
    assert world.fetch("g") == {0: 3}


def test_only_too_large_notes_leave_nothing_behind() -> None:
    world = World(offset_metadata_max_bytes="4")
    world.commit("g", at={0: 2}, metadata="fives")
    assert world.log() == []
    assert world.fetch_all("g") == {}
    assert list(world.harness.machine.offsets.store.topics()) == []


# ---- fences


def test_a_generation_of_a_group_that_is_not_there(world: World) -> None:
    assert world.commit("g", at={0: 1}, generation=3, version=8) == {0: "ILLEGAL_GENERATION"}
    assert world.commit("g", at={0: 1}, generation=3, version=9) == {0: "GROUP_ID_NOT_FOUND"}
    assert world.groups() == set()


def test_a_fenced_member_does_not_move_an_offset(world: World) -> None:
    member = world.join("g", "t")
    assert world.commit("g", at={0: 1}, member=member, generation=1) == {0: "REBALANCE_IN_PROGRESS"}
    world.sync("g", member)
    assert world.commit("g", at={0: 5}, member=member, generation=1) == {0: "NONE"}
    assert world.commit("g", at={0: 1}, member=member, generation=0) == {0: "ILLEGAL_GENERATION"}
    assert world.commit("g", at={0: 1}, member="zombie", generation=1) == {0: "UNKNOWN_MEMBER_ID"}
    assert world.commit("g", at={0: 1}) == {0: "UNKNOWN_MEMBER_ID"}
    assert world.fetch("g") == {0: 5}


def test_a_commit_keeps_its_member_alive(world: World) -> None:
    member = world.join("g", "t")
    world.sync("g", member)
    for _ in range(4):
        world.harness.advance(20_000)  # of a session of 30 seconds
        assert world.commit("g", at={0: 5}, member=member, generation=1) == {0: "NONE"}
    world.harness.advance(31_000)
    assert world.commit("g", at={0: 5}, member=member, generation=1) == {0: "UNKNOWN_MEMBER_ID"}


def test_a_check_for_each_partition_refuses_the_whole_commit(world: World) -> None:
    asked: list[tuple[str, bytes, int]] = []

    def check(topic: str, topic_id: bytes, partition: int) -> None:
        asked.append((topic, topic_id, partition))
        if partition == 2:
            raise KafkaError(ErrorCode.STALE_MEMBER_EPOCH)

    world.commit("g", at={0: 5})
    group = world.harness.machine.state.groups["g"]
    world.harness.machine.state.groups["g"] = _Checked(group, check)
    assert world.commit("g", at={0: 6, 1: 6}) == {0: "NONE", 1: "NONE"}
    assert world.commit("g", at={0: 7, 2: 7}) == dict.fromkeys((0, 2), "STALE_MEMBER_EPOCH")
    topic = world.topics.by_name("t")
    assert topic is not None
    assert asked == [("t", topic.topic_id, number) for number in (0, 1, 0, 2)]
    assert world.fetch("g") == {0: 6, 1: 6}


class _Checked:
    """A group that checks partitions one by one, as a consumer group does with an older member epoch."""

    def __init__(self, group: object, check: object) -> None:
        self._group = group
        self._check = check

    def __getattr__(self, name: str) -> object:
        return getattr(self._group, name)

    def check_offset_commit(self, *_: object) -> object:
        return self._check


# ---- deleting


def test_offsets_are_deleted_with_tombstones(world: World) -> None:
    world.commit("g", at={0: 5, 1: 6})
    assert world.delete("g", "t", 0, 3) == {0: "NONE", 3: "NONE"}
    assert world.fetch("g") == {1: 6}
    assert world.log(2) == ["g t-0 deleted"]
    assert world.delete("nobody", "t", 0) == "GROUP_ID_NOT_FOUND"


def test_offsets_of_subscribed_topics_stay(world: World) -> None:
    world.commit("g", at={0: 5})
    world.commit("g", "u", at={0: 6})
    world.sync("g", world.join("g", "t"))
    assert world.delete("g", "t", 0, 1) == dict.fromkeys((0, 1), "GROUP_SUBSCRIBED_TO_TOPIC")
    assert world.delete("g", "u", 0) == {0: "NONE"}
    assert world.fetch_all("g") == {"t": {0: 5}}


def test_a_group_is_deleted_with_its_offsets(world: World) -> None:
    world.commit("g", at={0: 5, 1: 6})
    assert world.delete_group("g") == "NONE"
    assert world.log(2) == ["g t-0 deleted", "g t-1 deleted", "group g deleted"]
    assert world.fetch_all("g") == {}
    assert world.groups() == set()
    assert world.delete_group("g") == "GROUP_ID_NOT_FOUND"


def test_a_group_with_members_is_not_deleted(world: World) -> None:
    member = world.join("g", "t")
    world.sync("g", member)
    assert world.delete_group("g") == "NON_EMPTY_GROUP"
    world.leave("g", member)
    assert world.delete_group("g") == "NONE"


# ---- the log


def test_a_failed_append_restores_what_was_there(world: World) -> None:
    world.commit("g", at={0: 5, 1: 6})
    world.harness.appends_fail = True
    assert world.commit("g", at={0: 8, 2: 8}) == "NOT_COORDINATOR"
    assert world.commit("new", "u", at={0: 1}) == "NOT_COORDINATOR"
    assert world.delete("g", "t", 0) == "NOT_COORDINATOR"
    assert world.delete_group("g") == "NOT_COORDINATOR"
    assert world.fetch_all("g") == {"t": {0: 5, 1: 6}}
    assert world.groups() == {"g"}
    assert list(world.harness.machine.offsets.store.topics()) == ["t"]
    world.harness.appends_fail = False
    assert world.commit("g", at={0: 9}) == {0: "NONE"}
    assert world.fetch("g") == {0: 9, 1: 6}


def _commit_one(group: str, offset: int) -> Callable[[Any, Waiting, int], None]:
    place = [OffsetCommitRequestPartition(0, offset)]
    request = OffsetCommitRequest(group, topics=[OffsetCommitRequestTopic("t", bytes(16), place)])
    return lambda m, token, now: m.offsets.commit(request, 9, token, now)


def test_commits_of_one_turn_are_taken_back_together(world: World) -> None:
    world.commit("g", at={0: 5})
    world.harness.appends_fail = True
    with world.harness.turn():
        waiting = [world.harness.send(_commit_one("g", offset)) for offset in (6, 7, 8)]
    assert {token.answer for token in waiting} == {ErrorCode.NOT_COORDINATOR}
    assert world.fetch("g") == {0: 5}


@pytest.mark.parametrize("broken", ["a commit", "a commit of a new group", "a deletion"])
def test_an_event_that_breaks_off_half_way_changes_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    world.commit("g", at={0: 5, 1: 6})
    write, written = world.harness.machine.effects.write, []

    def write_one(key: bytes, value: bytes | None) -> None:
        write(key, value)
        written.append(key)
        if len(written) == 2:
            raise ProtocolError("it cannot be written")

    events = {
        "a commit": lambda: world.commit("g", at={0: 8, 1: 8}),
        "a commit of a new group": lambda: world.commit("h", at={0: 8, 1: 8}),
        "a deletion": lambda: world.delete("g", "t", 0, 1),
    }
    with monkeypatch.context() as patch:
        patch.setattr(Effects, "write", lambda _, key, value: write_one(key, value))
        with pytest.raises(ProtocolError):
            events[broken]()
    world.harness.break_off()
    assert world.fetch_all("g") == {"t": {0: 5, 1: 6}}
    assert world.fetch_all("h") == {}
    assert world.groups() == {"g"}


def test_whoever_joined_a_group_that_could_not_be_written_asks_again(world: World) -> None:
    world.harness.appends_fail = True
    with world.harness.turn():
        world.harness.send(_commit_one("g", 5))
        joining = world.send_join("g", "t")
    assert joining.answer is ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.harness.appends_fail = False
    world.harness.advance(1_000)
    world.sync("g", world.join("g", "t"))
    since = len(world.harness.log)
    world.harness.advance(29_500)  # of a session of 30 seconds, in which that of the first one would end
    assert world.log(since) == []
    world.harness.restart()
    assert world.harness.machine.state.groups["g"].state_name() == "Stable"


def test_a_retention_beyond_all_time_is_for_ever(world: World) -> None:
    assert world.commit("g", at={0: 5}, version=3, retention_time_ms=2**63 - 1) == {0: "NONE"}
    world.harness.restart()
    world.advance_minutes(1000)
    assert world.fetch("g") == {0: 5}


def test_a_restart_replays_the_offsets(world: World) -> None:
    world.commit("g", at={0: 5, 1: 6}, metadata="note")
    world.commit("h", "u", at={0: 1})
    world.delete("g", "t", 1)
    world.delete_group("h")
    world.harness.restart()
    assert world.fetch_all("g") == {"t": {0: 5}}
    assert world.fetch_all("h") == {}
    assert world.groups() == {"g"}


@pytest.mark.parametrize("version", range(5))
def test_values_of_every_version_are_replayed(world: World, version: int) -> None:
    value = OffsetCommitValue(5, 3, "note", 1000, 2000, b"i" * 16)
    world.harness.log.append((encode_key(OffsetCommitKey("g", "t", 2)), encode_value(value, version)))
    world.harness.restart()
    stored = world.harness.machine.offsets.store.get("g", "t", 2)
    assert (stored.offset, stored.metadata, stored.commit_timestamp) == (5, "note", 1000)
    assert stored.leader_epoch == (3 if version >= 3 else -1)
    assert stored.expire_timestamp == (2000 if version == 1 else -1)
    topic = world.topics.by_name("t")
    assert topic is not None
    # Where the record does not say it, it is taken for the topic that has the name now.
    assert stored.topic_id == (b"i" * 16 if version == 4 else topic.topic_id)


def test_keys_of_the_first_form_are_replayed(world: World) -> None:
    key = encode_key(LegacyOffsetCommitKey("g", "t", 2))
    world.harness.log.append((key, encode_value(OffsetCommitValue(5), 0)))
    world.harness.restart()
    assert world.fetch("g") == {2: 5}
    world.harness.log.append((key, None))
    world.harness.restart()
    assert world.fetch("g") == {}


def test_an_offset_of_an_older_topic_is_not_shown_by_id(world: World) -> None:
    world.commit("g", at={0: 5})
    topic = world.topics.by_name("t")
    assert topic is not None
    assert world.fetch("g", topic_id=topic.topic_id) == {0: 5}
    assert world.fetch("g", topic_id=b"another id here!") == {}
    assert world.fetch("g") == {0: 5}
