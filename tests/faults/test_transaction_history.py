"""The checker of histories names each anomaly when it is planted, and nothing else; a good history passes."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults import history_checks
from tests.faults.history import (
    Kind,
    Operation,
    Outcome,
    Poll,
    Progress,
    Recorder,
    Write,
    read_history,
    write_history,
)
from tests.faults.history_checks import (
    ABORTED_READ,
    CYCLE,
    DUPLICATE,
    HANGING,
    INCONSISTENT,
    LOST,
    TORN,
    UNCOMMITTED_READ,
    UNWRITTEN,
    check,
)
from tests.faults.history_sample import FaultlessRun

History = list[Operation]
SEEDS = range(20)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_good_history_passes(seed: int) -> None:
    history = FaultlessRun(seed).operations
    outcomes = {(operation.kind, operation.outcome) for operation in history}
    assert {(Kind.TRANSACTION, outcome) for outcome in Outcome} < outcomes
    assert (Kind.SEND, Outcome.UNKNOWN) in outcomes
    assert check(history) == []


# ---- the parts of a history in which something can be planted


def _final(history: History) -> Operation:
    return next(operation for operation in history if operation.kind == Kind.FINAL)


def _transactions(history: History, outcome: Outcome) -> Iterator[Operation]:
    for operation in history:
        stays = all(write.topic != "doomed" for write in operation.writes)
        if operation.kind == Kind.TRANSACTION and operation.outcome == outcome and operation.writes and stays:
            yield operation


def _unanswered(history: History) -> Iterator[Operation]:
    """Those of which only their writes tell what became of them."""
    return (it for it in _transactions(history, Outcome.UNKNOWN) if not it.progress)


def _forget(history: History, value: str) -> None:
    """As if nobody had ever read it."""
    for operation in history:
        for poll in operation.polls:
            poll.records = [record for record in poll.records if record[1] != value]


def _is_there(history: History, value: str) -> bool:
    return any(value == found for poll in _final(history).polls for _, found in poll.records)


def _insert(poll: Poll, offset: int, value: str) -> None:
    poll.records = sorted([*poll.records, (offset, value)])
    poll.end = max(poll.end, offset + 1)


def _poll_of(operation: Operation, write: Write) -> Poll:
    return next(poll for poll in operation.polls if poll.where == write.where)


# ---- what is planted; each returns words that the complaint must have


def lose_a_committed_write(history: History) -> tuple[str, set[str]]:
    write = next(it for it in _transactions(history, Outcome.OK) if len(it.writes) > 1).writes[0]
    _forget(history, write.value)
    return write.value, {LOST, TORN}


def lose_a_whole_transaction(history: History) -> tuple[str, set[str]]:
    operation = next(it for it in _transactions(history, Outcome.OK) if not it.progress)
    for write in operation.writes:
        _forget(history, write.value)
    return operation.writes[0].value, {LOST}


def lose_a_plain_write(history: History) -> tuple[str, set[str]]:
    write = next(
        write
        for operation in history
        for write in operation.writes
        if operation.kind == Kind.SEND and write.acknowledged is not None and write.topic == "red"
    )
    _forget(history, write.value)
    return write.value, {LOST}


def lose_what_was_never_acknowledged_but_read(history: History) -> tuple[str, set[str]]:
    final = _final(history)
    for operation in history:
        for write in operation.writes if operation.kind == Kind.SEND else ():
            if write.acknowledged is None and write.topic != "doomed":
                poll = _poll_of(final, write)
                (offset,) = (offset for offset, value in poll.records if value == write.value)
                _forget(history, write.value)
                early = Poll(*write.where, offset, offset + 1, [(offset, write.value)])
                reader = Operation("reader", Kind.POLL, final.began - 2, final.began - 1, Outcome.OK)
                reader.polls = [early]
                history.append(reader)
                return write.value, {LOST}
    raise AssertionError("the sample has no such write")


def pass_over_a_record(history: History) -> tuple[str, set[str]]:
    poll = next(
        poll
        for operation in history
        for poll in operation.polls
        if operation.kind == Kind.POLL and poll.topic != "doomed" and len(poll.records) > 2
    )
    _, value = poll.records.pop(1)
    return value, {LOST}


def write_twice(history: History) -> tuple[str, set[str]]:
    write = next(_transactions(history, Outcome.OK)).writes[0]
    poll = _poll_of(_final(history), write)
    _insert(poll, poll.end, write.value)
    # Who knows the right offset from the acknowledgement calls the other one wrong.
    return write.value, {DUPLICATE, INCONSISTENT}


def write_to_two_partitions(history: History) -> tuple[str, set[str]]:
    write = next(
        write
        for operation in history
        for write in operation.writes
        if operation.kind == Kind.SEND and write.acknowledged is None and write.topic == "red"
    )
    poll = next(it for it in _final(history).polls if it.topic == "red" and it.partition != write.partition)
    _insert(poll, poll.end, write.value)
    return write.value, {DUPLICATE}


def show_an_aborted_write(history: History) -> tuple[str, set[str]]:
    write = next(_transactions(history, Outcome.FAILED)).writes[0]
    _insert(_poll_of(_final(history), write), write.offset, write.value)
    return write.value, {ABORTED_READ}


def show_an_aborted_write_of_a_deleted_topic(history: History) -> tuple[str, set[str]]:
    operation = next(_transactions(history, Outcome.FAILED))
    operation.writes.append(Write("doomed", "zombie.1", operation.began + 1, 0))
    time = _final(history).began
    reader = Operation("reader", Kind.POLL, time - 2, time - 1, Outcome.OK)
    reader.polls = [Poll("doomed", 0, 77, 78, [(77, "zombie.1")])]
    history.append(reader)
    return "zombie.1", {ABORTED_READ}


def show_a_write_before_its_commit(history: History) -> tuple[str, set[str]]:
    operation = next(it for it in _transactions(history, Outcome.OK) if len(it.writes) > 1)
    write = operation.writes[0]
    assert write.acknowledged is not None
    assert operation.decided_at is not None
    early = Operation("reader", Kind.POLL, write.acknowledged, operation.decided_at - 1, Outcome.OK)
    early.polls = [Poll(*write.where, write.offset, write.offset + 1, [(write.offset, write.value)])]
    history.append(early)
    return write.value, {UNCOMMITTED_READ}


def show_two_values_at_one_offset(history: History) -> tuple[str, set[str]]:
    final = _final(history)
    poll = final.polls[0]
    (first, one), (second, other) = poll.records[3:5]
    # The next life of the broker gave the offsets the other way round.
    again = Poll(*poll.where, first, second + 1, [(first, other), (second, one)])
    later = Operation("reader", Kind.POLL, final.began - 2, final.began - 1, Outcome.OK)
    later.polls = [again]
    history.append(later)
    return f"holds {min(one, other)} and {max(one, other)}", {INCONSISTENT, DUPLICATE}


def acknowledge_another_offset(history: History) -> tuple[str, set[str]]:
    write = next(_transactions(history, Outcome.OK)).writes[0]
    last = max(poll.end for poll in _final(history).polls)
    told = write.offset
    write.offset = last + 100
    return f"{write.value} was acknowledged at {write.topic}-{write.partition}@{last + 100} and is at " + (
        f"{write.topic}-{write.partition}@{told}"
    ), {INCONSISTENT}


def read_backwards(history: History) -> tuple[str, set[str]]:
    poll = next(
        poll
        for operation in history
        for poll in operation.polls
        if operation.kind == Kind.POLL and poll.topic != "doomed" and len(poll.records) > 2
    )
    poll.records.reverse()
    return f"from {poll.position} to {poll.end}", {INCONSISTENT}


def lose_a_groups_offset(history: History) -> tuple[str, set[str]]:
    step = next(step for step in _final(history).progress if step.before > 0)
    step.before = 0
    return f"{step.group} at {step.topic}-{step.partition} stands at 0", {INCONSISTENT}


def keep_the_offset_of_an_aborted_transaction(history: History) -> tuple[str, set[str]]:
    final = _final(history)
    final.progress.append(Progress("group-of-zombie", "red", 0, 3, 3))
    operation = next(it for it in _transactions(history, Outcome.FAILED) if not it.progress)
    operation.progress = [Progress("group-of-zombie", "red", 0, 0, 3)]
    return "group-of-zombie at red-0 stands at 3, not at [0]", {INCONSISTENT}


def tear_a_transaction_without_an_answer(history: History) -> tuple[str, set[str]]:
    operation = next(
        it
        for it in _transactions(history, Outcome.UNKNOWN)
        if len(it.writes) > 2 and _is_there(history, it.writes[0].value)
    )
    _forget(history, operation.writes[1].value)
    return operation.writes[1].value, {TORN}


def tear_the_offsets_from_their_transaction(history: History) -> tuple[str, set[str]]:
    """It never got an answer, nothing of it is there, and yet the group went on behind it."""
    operation = next(it for it in _unanswered(history) if not _is_there(history, it.writes[0].value))
    operation.progress = [Progress("group-of-torn", "red", 0, 0, 3)]
    _final(history).progress.append(Progress("group-of-torn", "red", 0, 3, 3))
    return f"its offsets count, {', '.join(sorted(write.value for write in operation.writes))}", {TORN}


def tear_a_transaction_from_its_offsets(history: History) -> tuple[str, set[str]]:
    operation = next(it for it in _unanswered(history) if _is_there(history, it.writes[0].value))
    operation.progress = [Progress("group-of-torn", "red", 0, 0, 3)]
    _final(history).progress.append(Progress("group-of-torn", "red", 0, 0, 0))
    return f"its offsets do not count, {', '.join(sorted(w.value for w in operation.writes))}", {TORN}


def turn_the_order_of_writes_round(history: History) -> tuple[str, set[str]]:
    """Two clients write to two new partitions, one after the other, and each lies before what led to it."""
    end = max(operation.ended for operation in history)
    final = _final(history)
    for process, places in (("a", (("p", 1), ("q", 0))), ("b", (("q", 1), ("p", 0)))):
        for number, (topic, offset) in enumerate(places):
            began = end + 10 * number
            write = Write(topic, f"{process}{number}", began + 1, 0, offset, began + 2)
            operation = Operation(process, Kind.TRANSACTION, began, began + 4, Outcome.OK, began + 3, [write])
            history.append(operation)
    final.polls += [
        Poll("p", 0, 0, 2, [(0, "b1"), (1, "a0")]),
        Poll("q", 0, 0, 2, [(0, "a1"), (1, "b0")]),
    ]
    final.began, final.ended = end + 50, end + 60
    return "before", {CYCLE}


def turn_the_order_of_one_producer_round(history: History) -> tuple[str, set[str]]:
    """What it sent first lies second; neither was acknowledged, so that time tells nothing."""
    final = _final(history)
    began = final.began - 9
    writes = [Write("p", "a0", began + 1, 0), Write("p", "a1", began + 2, 0)]
    history.append(Operation("a", Kind.SEND, began, began + 3, Outcome.UNKNOWN, writes=writes))
    final.polls.append(Poll("p", 0, 0, 2, [(0, "a1"), (1, "a0")]))
    return "a0 before a1", {CYCLE}


def leave_a_transaction_open(history: History) -> tuple[str, set[str]]:
    """What comes after it is never read."""
    poll = next(poll for poll in _final(history).polls if poll.topic == "red")
    poll.high_watermark += 2
    return f"{poll.end}, the high watermark {poll.end + 2}", {HANGING}


def show_what_nobody_wrote(history: History) -> tuple[str, set[str]]:
    poll = _final(history).polls[0]
    _insert(poll, poll.end, "nobody.1")
    return "nobody.1, written to no topic", {UNWRITTEN}


def show_a_value_in_another_topic(history: History) -> tuple[str, set[str]]:
    write = next(_transactions(history, Outcome.OK)).writes[0]
    poll = next(poll for poll in _final(history).polls if poll.topic != write.topic)
    _insert(poll, poll.end, write.value)
    return f"{write.value}, written to {write.topic}", {UNWRITTEN}


PLANTED: list[Callable[[History], tuple[str, set[str]]]] = [
    lose_a_committed_write,
    lose_a_whole_transaction,
    lose_a_plain_write,
    lose_what_was_never_acknowledged_but_read,
    pass_over_a_record,
    write_twice,
    write_to_two_partitions,
    show_an_aborted_write,
    show_an_aborted_write_of_a_deleted_topic,
    show_a_write_before_its_commit,
    show_two_values_at_one_offset,
    acknowledge_another_offset,
    read_backwards,
    lose_a_groups_offset,
    keep_the_offset_of_an_aborted_transaction,
    tear_a_transaction_without_an_answer,
    tear_the_offsets_from_their_transaction,
    tear_a_transaction_from_its_offsets,
    turn_the_order_of_writes_round,
    turn_the_order_of_one_producer_round,
    leave_a_transaction_open,
    show_what_nobody_wrote,
    show_a_value_in_another_topic,
]


@pytest.mark.parametrize("plant", PLANTED)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_an_anomaly_is_named(
    plant: Callable[[History], tuple[str, set[str]]], seed: int, tmp_path: Path
) -> None:
    path = tmp_path / "history"
    history = FaultlessRun(seed).operations
    words, kinds = plant(history)
    write_history(path, history)
    found = check(read_history(path))
    assert {anomaly.kind for anomaly in found} == kinds
    assert any(words in anomaly.text for anomaly in found), found


@pytest.mark.parametrize("seed", SEEDS)
def test_a_transaction_without_an_answer_may_be_there_or_not(seed: int) -> None:
    """Whatever the broker made of it in silence, as long as it is whole."""
    history = FaultlessRun(seed).operations
    unanswered = list(_unanswered(history))
    there = [it for it in unanswered if _is_there(history, it.writes[0].value)]
    assert there
    assert len(there) < len(unanswered)
    for operation in there[::2]:
        for write in operation.writes:
            _forget(history, write.value)
    assert check(history) == []


def test_transactions_that_overlap_may_lie_in_either_order() -> None:
    history = []
    for process, (first, second) in (("a", (0, 1)), ("b", (1, 0))):
        writes = [Write("p", f"{process}0", 2, 0, first, 10), Write("q", f"{process}1", 3, 0, second, 10)]
        history.append(Operation(process, Kind.TRANSACTION, 1, 20, Outcome.OK, 11, writes))
    final = Operation("reader", Kind.FINAL, 21, 22, Outcome.OK)
    final.polls = [
        Poll("p", 0, 0, 2, [(0, "a0"), (1, "b0")]),
        Poll("q", 0, 0, 2, [(0, "b1"), (1, "a1")]),
    ]
    assert check([*history, final]) == []


def test_the_tool_reads_what_was_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "history"
    recorder = Recorder(path)
    history = FaultlessRun(1).operations
    for operation in history:
        recorder.note(operation)
    recorder.close()
    assert recorder.count == sum(operation.outcome == Outcome.OK for operation in history)
    assert history_checks.main(str(path)) == 0
    assert "0 anomalies" in capsys.readouterr().out
    value, _ = show_an_aborted_write(history)
    write_history(path, history)
    assert history_checks.main(str(path)) == 1
    assert f"{ABORTED_READ}: {value}" in capsys.readouterr().out
