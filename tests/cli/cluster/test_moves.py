"""Which copies are moved when a broker is emptied, or when all are to hold the same number."""

from collections import Counter
from random import Random

import pytest

from mainstem.cli.cluster.moves import NoRoomError, drain, even_out
from mainstem.protocol.resources import TopicPartition

Replicas = dict[TopicPartition, list[int]]


def after(before: Replicas, moves: Replicas) -> Counter[int]:
    return Counter(broker for ids in (before | moves).values() for broker in ids)


def test_a_broker_is_emptied_and_the_rest_stays_in_its_place() -> None:
    before: Replicas = {("t", 0): [1, 2], ("t", 1): [2, 3], ("t", 2): [3, 1]}
    moves = drain(before, 2, {1: None, 2: None, 3: None, 4: None})
    assert moves == {("t", 0): [1, 4], ("t", 1): [4, 3]}


def test_copies_stay_on_racks_apart() -> None:
    racks = {1: "a", 2: "b", 3: "a", 4: "b"}
    assert drain({("t", 0): [1, 2]}, 2, racks) == {("t", 0): [1, 4]}


def test_there_have_to_be_enough_brokers() -> None:
    with pytest.raises(NoRoomError, match="t-0 has 3 copies, and only 2 other brokers live"):
        drain({("t", 0): [1, 2, 3]}, 3, {1: None, 2: None, 3: None})


def test_a_new_broker_gets_its_share() -> None:
    before: Replicas = {("t", number): [1, 2, 3] for number in range(8)}
    moves = even_out(before, dict.fromkeys((1, 2, 3, 4)))
    held = after(before, moves)
    assert sorted(held.values()) == [6, 6, 6, 6]
    assert sum(len(set(ids) - set(before[where])) for where, ids in moves.items()) == 6


def firsts(before: Replicas, moves: Replicas) -> Counter[int]:
    return Counter(ids[0] for ids in (before | moves).values())


def test_a_new_broker_comes_first_as_often_as_the_others() -> None:
    before: Replicas = {("t", number): [1 + number % 3, 1 + (number + 1) % 3] for number in range(24)}
    moves = even_out(before, dict.fromkeys((1, 2, 3, 4)))
    assert set(after(before, moves).values()) == {12}
    assert set(firsts(before, moves).values()) == {6}
    assert sum(len(set(ids) - set(before[where])) for where, ids in moves.items()) == 12


def test_first_places_are_given_away_through_others() -> None:
    """1 shares no partition with 3."""
    held = [[1, 2], [1], [1], [1], [2, 3], [2], [2], [3], [3]]
    before: Replicas = {("t", number): ids for number, ids in enumerate(held)}
    moves = even_out(before, dict.fromkeys((1, 2, 3)))
    assert moves == {("t", 0): [2, 1], ("t", 4): [3, 2]}
    assert firsts(before, moves) == {1: 3, 2: 3, 3: 3}


def test_brokers_that_do_not_live_stay_the_first() -> None:
    before: Replicas = {("t", number): [9, 1, 2] for number in range(4)}
    assert even_out(before, dict.fromkeys((1, 2))) == {}


def test_what_is_even_stays() -> None:
    assert even_out({("t", 0): [1, 2], ("t", 1): [2, 1]}, {1: None, 2: None}) == {}
    assert even_out({}, {}) == {}


@pytest.mark.parametrize("seed", range(20))
def test_every_plan_keeps_what_it_must(seed: int) -> None:
    random = Random(seed)
    brokers = list(range(1, random.randint(5, 8)))
    racks: dict[int, str | None] = {broker: random.choice([None, "a", "b", "c"]) for broker in brokers}
    before: Replicas = {
        (topic, number): random.sample(brokers, random.randint(1, 3)) for topic in "tu" for number in range(9)
    }
    leaving = random.choice(brokers)
    for moves in (drain(before, leaving, racks), even_out(before, racks)):
        for where, ids in moves.items():
            assert len(set(ids)) == len(ids) == len(before[where])
            assert ids != before[where]
    led, evened = (firsts(before, moves) for moves in ({}, even_out(before, racks)))
    assert max(evened.values()) - min(evened[broker] for broker in brokers) <= (
        max(led.values()) - min(led[broker] for broker in brokers)
    )
    assert after(before, drain(before, leaving, racks))[leaving] == 0
