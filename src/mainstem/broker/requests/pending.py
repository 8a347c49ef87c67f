"""Answers of coordinators on their way to clients: at once when they are there at once, later otherwise."""

import logging
from collections.abc import Callable
from typing import Any

from mainstem.broker.network.connection import PARKED
from mainstem.broker.requests.context import RequestContext
from mainstem.logs import about
from mainstem.protocol.errors import ErrorCode

logger = logging.getLogger(__name__)

Fail = Callable[[ErrorCode], Any]


class Pending:
    """The token of one request. `fail` makes the response with which this API says an error."""

    __slots__ = ("_ctx", "_fail", "_parked", "_response")

    def __init__(self, ctx: RequestContext, fail: Fail) -> None:
        self._ctx = ctx
        self._fail = fail
        self._parked = False
        self._response: Any = None

    def reply(self, response: Any) -> None:
        if not self._parked:
            self._response = response
            return
        try:
            self._ctx.reply(response)
        except Exception:
            # One answer that cannot be sent must not keep the others of the same turn from theirs.
            host = self._ctx.connection.client_host
            logger.exception("an answer to %s failed", host, extra=about(client=host))
            self._ctx.connection.close()

    def fail(self, error: ErrorCode) -> None:
        self.reply(self._fail(error))

    def outcome(self) -> Any:
        """What the handler returns: the response, or PARKED when it comes later."""
        if self._response is not None:
            return self._response
        self._parked = True
        return PARKED


class Gather:
    """One request that is answered from several parts, such as several groups."""

    __slots__ = ("_answers", "_assemble", "_missing", "_pending")

    def __init__(self, pending: Pending, count: int, assemble: Callable[[list[Any]], Any]) -> None:
        self._pending = pending
        self._answers: list[Any] = [None] * count
        self._missing = count
        self._assemble = assemble
        if not count:
            pending.reply(assemble([]))

    def part(self, place: int, fail: Fail) -> "Part":
        return Part(self, place, fail)

    def set(self, place: int, answer: Any) -> None:
        self._answers[place] = answer
        self._missing -= 1
        if not self._missing:
            self._pending.reply(self._assemble(self._answers))


class Part:
    """The token of one part."""

    __slots__ = ("_fail", "_gather", "_place")

    def __init__(self, gather: Gather, place: int, fail: Fail) -> None:
        self._gather = gather
        self._place = place
        self._fail = fail

    def reply(self, answer: Any) -> None:
        self._gather.set(self._place, answer)

    def fail(self, error: ErrorCode) -> None:
        self._gather.set(self._place, self._fail(error))
