"""What is known of one transactional id, and the ways from one state to the next. Nothing here decides
whether a way may be gone: that is asked in `initialising.py` and `ending.py`.

A transaction is Empty, Ongoing once it has a partition, then PrepareCommit or PrepareAbort: from that record
on its outcome is settled. When every partition has its marker it is CompleteCommit or CompleteAbort.
"""

from enum import IntEnum
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from mainstem.protocol.resources import TopicPartition

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
# The largest epoch there is. None is given to a client above the one before it, so that whoever has that one
# can still be fenced.
EPOCH_MAX: Final = 32_767
# From this version of the protocol on (KIP-890) every end of a transaction brings the producer a new epoch.
EPOCH_BUMP_VERSION: Final = 2
_NO_PARTITIONS: Final[frozenset[TopicPartition]] = frozenset()


class State(IntEnum):
    """As the status byte of the record has it."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7


# As Kafka's tools spell them, such as PrepareCommit.
STATE_NAMES: Final = {state: state.name.title().replace("_", "") for state in State}
_AT_REST: Final = (State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT)
_PREVIOUS_STATES: Final = {
    State.EMPTY: _AT_REST,
    State.ONGOING: (State.ONGOING, *_AT_REST),
    State.PREPARE_COMMIT: (State.ONGOING,),
    State.PREPARE_ABORT: (State.ONGOING, *_AT_REST),
    State.COMPLETE_COMMIT: (State.PREPARE_COMMIT,),
    State.COMPLETE_ABORT: (State.PREPARE_ABORT,),
}


def is_exhausted(epoch: int) -> bool:
    """Whether a producer at this epoch needs another producer id for its next one."""
    return epoch >= EPOCH_MAX - 1


class TransactionMetadata(Struct, frozen=True, gc=False):
    """Never changes: every change makes another one, so that the one before can be put back."""

    producer_id: int
    producer_epoch: int
    timeout_ms: int
    updated_ms: int
    state: State = State.EMPTY
    # While it is ending: those that still lack their marker.
    partitions: frozenset[TopicPartition] = _NO_PARTITIONS
    started_ms: int = -1
    # The one before the last change, mostly the same.
    previous_producer_id: int = NO_PRODUCER_ID
    # Given to the producer when the epochs of its producer id are used up; in force when the end is complete.
    next_producer_id: int = NO_PRODUCER_ID
    # The epoch before the current one, if the producer that has the current one is the one that had it.
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    client_version: int = 0

    @property
    def is_ending(self) -> bool:
        """Its outcome is settled, but not every partition has its marker."""
        return self.state is State.PREPARE_COMMIT or self.state is State.PREPARE_ABORT

    @property
    def is_open(self) -> bool:
        return self.state is State.ONGOING or self.is_ending

    @property
    def is_at_rest(self) -> bool:
        return self.state in _AT_REST

    @property
    def is_exhausted(self) -> bool:
        return is_exhausted(self.producer_epoch)

    # ---- the ways

    def initialised(
        self, producer_id: int, producer_epoch: int, last_epoch: int, timeout_ms: int, now_ms: int
    ) -> "TransactionMetadata":
        """Ready for the transactions of the producer that has this id and epoch."""
        return self._to(
            State.EMPTY,
            now_ms,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            last_producer_epoch=last_epoch,
            timeout_ms=timeout_ms,
            partitions=_NO_PARTITIONS,
            started_ms=-1,
        )

    def with_partitions(
        self, added: frozenset[TopicPartition], client_version: int, now_ms: int
    ) -> "TransactionMetadata":
        """Ongoing, with these besides those it has."""
        return self._to(
            State.ONGOING,
            now_ms,
            partitions=self.partitions | added if self.partitions else added,
            started_ms=self.started_ms if self.state is State.ONGOING else now_ms,
            client_version=client_version,
        )

    def prepared(
        self, commit: bool, client_version: int, next_producer_id: int, now_ms: int
    ) -> "TransactionMetadata":
        """Its outcome is settled. The markers carry the new epoch, where there is one: what the producer sent
        with the old one and is still on its way comes too late then.
        """
        epoch, last_epoch = self.producer_epoch, self.last_producer_epoch
        if client_version >= EPOCH_BUMP_VERSION:
            assert epoch < EPOCH_MAX or not commit, "no client has the last epoch"
            epoch, last_epoch = min(epoch + 1, EPOCH_MAX), epoch
        return self._to(
            State.PREPARE_COMMIT if commit else State.PREPARE_ABORT,
            now_ms,
            producer_epoch=epoch,
            last_producer_epoch=last_epoch,
            next_producer_id=next_producer_id,
            # One that has no partition can be aborted too, and never began.
            started_ms=self.started_ms if self.state is State.ONGOING else now_ms,
            client_version=client_version,
        )

    def lacking(self, partitions: frozenset[TopicPartition]) -> "TransactionMetadata":
        """Still ending, with markers missing only there. This is not written down."""
        assert self.is_ending
        assert partitions <= self.partitions
        return replace(self, partitions=partitions)

    def completed(self, now_ms: int) -> "TransactionMetadata":
        """Every partition has its marker."""
        producer_id, epoch = self.identity_afterwards
        return self._to(
            State.COMPLETE_COMMIT if self.state is State.PREPARE_COMMIT else State.COMPLETE_ABORT,
            now_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
            next_producer_id=NO_PRODUCER_ID,
            partitions=_NO_PARTITIONS,
        )

    @property
    def identity_afterwards(self) -> tuple[int, int]:
        """The producer id and epoch for the next transaction, once this one is complete."""
        if self.next_producer_id != NO_PRODUCER_ID and self.client_version >= EPOCH_BUMP_VERSION:
            return self.next_producer_id, 0
        return self.producer_id, self.producer_epoch

    def _to(self, state: State, now_ms: int, **changes: Any) -> "TransactionMetadata":
        assert self.state in _PREVIOUS_STATES[state], f"{self.state.name} -> {state.name}"
        return replace(self, state=state, updated_ms=now_ms, previous_producer_id=self.producer_id, **changes)
