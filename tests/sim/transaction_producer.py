"""A transactional producer of the simulation: it produces, commits and aborts, retries what is not answered,
crashes and starts again, and does not know when it is a zombie.
"""

from collections.abc import Callable
from typing import Any

from mainstem.coordinator.transaction.coordinator import NEEDS_PRODUCER_ID
from mainstem.protocol.apis.k22_init_producer_id import InitProducerIdRequest
from mainstem.protocol.apis.k26_end_txn import EndTxnRequest
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import TopicPartition
from tests.sim.transaction_log import Guard
from tests.sim.transaction_world import TIMEOUT_MS, World

_PATIENCE_TURNS = 4
_AGAIN = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)
FreshEvent = Callable[[Any, Any, int, int | None], None]


class Request:
    """One request on its way; the answer may be lost on its way back, or come too late to matter."""

    def __init__(self, producer: "SimulatedProducer", then: Callable[[Any], None], event: FreshEvent) -> None:
        self._world = producer.world
        self._event = event
        self._then = then
        self._fresh: int | None = None
        self.sent_turn = self._world.turn
        self.answer: Any = None

    def submit(self) -> None:
        self._world.send(self, lambda m, token, now: self._event(m, token, now, self._fresh))

    def reply(self, response: Any) -> None:
        assert self.answer is None, "answered twice"
        if response is NEEDS_PRODUCER_ID:
            self._fresh = self._world.new_producer_id()
            self._world.deliver(1, self.submit)
            return
        # What the broker does with the answer comes first, and is not lost.
        self._then(response)
        if not self._world.happens(0.05):
            self.answer = response

    def fail(self, error: ErrorCode) -> None:
        self.answer = error


class SimulatedProducer:
    """One process. It starts again under another name when it crashed or was fenced."""

    def __init__(self, world: World, name: str, transactional_id: str, is_new_protocol: bool) -> None:
        self.world = world
        self._name = name
        self._transactional_id = transactional_id
        self._is_new = is_new_protocol
        self._starts = 0
        self._number = 0
        self._pause_until = 0
        # Some are never heard of again once the world is calm.
        self._vanishes = world.random.random() < 0.3
        self._start()

    @property
    def _owner(self) -> str:
        return f"{self._name}.{self._starts}"

    def _start(self) -> None:
        self._starts += 1
        self._phase = "init"
        self._request: Request | None = None
        self._identity = (-1, -1)
        self._to_produce: list[TopicPartition] = []
        self._added: set[TopicPartition] = set()
        self._commit = False

    def step(self) -> None:
        """What the process does in one turn."""
        world = self.world
        if world.happens(0.01):
            self._start()
        if world.happens(0.02):
            self._pause_until = world.turn + world.random.randrange(5, 40)
        if self._vanishes if world.is_calm else world.turn < self._pause_until:
            return
        if self._request is not None:
            answer = self._request.answer
            if answer is None and world.turn - self._request.sent_turn < _PATIENCE_TURNS:
                return
            self._request = None
            if answer is not None:
                getattr(self, f"_after_{self._phase}")(answer)
        if self._request is None:
            getattr(self, f"_{self._phase}")()

    def _send(self, event: FreshEvent, then: Callable[[Any], None]) -> None:
        """Requests of the older protocol do not arrive late: it cannot tell them from the next ones."""
        self._request = Request(self, then, event)
        late = self._is_new and self.world.happens(0.15)
        self.world.deliver(self.world.random.randrange(1, 12) if late else 0, self._request.submit)

    def _error(self, answer: Any) -> ErrorCode:
        return answer if isinstance(answer, ErrorCode) else ErrorCode(answer.error_code)

    # ---- to have an identity

    def _init(self) -> None:
        if self.world.is_calm:
            return
        producer_id, epoch = self._identity if self.world.happens(0.5) else (-1, -1)
        request = InitProducerIdRequest(self._transactional_id, TIMEOUT_MS, producer_id, epoch)
        owner = self._owner

        def told(response: Any) -> None:
            if not response.error_code:
                identity = (response.producer_id, response.producer_epoch)
                self.world.rules.identified(owner, *identity)
                self.world.rules.taken_over(self._transactional_id, *identity)

        self._send(lambda m, token, now, fresh: m.init_producer_id(request, 5, fresh, token, now), told)

    def _after_init(self, answer: Any) -> None:
        error = self._error(answer)
        if not error:
            self._identity = (answer.producer_id, answer.producer_epoch)
            self._phase = "begin"
        elif error not in _AGAIN:
            self._start()

    # ---- a transaction

    def _begin(self) -> None:
        if self.world.is_calm or self.world.happens(0.3):
            return
        places = sorted(self.world.partitions)
        self._number += 1
        self._to_produce = self.world.random.sample(places, self.world.random.randint(1, 3))
        self._added = set()
        self._commit = self.world.random.random() < 0.7
        self._phase = "produce" if self._is_new else "add"

    def _after_begin(self, answer: Any) -> None:
        raise AssertionError("nothing was asked")

    def _add(self) -> None:
        (producer_id, epoch), places = self._identity, list(self._to_produce)
        self._send(
            lambda m, token, now, _: m.add_partitions(
                self._transactional_id, producer_id, epoch, places, False, 0, token, now
            ),
            lambda response: None,
        )

    def _after_add(self, answer: Any) -> None:
        error = answer if isinstance(answer, ErrorCode) else next(iter(answer.values()))
        if not error:
            self._added = set(self._to_produce)
            self._phase = "produce"
        elif error not in _AGAIN:
            self._start()

    def _produce(self) -> None:
        """To the next partition; the broker asks the coordinator, then appends."""
        if not self._to_produce:
            self._phase = "end"
            self._end()
            return
        place, (producer_id, epoch) = self._to_produce[0], self._identity
        tag = (self._name, self._number)
        guards: dict[TopicPartition, Guard | None] = {}

        def ask(machine: Any, token: Any, now_ms: int, _: int | None) -> None:
            partition = self.world.partitions.get(place)
            if partition is None:
                token.fail(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                return
            guards[place] = partition.guard(producer_id, epoch)
            if guards[place] is None:
                token.reply({place: ErrorCode.NONE})
                return
            machine.add_partitions(
                self._transactional_id,
                producer_id,
                epoch,
                [place],
                not self._is_new,
                2 if self._is_new else 0,
                token,
                now_ms,
            )

        def append(errors: Any) -> None:
            partition = self.world.partitions.get(place)
            if errors[place] or partition is None:
                return
            errors[place] = partition.append(producer_id, epoch, tag, guards[place])

        self._send(ask, append)

    def _after_produce(self, answer: Any) -> None:
        error = answer if isinstance(answer, ErrorCode) else answer[self._to_produce[0]]
        if not error:
            self._added.add(self._to_produce.pop(0))
        elif error not in _AGAIN:
            self._commit = False
            self._to_produce = []

    # ---- its end

    def _end(self) -> None:
        if not self._is_new and not self._added:
            self._phase = "begin"
            return
        if not self._added:
            self._commit = False
        commit, tag, (producer_id, epoch) = self._commit, (self._name, self._number), self._identity
        owner = self._owner
        request = EndTxnRequest(self._transactional_id, producer_id, epoch, commit)

        def told(response: Any) -> None:
            if response.error_code:
                return
            self.world.rules.ended(self._transactional_id, producer_id, epoch, tag, commit)
            if self._is_new:
                self.world.rules.identified(owner, response.producer_id, response.producer_epoch)

        version = 5 if self._is_new else 4
        self._send(lambda m, token, now, fresh: m.end_txn(request, version, token, now, fresh), told)

    def _after_end(self, answer: Any) -> None:
        error = self._error(answer)
        if not error:
            if self._is_new:
                self._identity = (answer.producer_id, answer.producer_epoch)
            self._phase = "begin"
        elif error == ErrorCode.INVALID_TXN_STATE:
            self._phase = "init"
        elif error not in _AGAIN:
            self._start()
