"""Which offsets go by themselves, and when: by age, and with their topic."""

import pytest

from mainstem.protocol.errors import ErrorCode
from tests.coordinator.offset_world import MINUTE_MS, World


@pytest.fixture
def world() -> World:
    """Offsets are kept for 60 minutes and looked at every 10."""
    return World()


def test_offsets_without_members_age_from_their_commit(world: World) -> None:
    world.commit("g", at={0: 5})
    world.advance_minutes(30)
    world.commit("g", at={1: 6})
    world.advance_minutes(29)
    assert world.fetch("g") == {0: 5, 1: 6}
    world.advance_minutes(1)
    assert world.fetch("g") == {1: 6}
    assert world.log(2) == ["g t-0 deleted"]


def test_a_group_goes_with_its_last_offset(world: World) -> None:
    world.commit("g", at={0: 5, 1: 6})
    world.advance_minutes(60)
    assert world.log(2) == ["g t-0 deleted", "g t-1 deleted", "group g deleted"]
    assert world.groups() == set()
    world.harness.restart()
    assert world.groups() == set()
    assert world.commit("g", at={0: 5}) == {0: "NONE"}


def test_offsets_of_members_age_from_the_moment_the_group_is_empty(world: World) -> None:
    member = world.join("g", "t")
    world.sync("g", member)
    world.commit("g", at={0: 5}, member=member, generation=1)
    world.harness.advance(20_000)
    world.leave("g", member)
    since = len(world.harness.log)
    world.advance_minutes(59)
    assert world.fetch("g") == {0: 5}
    world.advance_minutes(11)
    assert world.fetch("g") == {}
    assert world.log(since) == ["g t-0 deleted", "group g deleted"]


def test_offsets_where_members_are_subscribed_do_not_age(world: World) -> None:
    world.commit("g", at={0: 5})
    world.commit("g", "u", at={0: 6})
    member = world.join("g", "t")
    world.sync("g", member)
    for _ in range(300):
        world.harness.advance(20_000)
        world.commit("g", at={1: 7}, member=member, generation=1)
    assert world.fetch_all("g") == {"t": {0: 5, 1: 7}}
    assert "g" in world.groups()


def test_offsets_do_not_age_during_a_rebalance(world: World) -> None:
    world.commit("g", "u", at={0: 6}, version=2, retention_time_ms=0)
    member = world.join("g", "t")
    world.expire()
    assert world.fetch("g", "u") == {0: 6}
    world.sync("g", member)
    world.expire()
    assert world.fetch("g", "u") == {}


def test_a_retention_time_of_its_own_counts_first(world: World) -> None:
    world.commit("g", at={0: 5}, version=2, retention_time_ms=20 * MINUTE_MS)
    world.commit("g", at={1: 6}, version=2, retention_time_ms=200 * MINUTE_MS)
    world.commit("g", at={2: 7}, version=2)
    assert world.log() == ["g t-0 at 5 (version 1)", "g t-1 at 6 (version 1)", "g t-2 at 7 (version 4)"]
    world.harness.restart()
    world.advance_minutes(20)
    assert world.fetch("g") == {1: 6, 2: 7}
    world.advance_minutes(40)
    assert world.fetch("g") == {1: 6}
    world.advance_minutes(140)
    assert world.groups() == set()


def test_an_empty_group_without_offsets_goes_at_the_next_check(world: World) -> None:
    member = world.join("g", "t")
    world.sync("g", member)
    world.leave("g", member)
    since = len(world.harness.log)
    world.advance_minutes(9)
    assert world.groups() == {"g"}
    world.advance_minutes(1)
    assert world.log(since) == ["group g deleted"]


def test_a_group_stays_for_somebody_who_was_just_given_an_id(world: World) -> None:
    given = world.send_join("g", "t", version=5).answer
    assert given.error_code == ErrorCode.MEMBER_ID_REQUIRED
    world.expire()
    joining = world.send_join("g", "t", version=5, member=given.member_id)
    world.harness.advance(0)
    assert joining.answer.error_code == 0
    world.leave("g", given.member_id)
    world.send_join("g", "t", version=5)
    world.harness.advance(30_000)  # it does not come back within its session
    world.expire()
    assert world.groups() == set()


def test_a_failed_append_of_tombstones_is_made_good_later(world: World) -> None:
    world.commit("g", at={0: 5})
    world.harness.appends_fail = True
    world.advance_minutes(60)
    assert world.fetch("g") == {0: 5}
    assert world.groups() == {"g"}
    world.harness.appends_fail = False
    world.advance_minutes(10)
    assert world.groups() == set()


def test_many_old_offsets_go_in_several_batches(world: World) -> None:
    for number in range(40):
        for topic in ("t", "u"):
            world.commit(f"g{number}", topic, at=dict.fromkeys(range(40), 5))
    written = len(world.harness.log)
    batches: list[int] = []
    settle = world.harness.settle

    def count_and_settle() -> None:
        batches.append(len(world.harness.machine.effects.records))
        settle()

    world.harness.settle = count_and_settle  # type: ignore[method-assign]
    world.advance_minutes(61)
    assert world.groups() == set()
    assert len(world.harness.log) == written + 40 * 81
    assert max(batches) < 1000
    assert len([size for size in batches if size]) > 3


def test_one_group_with_very_many_offsets_goes_in_several_batches(world: World) -> None:
    world.commit("g", at=dict.fromkeys(range(1200), 5))
    world.advance_minutes(60)
    assert len(world.harness.log) < 1200 + 1200
    world.advance_minutes(1)
    assert len(world.harness.log) == 1200 + 1200 + 1
    assert world.groups() == set()


# ---- deleted topics


def test_the_offsets_of_a_deleted_topic_go_at_once(world: World) -> None:
    world.commit("g", at={0: 5})
    world.commit("g", "u", at={0: 6})
    world.commit("h", at={1: 7}, version=2, retention_time_ms=MINUTE_MS)
    world.topics.delete("t")
    world.topics_changed()
    assert world.log(3) == ["g t-0 deleted", "h t-1 deleted"]
    assert world.fetch_all("g") == {"u": {0: 6}}
    assert world.groups() == {"g", "h"}


def test_other_changes_of_topics_leave_offsets_alone(world: World) -> None:
    world.commit("g", at={0: 5})
    world.commit("g", at={1: 5}, version=2, retention_time_ms=MINUTE_MS)
    world.topics_changed()
    world.topics.create("t", 8)
    world.topics.create("v", 1)
    world.topics_changed()
    world.topics.delete("u")
    world.topics_changed()
    assert world.fetch("g") == {0: 5, 1: 5}


def test_a_topic_that_is_made_anew_starts_without_offsets(world: World) -> None:
    world.commit("g", at={0: 5})
    world.commit("g", at={1: 5}, version=2, retention_time_ms=MINUTE_MS)
    world.topics_changed()
    world.topics.delete("t")
    world.topics.create("t", 4)
    world.commit("g", at={2: 1})
    world.topics_changed()
    assert world.fetch("g") == {2: 1}


def test_a_failed_append_of_tombstones_of_a_deleted_topic_is_tried_again(world: World) -> None:
    world.commit("g", at={0: 5})
    world.topics.delete("t")
    world.harness.appends_fail = True
    world.topics_changed()
    world.advance_minutes(1)
    world.harness.appends_fail = False
    assert list(world.harness.machine.offsets.store.topics()) == ["t"]
    world.advance_minutes(1)
    assert world.log(1) == ["g t-0 deleted"]


def test_what_is_tried_again_spares_a_topic_that_was_made_in_the_meantime(world: World) -> None:
    world.commit("g", at={0: 5, 1: 6})
    world.topics.delete("t")
    world.harness.appends_fail = True
    world.topics_changed()
    world.harness.appends_fail = False
    world.topics.create("t", 4)
    world.commit("g", at={1: 0})
    world.commit("g", at={2: 0}, version=2, retention_time_ms=60 * MINUTE_MS)
    world.advance_minutes(1)
    assert world.log(4) == ["g t-0 deleted"]
    assert world.fetch("g") == {1: 0, 2: 0}


def test_topics_that_were_deleted_while_nobody_coordinated_are_found_when_it_loads(world: World) -> None:
    world.commit("g", at={0: 5})
    world.commit("g", "u", at={0: 6})
    world.commit("h", at={0: 7}, version=2, retention_time_ms=MINUTE_MS)
    world.topics.delete("t")
    world.topics.delete("u")
    world.topics.create("t", 4)
    world.harness.restart()
    world.harness.advance(0)
    assert world.log(3) == ["g t-0 deleted", "g u-0 deleted"]
    assert world.fetch_all("g") == {}
    assert world.fetch("h") == {0: 7}  # nothing says of which topic it is


def test_an_offset_without_a_topic_id_goes_with_the_topic_that_had_the_name_when_it_was_read(
    world: World,
) -> None:
    world.commit("g", at={0: 5}, version=2, retention_time_ms=60 * MINUTE_MS)
    world.harness.restart()
    world.topics.delete("t")
    world.topics.create("t", 4)
    world.topics_changed()
    assert world.log(1) == ["g t-0 deleted"]


def test_an_offset_of_a_deleted_topic_is_not_one_of_the_next_of_its_name(world: World) -> None:
    world.commit("g", at={0: 5})
    world.topics.delete("t")
    assert world.fetch("g") == {}
    assert world.fetch_all("g") == {}
    world.topics.create("t", 4)
    assert world.fetch("g") == {}
    assert world.fetch_all("g") == {}
    world.commit("g", at={1: 0})
    assert world.fetch("g") == {1: 0}
    assert world.fetch_all("g") == {"t": {1: 0}}


@pytest.mark.parametrize("how", ["age", "deleted topic"])
def test_long_names_go_in_batches_that_can_be_written(world: World, how: str) -> None:
    long_ids = [character * 30_000 for character in "abc"]
    for group in long_ids:
        world.commit(group, at=dict.fromkeys(range(40), 5))
    world.commit("g", at={0: 5})
    sizes = _sizes_of_events(world)
    if how == "age":
        world.advance_minutes(61)
    else:
        world.topics.delete("t")
        world.topics_changed()
        world.harness.advance(1000)
    assert not list(world.harness.machine.offsets.store.topics())
    assert sum(sizes) > 3_600_000
    assert max(sizes) < 400_000


def _sizes_of_events(world: World) -> list[int]:
    """The bytes that each event from now on writes."""
    sizes: list[int] = []
    settle = world.harness.settle

    def count_and_settle() -> None:
        sizes.append(sum(len(key) for key, _ in world.harness.machine.effects.records))
        settle()

    world.harness.settle = count_and_settle  # type: ignore[method-assign]
    return sizes
