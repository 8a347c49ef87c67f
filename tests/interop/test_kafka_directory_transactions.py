"""A whole data directory of Apache Kafka in which transactions are open, with records and offsets in them:
Mainstem serves it, and every transaction ends as its owner, an heir or the clock has it.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from mainstem.protocol.errors import ErrorCode
from mainstem.testing import Broker
from tests.support.clients import read_confluent
from tests.support.kafka_peer import end_own_kafka, start_own_kafka
from tests.support.offset_scenario import new_group, offset_fetch
from tests.support.target import Target
from tests.support.transaction_scenario import Actor, await_answer, await_over, describe
from tests.support.transcript import Transcript
from tests.support.wire import WireClient

pytestmark = pytest.mark.peer

_TIMED_OUT_INTERVAL = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
_KAFKA_SETTINGS = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "log.index.size.max.bytes": "4096",
    _TIMED_OUT_INTERVAL: "3600000",  # the time-outs are left to Mainstem
}
_HOUR_MS = 3_600_000
_GROUPS_SINCE = 8  # of OffsetFetch
_ENDINGS = ("commit", "abort", "time-out", "heir")


class Case(NamedTuple):
    """A transactional id of its own, with a topic and a group."""

    ending: str
    is_older: bool  # the protocol before transactions version 2
    topic: str
    group: str
    name: str
    producer_id: int
    epoch: int

    def owner(self, client: WireClient, target: Target) -> Actor:
        """The producer, on another connection."""
        actor = Actor(client, Transcript(target, "unused"), of=self.name)
        actor.producer_id, actor.epoch = self.producer_id, self.epoch
        return actor


def _write(actor: Actor, case: Case, value: bytes, offset: int, **fields: int) -> None:
    """A record, and the group's next offset, in the actor's transaction. `sequence` may be given."""
    if case.is_older:
        actor.add({case.topic: [0]})
        actor.add_offsets(case.group, 3)
    answer = actor.produce(case.topic, value=value, version=10 if case.is_older else 12, **fields)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE, answer
    committed = actor.commit_offsets(case.group, {case.topic: {0: offset}}, version=3 if case.is_older else 5)
    assert committed.topics[0].partitions[0].error_code == ErrorCode.NONE, committed


def _end(actor: Actor, case: Case, *, committed: bool) -> ErrorCode:
    return ErrorCode(actor.end(4 if case.is_older else 5, committed=committed).error_code)


def _begin(kafka: Target, client: WireClient, ending: str, is_older: bool) -> Case:
    """One transaction that is committed, one that is aborted, and one that is left open."""
    actor = Actor(client, Transcript(kafka, "unused"))
    actor.timeout_ms = 1 if ending == "time-out" else _HOUR_MS // 10
    case = Case(ending, is_older, kafka.create_topic(), new_group(client), actor.id, -1, -1)
    assert actor.init().error_code == ErrorCode.NONE
    for value, offset, committed in ((b"one", 1, True), (b"two", 2, False)):
        _write(actor, case, value, offset)
        assert _end(actor, case, committed=committed) == ErrorCode.NONE
    _write(actor, case, b"three", 3)
    return case._replace(producer_id=actor.producer_id, epoch=actor.epoch)


@pytest.fixture(scope="module", params=["killed", "stopped"])
def served(request: pytest.FixtureRequest) -> Iterator[tuple[Target, list[Case]]]:
    """Mainstem in the directory of an Apache Kafka that has ended, and what was begun there."""
    peer = start_own_kafka(_KAFKA_SETTINGS)
    kafka = Target("kafka", peer.bootstrap_servers, Path(peer.log_dir))
    with WireClient(kafka) as client:
        cases = [_begin(kafka, client, ending, older) for ending in _ENDINGS for older in (False, True)]
    end_own_kafka(peer, kindly=request.param == "stopped")
    with Broker({"node.id": 1, _TIMED_OUT_INTERVAL: 50}, data_dir=peer.log_dir) as broker:
        yield Target("mainstem", broker.bootstrap_servers, broker.data_dir), cases


def _committed_offset(client: WireClient, case: Case, *, stable: bool) -> tuple[ErrorCode, int]:
    answer = client.call(offset_fetch(case.group, {case.topic: [0]}, stable=stable), _GROUPS_SINCE)
    (part,) = answer.groups[0].topics[0].partitions
    return ErrorCode(part.error_code), part.committed_offset


@pytest.mark.parametrize("is_older", [False, True], ids=["transactions-2", "older"])
@pytest.mark.parametrize("ending", _ENDINGS)
def test_an_open_transaction_of_kafka_ends(
    served: tuple[Target, list[Case]], ending: str, is_older: bool
) -> None:
    target, cases = served
    (case,) = [case for case in cases if (case.ending, case.is_older) == (ending, is_older)]
    with WireClient(target) as client:
        new_group(client, case.group)
        owner = case.owner(client, target)
        await_answer(
            lambda: describe(client, case.name).transaction_states[0].error_code,
            lambda error: error == ErrorCode.NONE,
        )
        if ending != "time-out":
            (state,) = describe(client, case.name).transaction_states
            assert (state.transaction_state, state.producer_epoch) == ("Ongoing", case.epoch)
            assert [topic.topic for topic in state.topics] == ["__consumer_offsets", case.topic]
            assert _committed_offset(client, case, stable=True)[0] == ErrorCode.UNSTABLE_OFFSET_COMMIT
            assert _committed_offset(client, case, stable=False) == (ErrorCode.NONE, 1)
            assert [message.value for message in read_confluent(target, case.topic, 1)] == [b"one"]
        if ending in ("commit", "abort"):
            assert _end(owner, case, committed=ending == "commit") == ErrorCode.NONE
        elif ending == "heir":
            heir = await_answer(owner.init, lambda answer: answer.error_code == ErrorCode.NONE)
            assert heir.producer_epoch > case.epoch
        (over,) = await_over(client, case.name).transaction_states
        offset = 3 if ending == "commit" else 1
        expected = [b"one", b"three"] if ending == "commit" else [b"one"]
        if ending != "heir":  # whose producer has begun anew
            assert over.transaction_state == ("CompleteCommit" if ending == "commit" else "CompleteAbort")
        assert _committed_offset(client, case, stable=True) == (ErrorCode.NONE, offset)

        if ending == "time-out":
            late = owner.produce(case.topic, version=10 if is_older else 12)
            error = late.responses[0].partition_responses[0].error_code
            assert error == ErrorCode.INVALID_PRODUCER_EPOCH
            assert owner.init().error_code == ErrorCode.NONE
        keeps_epoch = is_older and ending in ("commit", "abort")
        _write(owner, case, b"four", 4, sequence=3 if keeps_epoch else 0)
        assert _end(owner, case, committed=True) == ErrorCode.NONE
        assert _committed_offset(client, case, stable=True) == (ErrorCode.NONE, 4)
        expected.append(b"four")
        assert [message.value for message in read_confluent(target, case.topic, len(expected))] == expected
