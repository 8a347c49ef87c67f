"""How long to go on trying, and how long to pause in between: Kafka's backoff, doubled each time, with
jitter.
"""

from __future__ import annotations

import random
import time

from mainstem.protocol.errors import ErrorCode
from mainstem.wire.errors import KafkaRefusal, WireError
from mainstem.wire.options import ClientOptions

_JITTER = 0.2
# How long a topic may be unknown: a broker learns of a new one a moment after its creation was answered, but
# nobody wants to wait a minute for one that does not exist.
UNKNOWN_TOPIC_GRACE_S = 5.0
# The former transaction is nearly over then; Java's producer is as impatient.
_CONCURRENT_TRANSACTIONS_PAUSE_S = 0.02
_UNKNOWN_TOPIC_CODES = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


def is_unknown_topic(problem: WireError) -> bool:
    return isinstance(problem, KafkaRefusal) and problem.code in _UNKNOWN_TOPIC_CODES


class Backoff:
    """Pauses that double up to a limit, each off by a fifth at most so that clients do not march in step."""

    def __init__(self, options: ClientOptions) -> None:
        self._options = options
        self._failures = 0

    def next_s(self) -> float:
        pause_ms = min(
            self._options.retry_backoff_ms * 2 ** min(self._failures, 16), self._options.retry_backoff_max_ms
        )
        self._failures += 1
        return float(pause_ms / 1000 * random.uniform(1 - _JITTER, 1 + _JITTER))

    def reset(self) -> None:
        self._failures = 0


class Attempts:
    """The attempts of one call."""

    def __init__(self, options: ClientOptions, timeout_ms: int | None = None) -> None:
        self._backoff = Backoff(options)
        timeout_ms = options.api_timeout_ms if timeout_ms is None else timeout_ms
        self._started = time.monotonic()
        self._deadline = self._started + timeout_ms / 1000

    def pause(self, problem: WireError) -> None:
        """Wait before the next attempt; raises the problem when there is no time for one."""
        if isinstance(problem, KafkaRefusal) and problem.code == ErrorCode.CONCURRENT_TRANSACTIONS:
            pause_s = _CONCURRENT_TRANSACTIONS_PAUSE_S
        else:
            pause_s = self._backoff.next_s()
        deadline = self._deadline
        if is_unknown_topic(problem):
            deadline = min(deadline, self._started + UNKNOWN_TOPIC_GRACE_S)
        if time.monotonic() + pause_s > deadline:
            raise problem
        time.sleep(pause_s)
