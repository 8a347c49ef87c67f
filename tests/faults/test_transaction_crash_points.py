"""Killed with -9 before and after each record of the commit protocol, a broker never leaves half of it.

The tables below list every record, in the order in which they are written, with what must follow a crash at
this point: what the restarted broker says of the transaction by itself, and how it ends.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from mainstem.protocol.apis.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from mainstem.protocol.apis.k10_find_coordinator import FindCoordinatorRequest
from mainstem.protocol.errors import ErrorCode
from mainstem.records.batch import read_header
from mainstem.records.record import iter_records
from mainstem.testing import Broker, BrokerError
from tests.support.group_views import until
from tests.support.scenario import fetch_request
from tests.support.target import Target, unique_name
from tests.support.transaction_scenario import Actor, await_answer, describe, new_transactional_id
from tests.support.transcript import Transcript
from tests.support.wire import ConnectionClosedError, WireClient

ORDERS, BILLS = "orders", "bills"  # stand for the topics of a test, whose names nobody else has
OFFSETS = "__consumer_offsets"
POSITION = 7
ABORTED, COMMITTED = "aborted", "committed"


@dataclass(frozen=True)
class Step:
    """A record of the protocol: a crash before it and one after it, each as (state after the restart, fate).

    A state that is not an end stays until somebody comes back with the transactional id, or time runs out.
    """

    write: str
    before: tuple[str, str]
    after: tuple[str, str]


UNKNOWN = ("unknown", ABORTED)  # the id was never recorded
EMPTY = ("Empty", ABORTED)
ONGOING = ("Ongoing", ABORTED)
DONE = ("CompleteCommit", COMMITTED)
UNDONE = ("CompleteAbort", ABORTED)

# Partitions are added by the first batch to each, the offsets by their commit (KIP-890).
COMMIT = [
    Step("state EMPTY", UNKNOWN, EMPTY),
    Step("state ONGOING 1", EMPTY, ONGOING),
    Step(f"records of {ORDERS}", ONGOING, ONGOING),
    Step("state ONGOING 2", ONGOING, ONGOING),
    Step(f"records of {BILLS}", ONGOING, ONGOING),
    Step("state ONGOING 3", ONGOING, ONGOING),
    Step(f"records of {OFFSETS}", ONGOING, ONGOING),
    Step("state PREPARE_COMMIT", ONGOING, DONE),
    Step(f"marker of {ORDERS}", DONE, DONE),
    Step(f"marker of {BILLS}", DONE, DONE),
    Step(f"marker of {OFFSETS}", DONE, DONE),
    Step("state COMPLETE_COMMIT", DONE, DONE),
]
ABORT = [
    Step("state PREPARE_ABORT", ONGOING, UNDONE),
    Step(f"marker of {ORDERS}", UNDONE, UNDONE),
    Step(f"marker of {BILLS}", UNDONE, UNDONE),
    Step(f"marker of {OFFSETS}", UNDONE, UNDONE),
    Step("state COMPLETE_ABORT", UNDONE, UNDONE),
]
# A broker that was killed when it had just decided is killed once more while it makes up for it.
RECOVERY = [
    Step(f"marker of {ORDERS}", DONE, DONE),
    Step(f"marker of {BILLS}", DONE, DONE),
    Step(f"marker of {OFFSETS}", DONE, DONE),
    Step("state COMPLETE_COMMIT", DONE, DONE),
]
# A client of the older protocol adds both partitions at once, and the group's by a request of its own.
OLD_COMMIT = [
    Step("state ONGOING 1", EMPTY, ONGOING),
    Step(f"records of {BILLS}", ONGOING, ONGOING),
    Step("state ONGOING 2", ONGOING, ONGOING),
    Step(f"records of {OFFSETS}", ONGOING, ONGOING),
    Step("state PREPARE_COMMIT", ONGOING, DONE),
    Step(f"marker of {ORDERS}", DONE, DONE),
    Step(f"marker of {BILLS}", DONE, DONE),
    Step(f"marker of {OFFSETS}", DONE, DONE),
    Step("state COMPLETE_COMMIT", DONE, DONE),
]


class CrashingBroker(Broker):
    """A broker that takes orders to crash."""

    def __init__(self, folder: Path) -> None:
        super().__init__(data_dir=folder / "data")
        self.order = folder / "order"

    def _program(self) -> list[str]:
        python, *_ = super()._program()
        return [python, str(Path(__file__).with_name("transaction_crash_main.py")), str(self.order)]


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CrashingBroker]:
    """One for all crashes: what earlier ones left is loaded again by the later ones."""
    with CrashingBroker(tmp_path_factory.mktemp("crash")) as broker:
        yield broker


@pytest.fixture
def case(brokers: CrashingBroker) -> "Case":
    brokers.order.unlink(missing_ok=True)
    if not brokers.running:
        brokers.start()
    return Case(brokers)


class Case:
    """One transaction over two partitions and a group's offset, and its crash."""

    def __init__(self, broker: CrashingBroker) -> None:
        self._broker = broker
        self._target = Target("mainstem", broker.bootstrap_servers, broker.data_dir)
        self._orders = self._target.create_topic(unique_name(ORDERS))
        self._bills = self._target.create_topic(unique_name(BILLS))
        self._group = unique_name("group")
        with WireClient(self._target) as client:
            self._id = new_transactional_id(client)
            find = FindCoordinatorRequest(coordinator_keys=[self._group])
            await_answer(lambda: client.call(find), lambda found: not found.coordinators[0].error_code)

    def crash(self, moment: str, write: str, act: Callable[[Actor], None]) -> None:
        """Run the transaction until the broker is gone."""
        self._give_order(moment, write)
        with suppress(ConnectionClosedError, OSError), WireClient(self._target) as client:
            act(self._actor(client))
        self._await_crash(moment, write)

    def crash_while_starting(self, moment: str, write: str) -> None:
        self._give_order(moment, write)
        with suppress(BrokerError):
            self._broker.start()
        self._await_crash(moment, write)

    def restart(self) -> None:
        self._broker.order.unlink()
        self._broker.start()

    def _give_order(self, moment: str, write: str) -> None:
        for name, real in ((ORDERS, self._orders), (BILLS, self._bills)):
            write = write.replace(f" of {name}", f" of {real}")
        part = self._broker.order.with_suffix(".part")
        part.write_text(f"{moment} {write}")
        part.rename(self._broker.order)

    def _await_crash(self, moment: str, write: str) -> None:
        until(lambda: not self._broker.running, f"the broker to crash {moment} {write}")
        with suppress(BrokerError):
            self._broker.kill()

    def _actor(self, client: WireClient) -> Actor:
        return Actor(client, Transcript(self._target, "crash"), of=self._id)

    def commit(self, actor: Actor) -> None:
        self._transact(actor, b"first", committed=True)

    def abort(self, actor: Actor) -> None:
        self._transact(actor, b"first", committed=False)

    def _transact(self, actor: Actor, value: bytes, *, committed: bool) -> None:
        """As clients of transaction version 2 do."""
        _succeed(actor.init())
        self._produce(actor, 12, value)
        self._commit_offsets(actor, 5)
        _succeed(actor.ask_end(5, committed=committed))

    def commit_the_old_way(self, actor: Actor) -> None:
        _succeed(actor.init(4))
        for added in actor.add({self._orders: [0], self._bills: [0]}).results_by_topic_v3_and_below:
            assert added.results_by_partition[0].partition_error_code == 0, added
        self._produce(actor, 11, b"first")
        _succeed(actor.add_offsets(self._group, 3))
        self._commit_offsets(actor, 4)
        _succeed(actor.ask_end(4))

    def _produce(self, actor: Actor, version: int, value: bytes) -> None:
        for topic in (self._orders, self._bills):
            _succeed(actor.produce(topic, version=version, value=value).responses[0].partition_responses[0])

    def _commit_offsets(self, actor: Actor, version: int) -> None:
        answer = actor.commit_offsets(self._group, {self._orders: {0: POSITION}}, version)
        _succeed(answer.topics[0].partitions[0])

    def await_state(self, wanted: str) -> None:
        """What the broker comes to by itself."""
        with WireClient(self._target) as client:
            found = await_answer(lambda: self._state(client), lambda state: state in (wanted, *_ENDS))
            assert found == wanted

    def _state(self, client: WireClient) -> str:
        (state,) = describe(client, self._id).transaction_states
        if state.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            return "unknown"
        return ErrorCode(state.error_code).name if state.error_code else state.transaction_state

    def check(self, expected: list[bytes], *, committed: bool) -> None:
        with WireClient(self._target) as client:
            assert self._read(client, self._orders) == expected
            assert self._read(client, self._bills) == expected
            assert self._position(client) == (POSITION if committed else -1)

    def check_nothing_is_seen(self) -> None:
        """While a transaction is open nobody reads what it wrote."""
        with WireClient(self._target) as client:
            assert self._read(client, self._orders, to_the_end=False) == []
            assert self._read(client, self._bills, to_the_end=False) == []

    def _read(self, client: WireClient, topic: str, *, to_the_end: bool = True) -> list[bytes]:
        """What a read_committed reader makes of the partition, with the list of aborted transactions."""
        (answer,) = client.call(fetch_request(topic, 0, isolation_level=1), 12).responses[0].partitions
        assert answer.error_code == 0, ErrorCode(answer.error_code).name
        if to_the_end:
            assert answer.last_stable_offset == answer.high_watermark, "a transaction is open"
        starts = [(it.first_offset, it.producer_id) for it in answer.aborted_transactions or ()]
        aborted: set[int] = set()
        values: list[bytes] = []
        data = bytes(answer.records or b"")
        while data:
            header = read_header(data)
            aborted |= {producer for first, producer in starts if first <= header.base_offset}
            starts = [(first, producer) for first, producer in starts if first > header.base_offset]
            if header.is_control:
                aborted.discard(header.producer_id)
            elif header.producer_id not in aborted:
                values += [record.value or b"" for record in iter_records(data)]
            data = data[header.size :]
        return values

    def _position(self, client: WireClient) -> int:
        where = [OffsetFetchRequestTopics(self._orders, partition_indexes=[0])]
        groups = [OffsetFetchRequestGroup(self._group, topics=where)]
        answer = await_answer(
            lambda: client.call(OffsetFetchRequest(groups=groups, require_stable=True), 9).groups[0],
            lambda group: group.error_code == ErrorCode.NONE,
        )
        (part,) = answer.topics[0].partitions
        assert part.error_code == 0, ErrorCode(part.error_code).name
        return part.committed_offset

    def go_on(self) -> None:
        """The next instance with this id finishes what is open, and its own transaction is committed."""
        with WireClient(self._target) as client:
            actor = self._actor(client)
            await_answer(actor.init, lambda found: found.error_code != ErrorCode.CONCURRENT_TRANSACTIONS)

    def transact_again(self) -> None:
        with WireClient(self._target) as client:
            self._transact(self._actor(client), b"second", committed=True)
        self.await_state("CompleteCommit")


_ENDS = ("unknown", "Empty", "Ongoing", "CompleteCommit", "CompleteAbort")


def _succeed(answer: object) -> None:
    code = getattr(answer, "error_code", None)
    assert code == 0, answer


def _follow(case: Case, expected: tuple[str, str]) -> None:
    """What must follow after the restart."""
    case.restart()
    state, fate = expected
    case.await_state(state)
    committed = fate == COMMITTED
    if state == "Ongoing":
        case.check_nothing_is_seen()
    case.go_on()
    case.check([b"first"] if committed else [], committed=committed)
    case.transact_again()
    case.check([b"first", b"second"] if committed else [b"second"], committed=True)


def _rows(steps: list[Step]) -> pytest.MarkDecorator:
    rows = [
        pytest.param(moment, step.write, expected, id=f"{moment} {step.write}")
        for step in steps
        for moment, expected in (("before", step.before), ("after", step.after))
    ]
    return pytest.mark.parametrize(("moment", "write", "expected"), rows)


@_rows(COMMIT)
def test_a_crash_in_a_commit(case: Case, moment: str, write: str, expected: tuple[str, str]) -> None:
    case.crash(moment, write, case.commit)
    _follow(case, expected)


@_rows(ABORT)
def test_a_crash_in_an_abort(case: Case, moment: str, write: str, expected: tuple[str, str]) -> None:
    case.crash(moment, write, case.abort)
    _follow(case, expected)


@_rows(RECOVERY)
def test_a_second_crash_in_the_recovery(
    case: Case, moment: str, write: str, expected: tuple[str, str]
) -> None:
    case.crash("after", "state PREPARE_COMMIT", case.commit)
    case.crash_while_starting(moment, write)
    _follow(case, expected)


@_rows(OLD_COMMIT)
def test_a_crash_in_a_commit_of_an_older_client(
    case: Case, moment: str, write: str, expected: tuple[str, str]
) -> None:
    case.crash(moment, write, case.commit_the_old_way)
    _follow(case, expected)
