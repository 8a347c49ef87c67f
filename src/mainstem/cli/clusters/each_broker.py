"""Asking all brokers of a cluster at once, so that one that hangs costs a moment and not the whole answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

from mainstem.wire import ClientOptions, Connection, ConnectionLost

Answer = TypeVar("Answer")

# For each step: to connect, to be told what the broker serves, and each answer.
_PATIENCE_MS = 3_000
_THREADS_MAX = 32


def hasty(options: ClientOptions, patience_ms: int = _PATIENCE_MS) -> ClientOptions:
    """The same with less patience, unless the person has even less."""
    return replace(
        options,
        connect_timeout_ms=min(patience_ms, options.connect_timeout_ms),
        request_timeout_ms=min(patience_ms, options.request_timeout_ms),
        api_timeout_ms=min(patience_ms, options.api_timeout_ms),
    )


def ask_each(
    options: ClientOptions, addresses: Mapping[int, tuple[str, int]], ask: Callable[[int, Connection], Answer]
) -> dict[int, Answer]:
    """What `ask` gives for each of these brokers, once; those that do not answer are left out."""
    patience = hasty(options)

    def one(node_id: int) -> Answer | None:
        try:
            connection = Connection(*addresses[node_id], patience)
            try:
                return ask(node_id, connection)
            finally:
                connection.close()
        except ConnectionLost:
            return None

    if not addresses:
        return {}
    with ThreadPoolExecutor(min(_THREADS_MAX, len(addresses))) as threads:
        answers = dict(zip(addresses, threads.map(one, addresses), strict=True))
    return {node_id: answer for node_id, answer in answers.items() if answer is not None}
