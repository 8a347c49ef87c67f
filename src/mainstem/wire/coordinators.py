"""Requests to the coordinator of a group or of a transactional id, again while it moves, loads or is busy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeVar

from mainstem.protocol.apis.k10_find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.wire.attempts import Attempts
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

    def node_of(self, kind: Kind, key: str) -> int:
        """The broker that coordinates this group or transactional id."""
        return self.at(kind, key, lambda _: self._known[kind, key])

    def at(self, kind: Kind, key: str, ask: Callable[[Connection], Answer]) -> Answer:
        """Call `ask` with the coordinator's connection until what it raises is no passing refusal."""
        attempts = Attempts(self._brokers.options)
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

    def _connection(self, kind: Kind, key: str) -> Connection:
        node_id = self._known.get((kind, key))
        if node_id is None:
            found = self._find(kind, key)
            check(found.error_code, f"find the coordinator of {kind} {key}", found.error_message)
            node_id = found.node_id
            self._brokers.learn_address(node_id, (found.host, found.port))
            self._known[kind, key] = node_id
        return self._brokers.connection(node_id)

    def _find(self, kind: Kind, key: str) -> Coordinator:
        connection = self._brokers.any_connection()
        version = connection.version_of(FindCoordinatorRequest.SCHEMA.api_key)
        request = FindCoordinatorRequest(key=key, key_type=_KEY_TYPES[kind], coordinator_keys=[key])
        answer: FindCoordinatorResponse = connection.call(request)
        if version is not None and version >= _VERSION_WITH_KEYS:
            for found in answer.coordinators:
                if found.key == key:
                    return found
            raise ConnectionLost(connection.address, "it left the coordinator out of its answer")
        return Coordinator(
            key, answer.node_id, answer.host, answer.port, answer.error_code, answer.error_message
        )
