"""Replicas spread over brokers and racks, and leaders over all of them."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainstem.cluster.controller.placement import place_replicas
from mainstem.cluster.image import BrokerImage
from mainstem.protocol.errors import ErrorCode, KafkaError


def broker(broker_id: int, rack: str | None = None, *, fenced: bool = False) -> BrokerImage:
    return BrokerImage(broker_id, bytes(16), 0, {}, {}, rack, fenced)


@given(st.integers(1, 7), st.integers(1, 60), st.integers(0, 2**32 - 1), st.data())
def test_every_partition_has_distinct_replicas_and_leaders_are_spread_evenly(
    broker_count: int, partitions: int, start: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, broker_count))
    placed = place_replicas([broker(i) for i in range(broker_count)], partitions, factor, start)
    assert len(placed) == partitions
    assert all(len(set(replicas)) == factor for replicas in placed)
    leaders = Counter(dict.fromkeys(range(broker_count), 0))
    leaders.update(replicas[0] for replicas in placed)
    assert max(leaders.values()) - min(leaders.values()) <= 1


def test_racks_take_turns_so_that_two_replicas_are_in_two_racks() -> None:
    racks = {0: "a", 1: "a", 2: "b", 3: "b"}
    placed = place_replicas([broker(i, racks[i]) for i in racks], 4, 2, 0)
    assert all(racks[first] != racks[second] for first, second in placed)


def test_followers_of_one_leader_change_from_turn_to_turn() -> None:
    placed = place_replicas([broker(i) for i in range(3)], 6, 2, 0)
    assert placed == [(0, 1), (1, 2), (2, 0), (0, 2), (1, 0), (2, 1)]


def test_later_partitions_go_on_where_the_earlier_ones_stopped() -> None:
    brokers = [broker(i) for i in range(4)]
    assert place_replicas(brokers, 8, 2, 5)[3:] == place_replicas(brokers, 5, 2, 5, first_partition=3)


def test_a_fenced_broker_follows_only_where_no_other_is_left_and_never_leads() -> None:
    brokers = [broker(0), broker(1, fenced=True), broker(2)]
    assert all(1 not in replicas for replicas in place_replicas(brokers, 4, 2, 0))
    assert all(replicas[2] == 1 for replicas in place_replicas(brokers, 4, 3, 0))


def test_more_replicas_than_brokers_are_refused() -> None:
    with pytest.raises(KafkaError) as refusal:
        place_replicas([broker(0)], 1, 2, 0)
    assert refusal.value.code is ErrorCode.INVALID_REPLICATION_FACTOR


def test_nothing_is_placed_while_every_broker_is_fenced() -> None:
    with pytest.raises(KafkaError) as refusal:
        place_replicas([broker(0, fenced=True)], 1, 1, 0)
    assert refusal.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
