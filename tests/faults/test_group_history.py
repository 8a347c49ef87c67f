"""The checks of group histories notice each kind of broken promise."""

from pathlib import Path

import pytest

from tests.faults.group_history import (
    CommitWatch,
    HistoryError,
    acknowledged,
    check_delivered,
    check_order,
    read_lines,
)

GOOD = [
    *("assigned 0", "assigned 1", "got 0 0 0", "got 0 1 1", "got 1 5 5", "committed 0 2", "revoked 0"),
    *("got 1 6 6", "committed 1 7", "lost 1", "assigned 0", "got 0 0 0", "got 0 1 1", "got 0 2 2"),
]


def test_a_good_history_passes() -> None:
    check_order(GOOD)
    assert acknowledged([GOOD]) == {0: 2, 1: 7}
    assert check_delivered([GOOD, ["got 1 0 0", "got 1 1 1", "got 1 2 2"]], {0: 3, 1: 3}) == 8


@pytest.mark.parametrize(
    ("history", "complaint"),
    [
        (["assigned 0", "got 0 0 0", "got 0 2 2"], "2 came in place of 1"),
        (["assigned 0", "got 0 1 1", "got 0 0 0"], "0 came in place of 2"),
        (["assigned 0", "got 0 1 1", "got 0 1 1"], "1 came in place of 2"),
        (["assigned 0", "got 0 3 4"], "offset 3 holds 4"),
        (["got 0 3 3"], "a member without it"),
        (["assigned 0", "got 0 0 0", "revoked 0", "got 0 1 1"], "a member without it"),
    ],
)
def test_disorder_is_noticed(history: list[str], complaint: str) -> None:
    with pytest.raises(HistoryError, match=complaint):
        check_order(history)


def test_a_message_that_nobody_got_is_noticed() -> None:
    with pytest.raises(HistoryError, match="1 messages of partition 0 never came, the first is 1"):
        check_delivered([["got 0 0 0"], ["got 0 2 2"]], {0: 3})


def test_a_lost_commit_is_noticed() -> None:
    with pytest.raises(HistoryError, match="2 was acknowledged, 1 is committed"):
        CommitWatch().look({0: 1, 1: 7}, [GOOD])
    with pytest.raises(HistoryError, match="7 was acknowledged, None is committed"):
        CommitWatch().look({0: 2}, [GOOD])


def test_a_commit_that_goes_back_is_noticed() -> None:
    watch = CommitWatch()
    watch.look({0: 9, 1: 9}, [GOOD])
    with pytest.raises(HistoryError, match="went back from 9 to 8"):
        watch.look({0: 9, 1: 8}, [GOOD])


def test_half_a_line_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "history"
    assert read_lines(path) == []
    path.write_text("assigned 0\ngot 0 12")
    assert read_lines(path) == ["assigned 0"]
