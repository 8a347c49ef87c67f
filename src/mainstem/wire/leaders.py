"""Asking the leaders of partitions, again until each partition has its answer: the one retry loop for that.

What a request is about is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import TopicPartition
from mainstem.wire.brokers import STALE_LEADER_CODES, Brokers
from mainstem.wire.connection import Connection
from mainstem.wire.errors import ConnectionLost, KafkaRefusal, WireError, error_code, name_of

Value = TypeVar("Value")
Answer = TypeVar("Answer")
Part = dict[TopicPartition, Value]

_PASSING = STALE_LEADER_CODES | {ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NETWORK_EXCEPTION}


def is_passing(code: int) -> bool:
    """Whether the leader has to be looked up and asked again."""
    return error_code(code) in _PASSING


def at_leaders(
    brokers: Brokers,
    wanted: Mapping[TopicPartition, Value],
    request_of: Callable[[Connection, Part[Value]], tuple[Any, int | None]],
    results_of: Callable[[Any, Part[Value]], Mapping[TopicPartition, tuple[int, Answer]]],
    what: str,
    timeout_s: float | None = None,
) -> dict[TopicPartition, Answer]:
    """Ask about each partition at its leader.

    `request_of` makes a broker's request and names its newest version; `results_of` reads its answer as a
    code and a value for each partition. A passing code is asked again; every other value is returned,
    whatever its code.
    """
    missing = dict(wanted)
    found: dict[TopicPartition, Answer] = {}
    attempts = brokers.attempts()
    problem = learn(brokers, {name for name, _ in missing if name not in brokers.topics})
    while True:
        shared, leaderless = brokers.by_leader(missing)
        problem = problem or next(iter(leaderless.values()), None)
        answers = brokers.ask(shared, request_of, timeout_s)
        for node_id, answer in answers.items():
            if isinstance(answer, ConnectionLost):
                problem = answer
                continue
            if isinstance(answer, WireError):
                raise answer
            for partition, (code, value) in results_of(answer, shared[node_id]).items():
                if is_passing(code):
                    problem = KafkaRefusal(code, f"{what} {name_of(partition)}")
                elif partition in missing:
                    del missing[partition]
                    found[partition] = value
        if not missing:
            return found
        attempts.pause(problem or WireError(f"{what}: the broker left partitions out of its answer"))
        problem = learn(brokers, {name for name, _ in missing})


def learn(brokers: Brokers, topics: set[str]) -> WireError | None:
    """Refresh the metadata of these topics; why it could not be, if so."""
    if not topics:
        return None
    try:
        brokers.refresh(topics)
    except (ConnectionLost, KafkaRefusal) as error:
        return error
    return None
