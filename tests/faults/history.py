"""What the clients of a run did and saw, one operation per line, to be judged when the run is over.

Times are nanoseconds of one monotonic clock that all clients share. Every value is written once in a whole
run, so that wherever it comes up again it tells who wrote it.
"""

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from threading import Lock

import msgspec

from mainstem.protocol.resources import TopicPartition


class Kind(StrEnum):
    """What an operation was. Kills and repartitions are only there to be read by a person."""

    TRANSACTION = "transaction"
    SEND = "send"
    POLL = "poll"
    FINAL = "final"  # a poll of everything, when nothing else runs any more
    DELETE = "delete"
    REPARTITION = "repartition"
    KILL = "kill"


class Outcome(StrEnum):
    """How it ended. UNKNOWN stands for every answer that did not come: it may have happened, or not."""

    OK = "ok"
    FAILED = "failed"  # it certainly has no effect: the transaction is aborted
    UNKNOWN = "unknown"


class Write(msgspec.Struct):
    """A record that was sent; with the place and time of its acknowledgement, when there was one."""

    topic: str
    value: str
    sent: int
    partition: int = -1  # of a record that was never acknowledged it may be unknown
    offset: int = -1
    acknowledged: int | None = None

    @property
    def where(self) -> TopicPartition:
        return self.topic, self.partition


class Poll(msgspec.Struct):
    """What a read_committed consumer got between two positions of a partition, without a seek between."""

    topic: str
    partition: int
    position: int
    end: int
    records: list[tuple[int, str]]
    high_watermark: int = -1  # told by the poll of everything

    @property
    def where(self) -> TopicPartition:
        return self.topic, self.partition


class Progress(msgspec.Struct):
    """A group's committed offset as it was found, and what the transaction was to make of it.

    Who finds it must have made sure that no earlier transaction of this group can still be decided.
    """

    group: str
    topic: str
    partition: int
    before: int
    after: int


class Operation(msgspec.Struct, omit_defaults=True):
    """One thing that a client did. Without `decided_at` nobody ever asked to commit this transaction."""

    process: str
    kind: Kind
    began: int
    ended: int
    outcome: Outcome
    decided_at: int | None = None
    writes: list[Write] = []
    polls: list[Poll] = []
    progress: list[Progress] = []
    topic: str = ""
    note: str = ""


class Recorder:
    """Takes operations from many threads; the file has every one that ended, whatever happens next."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb", buffering=0)
        self._lock = Lock()
        self.count = 0  # of operations that went well

    def note(self, operation: Operation) -> None:
        line = msgspec.json.encode(operation) + b"\n"
        with self._lock:
            self._file.write(line)
            self.count += operation.outcome == Outcome.OK

    def close(self) -> None:
        self._file.close()


def read_history(path: Path) -> list[Operation]:
    decoder = msgspec.json.Decoder(Operation)
    return [decoder.decode(line) for line in path.read_bytes().splitlines()]


def write_history(path: Path, operations: Iterable[Operation]) -> None:
    path.write_bytes(b"".join(msgspec.json.encode(operation) + b"\n" for operation in operations))
