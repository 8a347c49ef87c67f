"""How long to go on trying, and the pauses in between."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from mainstem.protocol.errors import ErrorCode
from mainstem.wire.backoff import Backoff
from mainstem.wire.errors import KafkaRefusal, WireError
from mainstem.wire.options import ClientOptions

# How long a topic may be unknown: a broker learns of a new one a moment after its creation was answered, but
# nobody wants to wait a minute for one that does not exist.
UNKNOWN_TOPIC_GRACE_S = 5.0
# The former transaction is nearly over then; Java's producer is as impatient.
_CONCURRENT_TRANSACTIONS_PAUSE_S = 0.02
_UNKNOWN_TOPIC_CODES = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


def is_unknown_topic(problem: WireError) -> bool:
    return isinstance(problem, KafkaRefusal) and problem.code in _UNKNOWN_TOPIC_CODES


def retry_backoff(options: ClientOptions) -> Backoff:
    """The pauses between attempts of one thing."""
    return Backoff(options.retry_backoff_ms, options.retry_backoff_max_ms, random.random)


# Told before each pause what is waited for, and for how many seconds it has been.
OnWaiting = Callable[[WireError, float], None]


class Attempts:
    """The attempts of one call."""

    def __init__(self, options: ClientOptions, on_waiting: OnWaiting | None = None) -> None:
        self._on_waiting = on_waiting
        self._backoff = retry_backoff(options)
        self._started = time.monotonic()
        self._deadline = self._started + options.api_timeout_ms / 1000

    def pause(self, problem: WireError) -> None:
        """Wait before the next attempt; raises the problem when there is no time for one."""
        if isinstance(problem, KafkaRefusal) and problem.code == ErrorCode.CONCURRENT_TRANSACTIONS:
            pause_s = _CONCURRENT_TRANSACTIONS_PAUSE_S
        else:
            pause_s = self._backoff.next_s()
        deadline = self._deadline
        if is_unknown_topic(problem):
            deadline = min(deadline, self._started + UNKNOWN_TOPIC_GRACE_S)
        now = time.monotonic()
        if now + pause_s > deadline:
            raise problem
        if self._on_waiting is not None:
            self._on_waiting(problem, now - self._started)
        time.sleep(pause_s)
