"""How far a micro-batch reads, as Spark's connector shares it out."""

from mainstem.spark.source.admission import BatchDelay, rate_limit

A, B, C = ("t", 0), ("t", 1), ("t", 2)


def test_a_limit_is_shared_by_what_each_partition_has() -> None:
    assert rate_limit(10, {A: 0, B: 100}, {A: 75, B: 125}) == {A: 7, B: 102}


def test_no_partition_is_starved() -> None:
    assert rate_limit(10, {A: 0, B: 0}, {A: 10_000, B: 1}) == {A: 9, B: 1}


def test_a_limit_that_is_not_reached_changes_nothing() -> None:
    assert rate_limit(100, {A: 0, B: 5}, {A: 75, B: 5}) == {A: 75, B: 5}


def test_a_partition_without_a_start_is_left_alone_and_one_that_went_back_too() -> None:
    assert rate_limit(10, {A: 0, B: 50}, {A: 100, B: 20, C: 7}) == {A: 10, B: 20, C: 7}


def test_a_batch_waits_for_enough_records_but_not_for_ever() -> None:
    delay = BatchDelay(least=10, max_delay_ms=1000)
    assert not delay.holds_back(0, {A: 0}, {A: 1}), "the first batch does not wait"
    assert delay.holds_back(10, {A: 1}, {A: 5})
    assert not delay.holds_back(20, {A: 1}, {A: 11}), "enough"
    assert delay.holds_back(1019, {A: 11}, {A: 12})
    assert not delay.holds_back(1020, {A: 11}, {A: 12}), "long enough"
