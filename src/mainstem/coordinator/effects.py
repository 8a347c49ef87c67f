"""What an event led to: records to write, replies to send, and how to take it all back if the write fails.

A machine applies a change to its state at once and says here what must follow. The shell writes the records
of many events with one append; only when they are committed do the replies leave, those too that wrote
nothing but saw what is not committed yet. When the append fails, everything is undone in reverse order.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from mainstem.protocol.errors import ErrorCode

CoordinatorRecord = tuple[bytes, bytes | None]


class Token(Protocol):
    """Whoever waits for an answer. A machine keeps it as long as it likes, and answers it once."""

    def reply(self, response: Any) -> None: ...

    def fail(self, error: ErrorCode) -> None:
        """The answer could not be made durable, or this is no longer the coordinator."""


class Transaction(NamedTuple):
    """The one that the records of an event belong to. `guard` is a matter of the shell's: the log's word that
    the transaction was seen to be open.
    """

    producer_id: int
    producer_epoch: int
    guard: Any = None


class Effects:
    """Collected by a machine while it handles one event; taken away by the shell after it."""

    __slots__ = ("records", "replies", "transaction", "undo")

    def __init__(self) -> None:
        self.records: list[CoordinatorRecord] = []
        self.transaction: Transaction | None = None
        self.replies: list[tuple[Token, Any]] = []
        self.undo: list[Callable[[], object]] = []

    def write(self, key: bytes, value: bytes | None) -> None:
        """Append this record to the log; None as the value deletes the key."""
        self.records.append((key, value))

    def write_transactional(
        self, producer_id: int, producer_epoch: int, records: list[CoordinatorRecord], guard: Any = None
    ) -> None:
        """Append these records as a part of a transaction. They are all that this event writes, and they are
        in the log when it is over: what fails them fails no other event.
        """
        assert not self.records, "an event writes in a transaction or outside of it"
        if records:
            self.records.extend(records)
            self.transaction = Transaction(producer_id, producer_epoch, guard)

    def on_failure(self, undo: Callable[[], object]) -> None:
        """Call this if the records of this event cannot be written. It may reply, but write nothing."""
        self.undo.append(undo)

    def reply(self, token: Token, response: Any) -> None:
        """Answer, as soon as everything decided up to now is committed."""
        self.replies.append((token, response))
