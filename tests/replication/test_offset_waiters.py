"""Waiters for offsets: each is handed out once, when its offset is reached, the lowest offset first."""

from mainstem.replication.offset_waiters import OffsetWaiters


def filled(*entries: tuple[int, str]) -> OffsetWaiters[str]:
    waiters: OffsetWaiters[str] = OffsetWaiters()
    for offset, name in entries:
        waiters.add(offset, name)
    return waiters


def test_only_those_whose_offset_is_reached_are_handed_out() -> None:
    waiters = filled((1, "a"), (2, "b"), (2, "c"), (5, "d"))
    assert waiters.take_reached(0) == []
    assert waiters.take_reached(2) == ["a", "b", "c"]
    assert waiters.take_reached(4) == []
    assert waiters.take_reached(9) == ["d"]


def test_one_that_comes_late_for_an_early_offset_is_handed_out_in_its_place() -> None:
    waiters = filled((5, "new"), (8, "newer"), (3, "sent again"), (5, "sent again too"))
    assert waiters.take_reached(4) == ["sent again"]
    assert waiters.take_reached(8) == ["new", "sent again too", "newer"]


def test_one_that_left_is_not_handed_out() -> None:
    waiters = filled((1, "a"), (2, "b"), (3, "a"))
    waiters.remove("a")
    assert waiters.take_reached(9) == ["b"]


def test_everybody_is_handed_out_at_the_end() -> None:
    waiters = filled((1, "a"), (2, "b"))
    assert waiters.take_all() == ["a", "b"]
    assert waiters.take_reached(9) == []
