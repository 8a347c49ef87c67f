"""What happens to transactions and transactional ids of which nothing is heard any more.

A transaction that is ongoing for longer than its producer allowed is aborted, with a new epoch: its producer
is fenced. A transactional id that was not used for long is forgotten. Both are looked for now and then, as
often as two settings say; what is found is an event of its own for each.
"""

import logging
from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from mainstem.coordinator.transaction.completion import Completion
from mainstem.coordinator.transaction.metadata import EPOCH_BUMP_VERSION, NO_PRODUCER_ID, State
from mainstem.coordinator.transaction.state import CoordinatorState

logger = logging.getLogger(__name__)

# Of a producer whose transactions are part of a larger one, which ends them (KIP-939).
_NO_TIMEOUT_MS: Final = 2**31 - 1


class ProducerIdDue(Struct, frozen=True, gc=False):
    """A transaction timed out, and the epochs of its producer id are used up: get a fresh producer id, and
    give it to the machine by `abort_timed_out`. It is asked for again until the transaction has ended.
    """

    transactional_id: str


class TimeLimits:
    """Looks for what has timed out."""

    def __init__(self, state: CoordinatorState, completion: Completion) -> None:
        self._state = state
        self._completion = completion

    def loaded(self, now_ms: int) -> None:
        """The clock of another coordinator may have been ahead: a transaction that it saw begin has begun by
        now, or it would hang until then if its producer is gone.
        """
        state = self._state
        for transactional_id in list(state.open):
            metadata = state.transactions[transactional_id]
            if metadata.started_ms > now_ms:
                state.put(transactional_id, replace(metadata, started_ms=now_ms))
        self.watch(now_ms)

    def watch(self, now_ms: int) -> None:
        """Look now and then, as long as there is a transactional id."""
        if self._state.transactions and "timeouts" not in self._state.timers:
            self._look_for_timeouts_later(now_ms)
        if self._state.transactions and "unused" not in self._state.timers:
            self._look_for_unused_later(now_ms)

    # ---- transactions

    def _look_for_timeouts_later(self, now_ms: int) -> None:
        interval_ms = self._state.config.get("transaction.abort.timed.out.transaction.cleanup.interval.ms")
        self._state.timers.schedule("timeouts", now_ms + interval_ms, self._look_for_timeouts)

    def _look_for_timeouts(self, now_ms: int) -> None:
        for transactional_id in self._state.open:
            if self._has_timed_out(transactional_id, now_ms):
                abort = partial(self._abort, transactional_id)
                self._state.timers.schedule(("abort", transactional_id), now_ms, abort)
        self.watch(now_ms)

    def _has_timed_out(self, transactional_id: str, now_ms: int) -> bool:
        metadata = self._state.transactions.get(transactional_id)
        return (
            metadata is not None
            and metadata.state is State.ONGOING
            and metadata.timeout_ms != _NO_TIMEOUT_MS
            and metadata.started_ms + metadata.timeout_ms < now_ms
        )

    def _abort(self, transactional_id: str, now_ms: int) -> None:
        self.abort_timed_out(transactional_id, None, now_ms)

    def abort_timed_out(self, transactional_id: str, fresh_producer_id: int | None, now_ms: int) -> None:
        """With a fresh producer id it is the answer to `ProducerIdDue`."""
        if not self._has_timed_out(transactional_id, now_ms):
            return
        state = self._state
        metadata = state.transactions[transactional_id]
        next_producer_id = NO_PRODUCER_ID
        if metadata.is_exhausted:
            if fresh_producer_id is None:
                state.effects.reply(state.markers, ProducerIdDue(transactional_id))
                return
            next_producer_id = fresh_producer_id
        logger.info("the transaction of %s timed out and is aborted", transactional_id)
        prepared = metadata.prepared(False, EPOCH_BUMP_VERSION, next_producer_id, now_ms)
        self._completion.prepare(transactional_id, prepared, now_ms)

    # ---- transactional ids

    def _look_for_unused_later(self, now_ms: int) -> None:
        interval_ms = self._state.config.get("transaction.remove.expired.transaction.cleanup.interval.ms")
        self._state.timers.schedule("unused", now_ms + interval_ms, self._look_for_unused)

    def _look_for_unused(self, now_ms: int) -> None:
        for transactional_id in self._state.transactions:
            if self._is_unused(transactional_id, now_ms):
                forget = partial(self._forget, transactional_id)
                self._state.timers.schedule(("forget", transactional_id), now_ms, forget)
        self.watch(now_ms)

    def _is_unused(self, transactional_id: str, now_ms: int) -> bool:
        metadata = self._state.transactions.get(transactional_id)
        expiration_ms = self._state.config.get("transactional.id.expiration.ms")
        return metadata is not None and metadata.is_at_rest and metadata.updated_ms <= now_ms - expiration_ms

    def _forget(self, transactional_id: str, now_ms: int) -> None:
        if self._is_unused(transactional_id, now_ms):
            self._state.write(transactional_id, None)
