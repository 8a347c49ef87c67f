"""Requests to the coordinator of a group or of a transactional id, again while it moves, loads or is busy."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Literal, TypeVar

from mainstem.protocol.apis.k10_find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.wire.brokers import Brokers
from mainstem.wire.connection import Connection
from mainstem.wire.errors import ConnectionLost, KafkaRefusal, check

Kind = Literal["group", "transaction"]
Answer = TypeVar("Answer")

_KEY_TYPES: dict[Kind, int] = {"group": 0, "transaction": 1}
# The first version that asks about several keys.
_VERSION_WITH_KEYS = 4
_MOVED_CODES = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
_PASSING_CODES = _MOVED_CODES | {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.REQUEST_TIMED_OUT,
}


class Coordinators:
    """Remembers who coordinates what."""

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers
        self._known: dict[tuple[Kind, str], int] = {}

    def at(self, kind: Kind, key: str, ask: Callable[[Connection], Answer]) -> Answer:
        """Call `ask` with the coordinator's connection until what it raises is no passing refusal."""
        attempts = self._brokers.attempts()
        while True:
            try:
                return ask(self._connection(kind, key))
            except ConnectionLost as error:
                self._known.pop((kind, key), None)
                attempts.pause(error)
            except KafkaRefusal as error:
                if error.code not in _PASSING_CODES:
                    raise
                if error.code in _MOVED_CODES:
                    self._known.pop((kind, key), None)
                attempts.pause(error)

    def at_each(
        self, kind: Kind, keys: Iterable[str], ask: Callable[[int, Connection, list[str]], list[Answer]]
    ) -> list[Answer]:
        """Call `ask` for each broker that coordinates some of these keys, with its id and these keys."""
        attempts = self._brokers.attempts()
        waiting = list(dict.fromkeys(keys))
        found: list[Answer] = []
        while waiting:
            try:
                for node_id, some in self._shared(kind, waiting).items():
                    found += ask(node_id, self._brokers.connection(node_id), some)
                    waiting = [key for key in waiting if key not in some]
            except ConnectionLost as error:
                self._forget(kind, waiting)
                attempts.pause(error)
            except KafkaRefusal as error:
                if error.code not in _PASSING_CODES:
                    raise
                self._forget(kind, waiting)
                attempts.pause(error)
        return found

    def _shared(self, kind: Kind, keys: list[str]) -> dict[int, list[str]]:
        """The keys by their coordinator."""
        shared: dict[int, list[str]] = defaultdict(list)
        self._find(kind, [key for key in keys if (kind, key) not in self._known])
        for key in keys:
            shared[self._known[kind, key]].append(key)
        return shared

    def _forget(self, kind: Kind, keys: Iterable[str]) -> None:
        for key in keys:
            self._known.pop((kind, key), None)

    def _connection(self, kind: Kind, key: str) -> Connection:
        if (kind, key) not in self._known:
            self._find(kind, [key])
        return self._brokers.connection(self._known[kind, key])

    def _find(self, kind: Kind, keys: list[str]) -> None:
        """Learn who coordinates these, in one request where the broker takes several keys."""
        if not keys:
            return
        connection = self._brokers.any_connection()
        version = connection.version_of(FindCoordinatorRequest.SCHEMA.api_key)
        if version is not None and version >= _VERSION_WITH_KEYS:
            request = FindCoordinatorRequest(key_type=_KEY_TYPES[kind], coordinator_keys=keys)
            answer: FindCoordinatorResponse = connection.call(request)
            found = {coordinator.key: coordinator for coordinator in answer.coordinators}
        else:
            found = {key: _find_one(connection, kind, key) for key in keys}
        for key in keys:
            if key not in found:
                raise ConnectionLost(connection.address, "it left the coordinator out of its answer")
            coordinator = found[key]
            check(coordinator.error_code, f"find the coordinator of {kind} {key}", coordinator.error_message)
            self._brokers.learn_address(coordinator.node_id, (coordinator.host, coordinator.port))
            self._known[kind, key] = coordinator.node_id


def _find_one(connection: Connection, kind: Kind, key: str) -> Coordinator:
    answer: FindCoordinatorResponse = connection.call(
        FindCoordinatorRequest(key=key, key_type=_KEY_TYPES[kind])
    )
    return Coordinator(key, answer.node_id, answer.host, answer.port, answer.error_code, answer.error_message)
