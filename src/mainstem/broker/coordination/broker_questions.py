"""What coordinators ask of other brokers, a request at a time for each broker: while one is under way,
whatever else is asked of the same broker waits, and goes into the next one together.

Nobody waits for a broker that is no longer the one to be asked: when the metadata says so, what was asked of
it is given back at once, although the request may still be under way.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mainstem.protocol.errors import KafkaError

if TYPE_CHECKING:
    from mainstem.broker.shared_server import SharedServer

logger = logging.getLogger(__name__)


class Question:
    """One thing that is asked. Answers go by `subject`; those about the same one share a request only if
    their `meaning` is the same as well.
    """

    __slots__ = ("is_settled", "meaning", "subject")

    def __init__(self, subject: Hashable, meaning: Hashable) -> None:
        self.subject = subject
        self.meaning = meaning
        self.is_settled = False


Q = TypeVar("Q", bound=Question)


class BrokerQuestions(ABC, Generic[Q]):
    """Questions of one kind, to all other brokers."""

    def __init__(self, server: "SharedServer") -> None:
        self._server = server
        self._queues: dict[int, _Queue[Q]] = {}
        self._closed = False

    def ask(self, broker_id: int, question: Q) -> None:
        """With the next request to this broker. It is settled exactly once, and never before this returns."""
        queue = self._queues.get(broker_id)
        if queue is None:
            queue = self._queues[broker_id] = _Queue(broker_id)
        queue.waiting.append(question)
        self._send_soon(queue)

    def metadata_changed(self) -> None:
        """Give back what was asked of brokers that it is not for any more."""
        for queue in list(self._queues.values()):
            self._give_back_astray(queue)

    def close(self) -> None:
        """Nobody is told anything any more."""
        self._closed = True
        self._queues.clear()

    # ---- what the kinds differ in

    @abstractmethod
    def _is_for(self, broker_id: int, question: Q) -> bool:
        """Whether it is still to be asked, and of this broker."""

    @abstractmethod
    def _request(self, questions: list[Q]) -> Any:
        """One request for all of them."""

    @abstractmethod
    def _answer(self, questions: list[Q], response: Any) -> None:
        """Settle them by what the broker has said."""

    @abstractmethod
    def _give_back(self, questions: list[Q]) -> None:
        """Settle them without an answer: they may have been understood, or not."""

    # ---- how

    def _send_soon(self, queue: "_Queue[Q]") -> None:
        """With everything else that this turn of the loop brings."""
        if queue.sending is None and not queue.under_way:
            queue.sending = self._server.loop.call_soon(self._send, queue)

    def _send(self, queue: "_Queue[Q]") -> None:
        queue.sending = None
        if self._closed:
            return
        self._give_back_astray(queue)
        questions = queue.take()
        if not questions:
            return
        try:
            peer = self._server.peer(queue.broker_id)
        except KafkaError as error:  # the metadata does not say where it is
            logger.warning("broker %d cannot be asked: %s", queue.broker_id, error.message)
            self._settle(questions, self._give_back)
            return
        queue.under_way = questions
        timeout_s = self._server.config.get("request.timeout.ms") / 1000
        peer.request(self._request(questions), partial(self._answered, queue), timeout_s=timeout_s)

    def _answered(self, queue: "_Queue[Q]", outcome: Any) -> None:
        questions, queue.under_way = queue.under_way, []
        if self._closed:
            return
        questions = [question for question in questions if not question.is_settled]
        if isinstance(outcome, Exception):
            logger.warning("broker %d was asked in vain: %s", queue.broker_id, outcome)
            self._settle(questions, self._give_back)
        else:
            self._settle(questions, lambda settled: self._answer(settled, outcome))
        if queue.waiting:
            self._send_soon(queue)

    def _give_back_astray(self, queue: "_Queue[Q]") -> None:
        astray = [
            question
            for question in (*queue.under_way, *queue.waiting)
            if not question.is_settled and not self._is_for(queue.broker_id, question)
        ]
        self._settle(astray, self._give_back)

    def _settle(self, questions: list[Q], settle: Callable[[list[Q]], None]) -> None:
        for question in questions:
            question.is_settled = True
        if questions:
            settle(questions)


class _Queue(Generic[Q]):
    """What one broker is asked."""

    __slots__ = ("broker_id", "sending", "under_way", "waiting")

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.waiting: list[Q] = []
        self.under_way: list[Q] = []
        self.sending: asyncio.Handle | None = None

    def take(self) -> list[Q]:
        """What one request can hold; the rest goes on waiting."""
        meanings: dict[Hashable, Hashable] = {}
        taken: list[Q] = []
        left: list[Q] = []
        for question in self.waiting:
            if question.is_settled:
                continue
            fits = meanings.setdefault(question.subject, question.meaning) == question.meaning
            (taken if fits else left).append(question)
        self.waiting = left
        return taken
