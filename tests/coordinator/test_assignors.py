"""The assignors of the consumer protocol: what always holds, worked examples, and Kafka's own beside them."""

import json
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mainstem.coordinator.group.assignors import ASSIGNORS, Assignment, GroupSpec, assign
from tests.coordinator.generated_groups import (
    after,
    as_json,
    from_json,
    group,
    kept,
    life_of_a_group,
    member,
    sizes,
    topic_id,
)
from tests.support.kafka_peer import kafka_tool

T1, T2, T3 = topic_id(1), topic_id(2), topic_id(3)
_ORACLE = Path(__file__).with_name("AssignorOracle.java")
lives = st.builds(
    lambda rng, homogeneous: list(life_of_a_group(rng, homogeneous)), st.randoms(), st.booleans()
)


def assert_complete(spec: GroupSpec, target: Assignment) -> None:
    """Every partition that anybody is subscribed to is assigned once, to a subscriber; nothing else is."""
    assert target.keys() == spec.members.keys()
    wanted = {
        (topic, partition)
        for each in spec.members.values()
        for topic in each.subscribed_topic_ids
        for partition in range(spec.partition_counts[topic])
    }
    given_out = [
        (topic, partition)
        for topics in target.values()
        for topic, mine in topics.items()
        for partition in mine
    ]
    assert len(given_out) == len(set(given_out))
    assert set(given_out) == wanted
    for member_id, topics in target.items():
        assert topics.keys() <= spec.members[member_id].subscribed_topic_ids
        assert all(topics.values()), "a topic without partitions"


def assert_balanced(spec: GroupSpec, target: Assignment) -> None:
    """No partition could go to another subscriber that has at least two fewer."""
    count = sizes(target)
    for giver, topics in target.items():
        for topic in topics:
            for taker, each in spec.members.items():
                if topic in each.subscribed_topic_ids:
                    assert count[giver] - count[taker] < 2, f"{giver} could give to {taker}"


@given(lives, st.sampled_from(sorted(ASSIGNORS)))
@settings(deadline=None, max_examples=50)
def test_every_partition_goes_to_one_subscriber(life: list[GroupSpec], assignor: str) -> None:
    for spec in life:
        assert_complete(spec, assign(assignor, spec))


@given(lives)
@settings(deadline=None, max_examples=50)
def test_uniform_is_balanced(life: list[GroupSpec]) -> None:
    for spec in life:
        assert_balanced(spec, assign("uniform", spec))


@given(st.randoms())
@settings(deadline=None, max_examples=50)
def test_uniform_moves_no_more_than_balance_asks_for(rng: Random) -> None:
    for spec in life_of_a_group(rng, homogeneous=True):
        target = assign("uniform", spec)
        owned = [
            sum(len(mine) for topic, mine in each.owned.items() if topic in each.subscribed_topic_ids)
            for each in spec.members.values()
        ]
        quota, longer = divmod(sum(sizes(target).values()), len(owned))
        # Everybody may keep the quota, and as many as get one more may keep that one.
        most = sum(min(count, quota) for count in owned) + min(longer, sum(count > quota for count in owned))
        assert kept(spec, target) == most


@given(lives, st.sampled_from(sorted(ASSIGNORS)))
@settings(deadline=None, max_examples=50)
def test_an_assignment_that_is_reached_does_not_change(life: list[GroupSpec], assignor: str) -> None:
    for spec in life:
        target = assign(assignor, spec)
        assert assign(assignor, after(spec, target)) == target


@given(lives)
@settings(deadline=None, max_examples=50)
def test_what_is_owned_is_left_as_it_was(life: list[GroupSpec]) -> None:
    for spec in life:
        before = [dict(each.owned) for each in spec.members.values()]
        assign("uniform", spec)
        assert [each.owned for each in spec.members.values()] == before


@pytest.mark.parametrize(
    ("partitions", "members", "expected"),
    [(6, 3, [2, 2, 2]), (7, 3, [3, 2, 2]), (10, 15, [1] * 10 + [0] * 5)],
)
@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_one_topic_shared_out(assignor: str, partitions: int, members: int, expected: list[int]) -> None:
    spec = group({f"m{number:02}": member(1) for number in range(members)}, partitions)
    target = assign(assignor, spec)
    assert list(sizes(target).values()) == expected
    assert [partition for topics in target.values() for partition in sorted(topics.get(T1, ()))] == list(
        range(partitions)
    )


def test_nobody_and_nothing() -> None:
    for assignor in ASSIGNORS:
        assert assign(assignor, group({}, 3)) == {}
        assert assign(assignor, group({"a": member(), "b": member()}, 3)) == {"a": {}, "b": {}}
        assert assign(assignor, group({"a": member(1), "b": member()}, 1)) == {"a": {T1: {0}}, "b": {}}


def test_range_gives_co_partitioned_topics_alike() -> None:
    spec = group({"a": member(1, 2), "b": member(1, 2), "c": member(1, 2)}, 4, 4)
    assert assign("range", spec) == {
        "a": {T1: {0, 1}, T2: {0, 1}},
        "b": {T1: {2}, T2: {2}},
        "c": {T1: {3}, T2: {3}},
    }


def test_range_puts_static_members_first_by_their_instance_id() -> None:
    members = {"a": member(1), "z": member(1, instance_id="1"), "y": member(1, instance_id="2")}
    assert assign("range", group(members, 3)) == {"z": {T1: {0}}, "y": {T1: {1}}, "a": {T1: {2}}}


def test_range_orders_names_as_java_does() -> None:
    # In UTF-16 the emoji begins with a surrogate, which comes before the ligature.
    members = {"a": member(1, instance_id="ﬀ"), "b": member(1, instance_id="😀")}
    assert assign("range", group(members, 2)) == {"b": {T1: {0}}, "a": {T1: {1}}}


def test_uniform_a_new_member_takes_only_its_share() -> None:
    members = {"a": member(1, owned={1: {0, 1, 2}}), "b": member(1, owned={1: {3, 4, 5}}), "c": member(1)}
    assert assign("uniform", group(members, 6)) == {"a": {T1: {0, 1}}, "b": {T1: {3, 4}}, "c": {T1: {2, 5}}}


def test_uniform_the_one_with_more_keeps_it_wherever_it_stands() -> None:
    members = {"a": member(1, owned={1: {0}}), "b": member(1, owned={1: {1, 2}})}
    assert assign("uniform", group(members, 3)) == {"a": {T1: {0}}, "b": {T1: {1, 2}}}


def test_uniform_members_that_differ_even_out_where_they_can() -> None:
    members = {"a": member(1, owned={1: {0, 1, 2, 3}}), "b": member(1, 2), "c": member(2)}
    target = assign("uniform", group(members, 4, 1))
    assert target == {"a": {T1: {0, 1}}, "b": {T1: {2, 3}}, "c": {T2: {0}}}


def test_uniform_gives_away_first_what_is_new() -> None:
    # "a" gets one more of topic 1 before topics 2 and 3 burden it, which nobody else can take.
    members = {"a": member(1, 2, 3, owned={1: {3}}), "b": member(1)}
    target = assign("uniform", group(members, 4, 1, 1))
    assert target == {"a": {T1: {3}, T2: {0}, T3: {0}}, "b": {T1: {0, 1, 2}}}


@pytest.mark.peer
def test_kafka_assigns_alike() -> None:
    rng = Random(4)
    specs = [spec for same in (True, False) for _ in range(150) for spec in life_of_a_group(rng, same)]
    cases = [(assignor, spec) for spec in specs for assignor in ASSIGNORS]
    kept_here = kept_there = squares_here = squares_there = 0
    for (assignor, spec), kafkas in zip(cases, _kafka_assigns(cases), strict=True):
        ours = assign(assignor, spec)
        if assignor == "range":
            assert ours == kafkas
        elif spec.homogeneous:
            # Which member gets which is a matter of hash order in Kafka.
            assert sorted(sizes(ours).values()) == sorted(sizes(kafkas).values())
            assert kept(spec, ours) == kept(spec, kafkas)
        else:
            assert_balanced(spec, kafkas)
            kept_here += kept(spec, ours)
            kept_there += kept(spec, kafkas)
            squares_here += sum(size * size for size in sizes(ours).values())
            squares_there += sum(size * size for size in sizes(kafkas).values())
    # Where subscriptions overlap neither finds the best every time; over all cases they do equally well.
    assert kept_here == pytest.approx(kept_there, rel=0.01)
    assert squares_here == pytest.approx(squares_there, rel=0.01)


def _kafka_assigns(cases: list[tuple[str, GroupSpec]]) -> list[Assignment]:
    result = kafka_tool(str(_ORACLE), stdin=json.dumps([as_json(*case) for case in cases]))
    answers = json.loads(result.check())
    return [from_json(spec, answer) for (_, spec), answer in zip(cases, answers, strict=True)]
