"""Judges the history of a run: names every way in which the broker broke a promise of its transactions.

    python -m tests.faults.history_checks HISTORY

An operation without an answer may have happened or not, but as a whole; it counts as committed once anybody
saw something of it. The anomalies are those of Jepsen's tests of Kafka and Redpanda, as Kafka promises them.
"""

import sys
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from mainstem.protocol.resources import TopicPartition
from tests.faults.history import Kind, Operation, Outcome, read_history
from tests.faults.history_facts import Facts, surviving
from tests.faults.history_order import write_cycle

LOST = "lost write"
DUPLICATE = "duplicate"
ABORTED_READ = "aborted read"
UNCOMMITTED_READ = "read of uncommitted data"
INCONSISTENT = "inconsistent offsets"
TORN = "torn transaction"
CYCLE = "write cycle"
HANGING = "hanging transaction"
UNWRITTEN = "value that nobody wrote"


class Anomaly(NamedTuple):
    """One broken promise; the text names the value or the group, and the place."""

    kind: str
    text: str


def check(history: Sequence[Operation]) -> list[Anomaly]:
    facts = Facts(history)
    unwritten = list(_unwritten(facts))
    if unwritten:
        return unwritten  # the other checks would ask who wrote these
    taken: dict[int, bool] = {}
    return [
        *_aborted_reads(facts),
        *_uncommitted_reads(facts),
        *_duplicates(facts),
        *_inconsistent_offsets(facts),
        *_group_offsets(facts, taken),
        *_lost_writes(facts),
        *_passed_over(facts),
        *_torn(facts, taken),
        *_hanging(facts),
        *(Anomaly(CYCLE, text) for text in write_cycle(facts)),
    ]


def _unwritten(facts: Facts) -> Iterator[Anomaly]:
    for value, sightings in facts.sightings.items():
        for sighting in sightings:
            topic = facts.writers[value][1].topic if value in facts.writers else "no topic"
            if topic != sighting.where[0]:
                text = f"{value}, written to {topic}, came from {_at(sighting.where, sighting.offset)}"
                yield Anomaly(UNWRITTEN, text)


def _aborted_reads(facts: Facts) -> Iterator[Anomaly]:
    for value, sightings in facts.sightings.items():
        if facts.is_aborted(value):
            where = _at(sightings[0].where, sightings[0].offset)
            yield Anomaly(ABORTED_READ, f"{value} at {where} came to {sightings[0].reader.process}")


def _uncommitted_reads(facts: Facts) -> Iterator[Anomaly]:
    for value, sightings in facts.sightings.items():
        writer, _ = facts.writers[value]
        if writer.kind != Kind.TRANSACTION or writer.decided_at is None:
            continue
        for sighting in sightings:
            if sighting.reader.ended < writer.decided_at:
                where = _at(sighting.where, sighting.offset)
                text = f"{value} at {where} came to {sighting.reader.process} before its commit was asked for"
                yield Anomaly(UNCOMMITTED_READ, text)


def _duplicates(facts: Facts) -> Iterator[Anomaly]:
    for value in facts.sightings:
        places = sorted(facts.places(value))
        if len(places) > 1:
            yield Anomaly(DUPLICATE, f"{value} is at {' and at '.join(_at(*place) for place in places)}")


def _inconsistent_offsets(facts: Facts) -> Iterator[Anomaly]:
    for where, entries in facts.log.items():
        for offset, values in entries.items():
            if len(values) > 1:
                yield Anomaly(INCONSISTENT, f"{_at(where, offset)} holds {' and '.join(sorted(values))}")
    for value, (_, write) in facts.writers.items():
        if write.acknowledged is not None and facts.stands(write.topic, write.acknowledged):
            for place in facts.places(value) - {(write.where, write.offset)}:
                told = _at(write.where, write.offset)
                yield Anomaly(INCONSISTENT, f"{value} was acknowledged at {told} and is at {_at(*place)}")
    for operation, poll in facts.polls():
        offsets = [poll.position - 1, *(offset for offset, _ in poll.records), poll.end]
        if any(later <= earlier for earlier, later in pairwise(offsets)):
            text = f"{operation.process} read {offsets[1:-1]} from {poll.position} to {poll.end}"
            yield Anomaly(INCONSISTENT, f"{poll.where}: {text}")


def _group_offsets(facts: Facts, taken: dict[int, bool]) -> Iterator[Anomaly]:
    """A group stands where its last committed transaction left it. Notes in `taken`, by the operation's
    identity, how a transaction without an answer was decided.
    """
    expected: defaultdict[tuple[str, TopicPartition], set[int]] = defaultdict(lambda: {0})
    undecided: dict[tuple[str, TopicPartition], tuple[Operation, int]] = {}
    for operation in facts.history:
        for step in operation.progress:
            if not facts.stands(step.topic, operation.ended):
                continue
            key = step.group, (step.topic, step.partition)
            if step.before not in expected[key]:
                place = f"{step.group} at {step.topic}-{step.partition}"
                text = f"{place} stands at {step.before}, not at {sorted(expected[key])}"
                yield Anomaly(INCONSISTENT, text)
            elif key in undecided:
                earlier, after = undecided[key]
                taken[id(earlier)] = step.before == after
            undecided.pop(key, None)
            if operation.outcome == Outcome.OK:
                expected[key] = {step.after}
            elif operation.outcome == Outcome.FAILED:
                expected[key] = {step.before}
            else:
                expected[key] = {step.before, step.after}
                if step.before != step.after:
                    undecided[key] = operation, step.after


def _lost_writes(facts: Facts) -> Iterator[Anomaly]:
    if not facts.is_complete:
        return
    for value, (operation, write) in facts.writers.items():
        if facts.survives(write.topic) and facts.is_committed(value) and value not in facts.final_values:
            place = _at(write.where, write.offset) if write.offset >= 0 else write.topic
            yield Anomaly(LOST, f"{value} of {operation.process} at {place} is gone in the end")


def _passed_over(facts: Facts) -> Iterator[Anomaly]:
    """Whoever was given an offset was given every committed one before it: below the last stable offset
    nothing is undecided.
    """
    offsets = {where: sorted(entries) for where, entries in facts.log.items()}
    for operation, poll in facts.polls():
        known = offsets.get(poll.where, [])
        got = {offset for offset, _ in poll.records}
        for offset in known[bisect_left(known, poll.position) : bisect_left(known, poll.end)]:
            if offset in got:
                continue
            for value in facts.log[poll.where][offset]:
                if facts.is_committed(value):
                    text = f"{value} at {_at(poll.where, offset)} did not come to {operation.process}"
                    yield Anomaly(LOST, f"{text}, which read {poll.position} to {poll.end}")


def _torn(facts: Facts, taken: dict[int, bool]) -> Iterator[Anomaly]:
    """All of a transaction is there in the end, or nothing of it; its offsets share its fate."""
    if not facts.is_complete:
        return
    for operation in facts.transactions():
        if operation.outcome == Outcome.FAILED:
            continue
        values = {write.value for write in surviving(facts, operation.writes)}
        seen = values & facts.final_values
        missing = values - seen
        if seen and missing:
            text = (
                f"of {operation.process}: {', '.join(sorted(seen))} stayed, {', '.join(sorted(missing))} not"
            )
            yield Anomaly(TORN, text)
        elif id(operation) in taken and (missing if taken[id(operation)] else seen):
            fate = "count" if taken[id(operation)] else "do not count"
            text = f"of {operation.process}: its offsets {fate}, {', '.join(sorted(values))}"
            yield Anomaly(TORN, f"{text} {'is missing' if missing else 'is there'}")


def _hanging(facts: Facts) -> Iterator[Anomaly]:
    """In the end everybody has ended what he began, or his time has run out: all is stable."""
    for _, poll in facts.polls():
        if poll.end < poll.high_watermark:
            text = f"the last stable offset is {poll.end}, the high watermark {poll.high_watermark}"
            yield Anomaly(HANGING, f"{_at(poll.where, poll.end)}: {text}")


def _at(where: TopicPartition, offset: int) -> str:
    return f"{where[0]}-{where[1]}@{offset}"


def summary(history: Sequence[Operation]) -> str:
    """What was done, in one line per kind."""
    kinds = Counter(f"{operation.kind} {operation.outcome}" for operation in history)
    writes = sum(len(operation.writes) for operation in history)
    reads = sum(len(poll.records) for operation in history for poll in operation.polls)
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    return f"{counts}; {writes} records written, {reads} read"


def main(path: str) -> int:
    history = read_history(Path(path))
    anomalies = check(history)
    print(summary(history))
    for anomaly in anomalies:
        print(f"{anomaly.kind}: {anomaly.text}")
    print(f"{len(anomalies)} anomalies")
    return 1 if anomalies else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
