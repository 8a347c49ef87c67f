"""A partition of the simulation of transactions: what it lets in, and how the transactions in it ended."""

from mainstem.protocol.errors import ErrorCode
from tests.sim.seeds import Violation

# Who produced, and the number of its transaction.
Tag = tuple[str, int]
_EPOCH_MAX = 32_767


class Guard:
    """Given to a batch that begins a transaction here, before the coordinator is asked about it."""


class _Producer:
    def __init__(self) -> None:
        self.epoch = -1
        self.coordinator_epoch = -1
        self.open: set[Tag] = set()
        self.guard: Guard | None = None


class Partition:
    """By producer id what Kafka keeps of producers: epoch, open transaction, guard."""

    def __init__(self) -> None:
        self._producers: dict[int, _Producer] = {}
        self._outcomes: dict[Tag, bool] = {}

    def newest_epoch(self, producer_id: int) -> int:
        known = self._producers.get(producer_id)
        return -1 if known is None else known.epoch

    def guard(self, producer_id: int, epoch: int) -> Guard | None:
        """None when a transaction with this epoch is open: its batches go on without a question."""
        producer = self._producers.setdefault(producer_id, _Producer())
        if producer.open and producer.epoch == epoch:
            return None
        if producer.guard is None:
            producer.guard = Guard()
        return producer.guard

    def append(self, producer_id: int, epoch: int, tag: Tag, guard: Guard | None) -> ErrorCode:
        producer = self._producers.setdefault(producer_id, _Producer())
        if epoch < producer.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if not (producer.open and producer.epoch == epoch) and (guard is None or guard is not producer.guard):
            return ErrorCode.INVALID_TXN_STATE
        if tag in self._outcomes:
            raise Violation(f"late: {tag} goes on after its end")
        producer.epoch = epoch
        producer.open.add(tag)
        if len(producer.open) > 1:
            raise Violation(f"mixed: {producer.open} are in one transaction")
        return ErrorCode.NONE

    def append_marker(
        self, producer_id: int, epoch: int, coordinator_epoch: int, commit: bool, transaction_version: int
    ) -> bool:
        """Whether it is let in (KIP-1228: of version 2 only a newer epoch, or the same again)."""
        producer = self._producers.setdefault(producer_id, _Producer())
        if coordinator_epoch < producer.coordinator_epoch or epoch < producer.epoch:
            return False
        if transaction_version >= 2 and epoch == producer.epoch and producer.open and epoch != _EPOCH_MAX:
            return False
        for tag in producer.open:
            self._outcomes[tag] = commit
        producer.open = set()
        producer.guard = None
        producer.epoch = epoch
        producer.coordinator_epoch = coordinator_epoch
        return True

    def outcomes(self) -> dict[Tag, bool]:
        return self._outcomes

    @property
    def has_open_transactions(self) -> bool:
        return any(producer.open for producer in self._producers.values())
