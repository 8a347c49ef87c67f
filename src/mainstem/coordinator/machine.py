"""What the shell asks of a coordinator's state machine; it runs one per partition of an internal topic.

State is only what `replay` made of the records, plus what a restart may forget: who waits, and since when.
The shell loads a machine by replaying the partition's log, then hands it events one at a time.
"""

from typing import Protocol, runtime_checkable

from mainstem.config import BrokerConfig
from mainstem.coordinator.effects import Effects
from mainstem.coordinator.timers import Timers
from mainstem.protocol.errors import ErrorCode


class Machine(Protocol):
    """One partition's worth of groups or transactions."""

    effects: Effects
    timers: Timers

    def replay(self, key: bytes, value: bytes | None) -> None:
        """Apply a record of the log. What it does not understand it passes over, with a line in the log."""

    def loaded(self, now_ms: int) -> None:
        """Everything is replayed: start the timers that follow from it."""

    def unload(self, error: ErrorCode) -> None:
        """This is no longer the coordinator: fail whoever waits inside (through `Token.fail`)."""

    def topics_changed(self, now_ms: int) -> None:
        """The cluster's topics are other ones now."""


class Configured(Protocol):
    """What a machine knows of the broker's settings."""

    config: BrokerConfig


class ConfiguredMachine(Machine, Protocol):
    """A machine that goes by the broker's settings, which may change at any time."""

    @property
    def state(self) -> Configured: ...


@runtime_checkable
class TransactionalMachine(Protocol):
    """What a machine has besides when some of its records are written in transactions of clients."""

    def replay_transactional(self, producer_id: int, key: bytes, value: bytes | None) -> None:
        """Apply a record that counts only if the transaction of this producer is committed."""

    def transaction_ended(self, producer_id: int, commit: bool) -> None:
        """The marker of the producer's transaction is in the log, and nothing takes it back."""
