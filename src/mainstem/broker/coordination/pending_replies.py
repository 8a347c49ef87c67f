"""Answers of a coordinator on their way: each is given when everything that it saw is committed.

They belong to one shard, and so to one leader epoch. When the shard goes they fail, before anything that they
saw can be cut off, and whatever becomes of the records later answers nobody.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from mainstem.broker.logs.partition import Partition
from mainstem.coordinator.effects import Token
from mainstem.protocol.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)

Replies = list[tuple[Token, Any]]

_ACKS_ALL = -1
# The errors of an append as a coordinator's clients know them: which of them to try again, and where. Others
# are theirs as they are, such as those of a transaction that is over.
_CLIENT_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def client_error(error: ErrorCode) -> ErrorCode:
    """How a coordinator's client is told of an error of an append, or of the verification before it."""
    return _CLIENT_ERRORS.get(error, error)


class PendingReplies:
    """Those of one shard. `lost` is called when records were appended that will never be committed here."""

    __slots__ = ("_leader_epoch", "_loop", "_lost", "_partition", "_timeout_ms", "_waits")

    def __init__(
        self,
        partition: Partition,
        loop: asyncio.AbstractEventLoop,
        timeout_ms: Callable[[], int] | None,
        lost: Callable[[ErrorCode], None],
    ) -> None:
        self._partition = partition
        self._leader_epoch = partition.leader_epoch
        self._loop = loop
        self._timeout_ms = timeout_ms
        self._lost = lost
        self._waits: dict[_Wait, None] = {}

    def deliver(self, replies: Replies, end_offset: int) -> None:
        """Give these answers when everything before `end_offset` is committed."""
        partition = self._partition
        if partition.high_watermark >= end_offset:
            give(replies)
        elif replies:
            wait = _Wait(self, replies)
            self._waits[wait] = None
            if self._timeout_ms is not None:
                wait.timer = self._loop.call_later(self._timeout_ms() / 1000, self._time_out, wait)
            try:
                partition.add_ack_waiter(end_offset - 1, _ACKS_ALL, wait)
            except KafkaError as error:  # another broker leads it now
                self.settle(wait, error.code)

    def settle(self, wait: "_Wait", error: ErrorCode) -> None:
        """The records of these answers are committed, or never will be."""
        if wait not in self._waits:
            return  # they failed with others that were lost
        if not error and self._partition.leader_epoch != self._leader_epoch:
            error = ErrorCode.FENCED_LEADER_EPOCH
        del self._waits[wait]
        wait.forget_timer()
        if error:
            fail(wait.replies, _CLIENT_ERRORS.get(error, ErrorCode.NOT_COORDINATOR))
            self._lost(error)
        else:
            give(wait.replies)

    def _time_out(self, wait: "_Wait") -> None:
        """They may be committed yet, and then later answers tell of it."""
        del self._waits[wait]
        self._partition.remove_ack_waiter(wait)
        fail(wait.replies, client_error(ErrorCode.REQUEST_TIMED_OUT))

    def fail_all(self, error: ErrorCode) -> None:
        """The shard goes."""
        waits, self._waits = self._waits, {}
        for wait in waits:
            wait.forget_timer()
            self._partition.remove_ack_waiter(wait)
            fail(wait.replies, error)


class _Wait:
    """Answers that wait for the same offset."""

    __slots__ = ("_pending", "replies", "timer")

    def __init__(self, pending: PendingReplies, replies: Replies) -> None:
        self._pending = pending
        self.replies = replies
        self.timer: asyncio.TimerHandle | None = None

    def acknowledged(self, partition: Partition, error: ErrorCode) -> None:
        self._pending.settle(self, error)

    def forget_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()


def give(replies: Replies) -> None:
    """One answer that fails must not keep the others from theirs."""
    for token, response in replies:
        try:
            token.reply(response)
        except Exception:
            logger.exception("an answer could not be given")


def fail(replies: Replies, error: ErrorCode) -> None:
    for token, _ in replies:
        try:
            token.fail(error)
        except Exception:
            logger.exception("an answer could not be given")
