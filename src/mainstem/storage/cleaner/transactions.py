"""What compaction knows of transactions while it goes over a log: which batches were aborted, and which
markers still have something to say.

A marker is needed as long as a batch of its transaction is there. The rules are Kafka's; in the end the
aborted transactions that still have batches are the entries of the new transaction index.
"""

import heapq
from collections.abc import Iterable

from mainstem.records.control import ControlType
from mainstem.storage.producers.transaction_index import AbortedTransaction


class TransactionTracker:
    """Goes from batch to batch, in the order of the log."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._coming = [(entry.first_offset, entry.last_offset, entry) for entry in aborted]
        heapq.heapify(self._coming)
        # By producer id, and whether a batch of it was seen.
        self._ongoing_aborted: dict[int, tuple[AbortedTransaction, bool]] = {}
        self._ongoing_committed: set[int] = set()
        # The aborted transactions of which something is left, in the order of their markers.
        self.retained: list[AbortedTransaction] = []

    def take_retained(self) -> list[AbortedTransaction]:
        """Those whose markers were passed since the last call."""
        retained, self.retained = self.retained, []
        return retained

    def saw_data(self, producer_id: int, last_offset: int) -> bool:
        """Whether a transactional batch was aborted."""
        self._advance(last_offset)
        ongoing = self._ongoing_aborted.get(producer_id)
        if ongoing is None:
            self._ongoing_committed.add(producer_id)
            return False
        self._ongoing_aborted[producer_id] = ongoing[0], True
        return True

    def saw_control(self, producer_id: int, last_offset: int, control_type: int) -> bool:
        """Whether a control batch has nothing to say any more. The type is -1 for one without a record."""
        self._advance(last_offset)
        if control_type == ControlType.ABORT:
            entry, was_seen = self._ongoing_aborted.pop(producer_id, (None, False))
            if entry is not None and was_seen:
                self.retained.append(entry)
                return False
            return True
        if control_type == ControlType.COMMIT:
            if producer_id in self._ongoing_committed:
                self._ongoing_committed.remove(producer_id)
                return False
            return True
        return control_type < 0

    def _advance(self, offset: int) -> None:
        while self._coming and self._coming[0][0] <= offset:
            entry = heapq.heappop(self._coming)[2]
            self._ongoing_aborted.setdefault(entry.producer_id, (entry, False))
