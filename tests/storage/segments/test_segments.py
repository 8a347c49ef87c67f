"""The list of a log's segments: what it holds on to however segments come, go and are replaced."""

from pathlib import Path
from random import Random

import pytest

from mainstem.config import LogConfig
from mainstem.storage.environment import LogEnvironment
from mainstem.storage.segments.segments import Segments, create_segment

NOW_MS = 1_700_000_000_000
DELAY_MS = 60_000


def segments_at(directory: Path, *bases: int) -> tuple[Segments, LogEnvironment]:
    """Empty segments that begin at these offsets."""
    environment, config = LogEnvironment(), LogConfig(file_delete_delay_ms=DELAY_MS)
    first = create_segment(str(directory), bases[0], NOW_MS, config, environment)
    segments = Segments(str(directory), [first], config, environment)
    for base in bases[1:]:
        segments.roll(base, NOW_MS)
    return segments, environment


def check(segments: Segments) -> None:
    assert len(segments) >= 1
    assert list(segments.bases) == [segment.base_offset for segment in segments]
    assert list(segments.bases) == sorted(set(segments.bases))
    assert segments.active is segments.in_order[-1]


def test_a_segment_holds_what_comes_before_the_next(tmp_path: Path) -> None:
    segments, _ = segments_at(tmp_path, 10, 20, 30)
    assert [segments.number_of(offset) for offset in (0, 10, 19, 20, 29, 30, 99)] == [0, 0, 0, 1, 1, 2, 2]


def test_a_segment_that_goes_is_renamed_now_and_removed_later(tmp_path: Path) -> None:
    segments, environment = segments_at(tmp_path, 0, 10, 20)
    segments.remove_first(NOW_MS)
    segments.remove_last(NOW_MS)
    assert list(segments.bases) == [10]
    assert {path.name for path in tmp_path.iterdir()} == {
        "00000000000000000000.log.deleted",
        "00000000000000000010.log",
        "00000000000000000020.log.deleted",
    }
    assert environment.deletions.take_due(NOW_MS + DELAY_MS - 1, 10) == []
    assert len(environment.deletions.take_due(NOW_MS + DELAY_MS, 10)) == 2


def test_the_last_segment_cannot_go_and_a_new_one_cannot_begin_before_it(tmp_path: Path) -> None:
    segments, _ = segments_at(tmp_path, 10)
    with pytest.raises(AssertionError):
        segments.remove_first(NOW_MS)
    with pytest.raises(AssertionError):
        segments.remove_last(NOW_MS)
    with pytest.raises(AssertionError):
        segments.roll(10, NOW_MS)
    check(segments)
    assert (tmp_path / "00000000000000000010.log").exists()


@pytest.mark.parametrize("offset", [0, 10, 500])
def test_what_is_left_begins_at_any_offset_again(tmp_path: Path, offset: int) -> None:
    segments, _ = segments_at(tmp_path, 10)
    segments.restart_at(offset, NOW_MS)
    check(segments)
    assert list(segments.bases) == [offset]
    assert (tmp_path / f"{offset:020d}.log").exists()


def test_one_segment_takes_the_place_of_several(tmp_path: Path) -> None:
    segments, _ = segments_at(tmp_path, 0, 10, 20, 30)
    old = segments.in_order[1:3]
    assert segments.are_in_a_row(old)
    new = segments.replace(old, 123, NOW_MS, 15)
    check(segments)
    assert list(segments.bases) == [0, 10, 30]
    assert segments.in_order[1] is new
    assert (new.size, new.max_timestamp, new.max_timestamp_offset) == (123, NOW_MS, 15)
    assert not segments.are_in_a_row(old), "they are not there any more"


def test_the_active_segment_and_strangers_are_not_replaced(tmp_path: Path) -> None:
    segments, _ = segments_at(tmp_path, 0, 10, 20)
    others, _ = segments_at(tmp_path / "..", 0, 10, 20)
    for wrong in (
        segments.in_order[1:],
        [segments.in_order[1], segments.in_order[0]],
        others.in_order[:1],
    ):
        assert not segments.are_in_a_row(wrong)
        with pytest.raises(AssertionError):
            segments.replace(wrong, 1, 0, 0)
    check(segments)


@pytest.mark.parametrize("seed", range(20))
def test_nothing_that_happens_to_the_list_breaks_it(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    segments, _ = segments_at(tmp_path, 100)
    for _ in range(40):
        count = len(segments)
        match random.choice(["roll", "roll", "first", "last", "restart", "replace"]):
            case "roll":
                segments.roll(segments.bases[-1] + random.randrange(1, 50), NOW_MS)
            case "first" if count > 1:
                segments.remove_first(NOW_MS)
            case "last" if count > 1:
                segments.remove_last(NOW_MS)
            case "restart" if count == 1:
                segments.restart_at(random.randrange(200), NOW_MS)
            case "replace" if count > 2:
                first = random.randrange(count - 1)
                segments.replace(segments.in_order[first : random.randrange(first + 1, count)], 0, -1, 0)
        check(segments)
        offset = random.randrange(300)
        holds = segments.in_order[segments.number_of(offset)]
        assert holds.base_offset <= offset or holds is segments.in_order[0]
