"""Transcripts of transactions: what producers ask and when; the answers, markers and records that come out.

A file holds paragraphs. Each is a command, a line of dashes, and what came out:

    commit a
    ----
    markers 1: COMMIT producer=1000 epoch=1 t:0,1
    a <- NONE producer=1000 epoch=1
    + PrepareCommit producer=1000 epoch=1 t:0,1

A producer remembers the id and epoch that it was told, and sends them with its next request; `producer=` and
`epoch=` say something else. All producers have the transactional id `shop` unless `id=` says otherwise.
`written 1` says that the markers of that number are in, `written 1 t:0` that some of them are. Lines with `+`
are records, with `-` deletions. To write the outcomes anew, run the test with MAINSTEM_RECORD_TRANSCRIPTS=1,
and read the difference.
"""

from collections.abc import Callable
from itertools import count
from typing import Any

from mainstem.config import BrokerConfig
from mainstem.coordinator.transaction.completion import MarkersDue
from mainstem.coordinator.transaction.coordinator import NEEDS_PRODUCER_ID, TransactionCoordinator
from mainstem.coordinator.transaction.listing import unknown_states
from mainstem.coordinator.transaction.metadata import STATE_NAMES, TransactionMetadata
from mainstem.coordinator.transaction.records import decode_key, decode_value, encode_key, encode_value
from mainstem.coordinator.transaction.time_limits import ProducerIdDue
from mainstem.protocol.apis.k22_init_producer_id import InitProducerIdRequest
from mainstem.protocol.apis.k26_end_txn import EndTxnRequest
from mainstem.protocol.apis.k66_list_transactions import ListTransactionsRequest
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.protocol.resources import TopicPartition, by_topic
from tests.coordinator.harness import FakeTopics, Harness, Waiting
from tests.coordinator.machine_session import MachineSession

_ERROR_NAMES = {code.value: code.name for code in ErrorCode}
_STATES = {name: state for state, name in STATE_NAMES.items()}
_DEFAULT_ID = "shop"


def places(words: list[str]) -> list[TopicPartition]:
    """`t:0,1 u:0` as topics and partitions."""
    return [
        (topic, int(index))
        for topic, _, indexes in (word.partition(":") for word in words)
        for index in indexes.split(",")
    ]


def _text(partitions: dict[str, list[int]]) -> str:
    return " ".join(f"{topic}:{','.join(map(str, indexes))}" for topic, indexes in sorted(partitions.items()))


class _Told:
    """What a producer knows of itself."""

    def __init__(self, transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self.producer_id = -1
        self.epoch = -1


class TransactionSession(MachineSession):
    def __init__(self) -> None:
        self._settings: dict[str, str] = {}
        self._topics = FakeTopics(t=3, u=1)
        self._coordinator_epoch = 0
        self._producers: dict[str, _Told] = {}
        self._producer_ids = count(1000)
        self._due: list[MarkersDue] = []
        self._said: list[str] = []
        self._waiting: list[Waiting] = []
        self._start()

    def _start(self) -> None:
        self._harness = Harness(
            lambda: TransactionCoordinator(
                BrokerConfig(self._settings), self._topics, self._coordinator_epoch, self
            )
        )
        self._seen = 0

    # ---- what the machine says besides its answers

    def reply(self, response: Any) -> None:
        if isinstance(response, ProducerIdDue):
            self._said.append(f"{response.transactional_id} needs a producer id")
            return
        assert isinstance(response, MarkersDue)
        self._due.append(response)
        outcome = "COMMIT" if response.commit else "ABORT"
        self._said.append(
            f"markers {len(self._due)}: {outcome} producer={response.producer_id} "
            f"epoch={response.producer_epoch} {_text(by_topic(response.partitions))} "
            f"(coordinator epoch {response.coordinator_epoch}, version {response.transaction_version})"
        )

    def fail(self, error: ErrorCode) -> None:
        self._said.append(f"no markers: {error.name}")

    # ---- outcomes

    def _outcome(self) -> list[str]:
        lines, self._said = self._said, []
        for waiting in self._waiting:
            assert waiting.answer is not None
            lines.append(f"{waiting.name} <- {self._answer(waiting)}")
        self._waiting = []
        lines += [_record(key, value) for key, value in self._harness.log[self._seen :]]
        self._seen = len(self._harness.log)
        return lines

    def _answer(self, waiting: Waiting) -> str:
        answer = waiting.answer
        if isinstance(answer, ErrorCode):
            return f"{answer.name} (the request failed)"
        if isinstance(answer, dict):
            errors = {error.name for error in answer.values()}
            if len(errors) == 1:
                return errors.pop()
            return " ".join(f"{topic}:{index}={error.name}" for (topic, index), error in answer.items())
        name = _ERROR_NAMES[answer.error_code]
        if answer.error_code or answer.producer_id == -1:
            return name
        told = self._producers[waiting.name]
        told.producer_id, told.epoch = answer.producer_id, answer.producer_epoch
        return f"{name} producer={told.producer_id} epoch={told.epoch}"

    # ---- requests

    def _send(self, name: str, event: Callable[[Any, Any, int, int | None], None]) -> None:
        """One that needs a producer id gets one, and is sent again."""
        waiting = self._harness.send(lambda m, token, now_ms: event(m, token, now_ms, None), name)
        if waiting.answer is NEEDS_PRODUCER_ID:
            self._said.append(f"{name} needs a producer id")
            fresh = next(self._producer_ids)
            waiting = self._harness.send(lambda m, token, now_ms: event(m, token, now_ms, fresh), name)
        self._waiting.append(waiting)

    def _init(self, name: str, *words: str, **options: str) -> None:
        """`recovers` sends what the producer has."""
        told = self._producers.setdefault(name, _Told(_or_empty(options.get("id", _DEFAULT_ID))))
        recovers = "recovers" in words
        request = InitProducerIdRequest(
            transactional_id=told.transactional_id,
            transaction_timeout_ms=int(options.get("timeout", 60_000)),
            producer_id=int(options.get("producer", told.producer_id if recovers else -1)),
            producer_epoch=int(options.get("epoch", told.epoch if recovers else -1)),
        )
        version = int(options.get("version", 5))
        self._send(
            name,
            lambda m, token, now_ms, fresh: m.init_producer_id(request, version, fresh, token, now_ms),
        )

    def _add(self, name: str, *words: str, **options: str) -> None:
        self._add_or_verify(name, list(words), False, options)

    def _verify(self, name: str, *words: str, **options: str) -> None:
        self._add_or_verify(name, list(words), True, options)

    def _add_or_verify(self, name: str, words: list[str], verify_only: bool, options: dict[str, str]) -> None:
        told = self._producers.setdefault(name, _Told(_or_empty(options.get("id", _DEFAULT_ID))))
        producer_id = int(options.get("producer", told.producer_id))
        epoch = int(options.get("epoch", told.epoch))
        version = int(options.get("version", 2))
        partitions = places(words)
        self._send(
            name,
            lambda m, token, now_ms, _: m.add_partitions(
                told.transactional_id, producer_id, epoch, partitions, verify_only, version, token, now_ms
            ),
        )

    def _commit(self, name: str, **options: str) -> None:
        self._end(name, True, options)

    def _abort(self, name: str, **options: str) -> None:
        self._end(name, False, options)

    def _end(self, name: str, commit: bool, options: dict[str, str]) -> None:
        told = self._producers.setdefault(name, _Told(_or_empty(options.get("id", _DEFAULT_ID))))
        request = EndTxnRequest(
            told.transactional_id,
            int(options.get("producer", told.producer_id)),
            int(options.get("epoch", told.epoch)),
            commit,
        )
        version = int(options.get("version", 5))
        self._send(name, lambda m, token, now_ms, fresh: m.end_txn(request, version, token, now_ms, fresh))

    def _written(self, number: str, *words: str) -> None:
        due = self._due[int(number) - 1]
        partitions = frozenset(places(list(words))) if words else due.partitions
        self._harness.send(lambda m, token, now_ms: m.markers_written(due, partitions, now_ms))

    def _fresh_id_for(self, transactional_id: str) -> None:
        fresh = next(self._producer_ids)
        self._harness.send(lambda m, token, now_ms: m.abort_timed_out(transactional_id, fresh, now_ms))

    # ---- what happens to the coordinator

    def _set(self, **settings: str) -> None:
        self._settings |= settings
        self._start()

    def _record(self, state: str, *words: str, **options: str) -> None:
        """Found in the log, as somebody else wrote it."""
        metadata = TransactionMetadata(
            producer_id=int(options["producer"]),
            producer_epoch=int(options["epoch"]),
            timeout_ms=int(options.get("timeout", 60_000)),
            updated_ms=self._harness.now_ms,
            state=_STATES[state],
            partitions=frozenset(places(list(words))),
            started_ms=-1 if state == "Empty" else self._harness.now_ms,
            previous_producer_id=int(options.get("previous", options["producer"])),
            next_producer_id=int(options.get("next", -1)),
            client_version=int(options.get("version", 2)),
        )
        key = encode_key(options.get("id", _DEFAULT_ID))
        self._harness.log.append((key, encode_value(metadata)))
        self._seen = len(self._harness.log)
        self._harness.restart()

    def _knows(self, name: str, **options: str) -> None:
        """The producer has this id and epoch."""
        told = self._producers.setdefault(name, _Told(_or_empty(options.get("id", _DEFAULT_ID))))
        told.producer_id, told.epoch = int(options["producer"]), int(options["epoch"])

    def _restart(self, behind: str = "0") -> None:
        """`behind`: on a node whose clock is so many milliseconds behind."""
        self._harness.now_ms -= int(behind)
        self._coordinator_epoch += 1
        self._harness.restart()

    def _advance(self, ms: str) -> None:
        self._harness.advance(int(ms))

    def _appends(self, what: str) -> None:
        self._harness.appends_fail = what == "fail"

    def _create(self, name: str, partitions: str) -> None:
        self._topics.create(name, int(partitions))
        self._topics_changed()

    def _delete(self, name: str) -> None:
        self._topics.delete(name)
        self._topics_changed()

    def _topics_changed(self) -> None:
        self._harness.send(lambda m, token, now_ms: m.topics_changed(now_ms))
        self._harness.advance(0)

    # ---- what administrators see

    def _describe(self, transactional_id: str = _DEFAULT_ID) -> list[str]:
        shown = self._harness.machine.describe(_or_empty(transactional_id))
        if shown.error_code:
            return [_ERROR_NAMES[shown.error_code]]
        ago = self._harness.now_ms - shown.transaction_start_time_ms
        began = "never began" if shown.transaction_start_time_ms == -1 else f"began {ago} ms ago"
        partitions = {topic.topic: topic.partitions for topic in shown.topics}
        line = (
            f"{shown.transaction_state} producer={shown.producer_id} epoch={shown.producer_epoch} "
            f"timeout={shown.transaction_timeout_ms} {began} {_text(partitions)}"
        )
        return [line.rstrip()]

    def _list(self, **options: str) -> list[str]:
        request = ListTransactionsRequest(
            options["states"].split(",") if "states" in options else [],
            [int(word) for word in options.get("producers", "").split(",") if word],
            int(options.get("duration", -1)),
            options.get("pattern"),
        )
        try:
            listed = self._harness.machine.list(request, self._harness.now_ms)
        except KafkaError as error:
            return [error.code.name]
        lines = [
            f"{one.transactional_id} {one.transaction_state} producer={one.producer_id}" for one in listed
        ]
        return lines + [f"there is no state {name}" for name in unknown_states(request)]

    def _counts(self) -> list[str]:
        counts = self._harness.machine.counts()
        oldest = counts.oldest_started_ms
        age = "" if oldest is None else f", the oldest for {self._harness.now_ms - oldest} ms"
        return [f"{counts.open} open{age}; {counts.committed} committed, {counts.aborted} aborted"]


def _or_empty(word: str) -> str:
    return "" if word == "-" else word


def _record(key: bytes, value: bytes | None) -> str:
    transactional_id = decode_key(key)
    name = "" if transactional_id == _DEFAULT_ID else f" {transactional_id}"
    if value is None:
        return f"-{name or ' ' + _DEFAULT_ID}"
    known = decode_value(value)
    line = f"+{name} {STATE_NAMES[known.state]} producer={known.producer_id} epoch={known.producer_epoch}"
    if known.previous_producer_id != known.producer_id:
        line += f" previous={known.previous_producer_id}"
    if known.next_producer_id != -1:
        line += f" next={known.next_producer_id}"
    return f"{line} {_text(by_topic(known.partitions))}".rstrip()
