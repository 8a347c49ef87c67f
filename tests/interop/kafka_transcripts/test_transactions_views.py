"""Descriptions and lists of transactions, request by request; transactions that run out of time."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from mainstem.protocol.apis.k66_list_transactions import ListTransactionsRequest, ListTransactionsResponse
from mainstem.protocol.errors import ErrorCode
from mainstem.testing import Broker
from tests.support.kafka_peer import start_own_kafka
from tests.support.offset_scenario import new_group, offset_fetch
from tests.support.scenario import fetch_request
from tests.support.target import Target
from tests.support.transaction_scenario import Actor, await_answer, describe
from tests.support.transcript import Transcript, recorded
from tests.support.wire import WireClient

# Apache Kafka looks every 10 s by default for transactions whose time is over.
_QUICK = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": 100}
_FORGETFUL = {
    "transactional.id.expiration.ms": 500,
    "transaction.remove.expired.transaction.cleanup.interval.ms": 100,
}


@pytest.fixture(scope="module")
def quick_mainstem() -> Iterator[Target]:
    with Broker(_QUICK) as broker:
        yield Target("mainstem", broker.bootstrap_servers, broker.data_dir)


@pytest.fixture(params=["quick_mainstem", pytest.param("kafka", marks=pytest.mark.peer)])
def quick_target(request: pytest.FixtureRequest) -> Target:
    return request.getfixturevalue(request.param)


@pytest.fixture
def forgetful_mainstem() -> Iterator[Target]:
    with Broker(_FORGETFUL) as broker:
        yield Target("mainstem", broker.bootstrap_servers, broker.data_dir)


@pytest.fixture
def forgetful_kafka() -> Target:
    peer = start_own_kafka({key: str(value) for key, value in _FORGETFUL.items()})
    return Target("kafka", peer.bootstrap_servers, Path(peer.log_dir))


@pytest.fixture(
    params=["forgetful_mainstem", pytest.param("forgetful_kafka", marks=[pytest.mark.peer, pytest.mark.soak])]
)
def forgetful_target(request: pytest.FixtureRequest) -> Target:
    return request.getfixturevalue(request.param)


def _states(client: WireClient, transcript: Transcript, topic: str) -> list[Actor]:
    """One transactional id in each state that lasts."""
    actors = {name: Actor(client, transcript, name) for name in ("empty", "ongoing", "committed", "aborted")}
    for name, actor in actors.items():
        actor.init()
        if name != "empty":
            actor.add({topic: [0, 1]})
    actors["committed"].end(5)
    actors["aborted"].end(5, committed=False)
    return list(actors.values())


def test_describe(target: Target) -> None:
    with recorded(target, "txn_describe") as (transcript, client):
        topic = transcript.stand_in(target.create_topic(partitions=2), "topic")
        actors = _states(client, transcript, topic)
        transcript.note("none", describe(client))
        transcript.note("an unknown one", describe(client, "nobody"))
        transcript.note("an empty name", describe(client, ""))
        for actor in actors:
            transcript.note("one", describe(client, actor.id))
        transcript.note("all, one twice", describe(client, *(it.id for it in actors), actors[0].id))
        actors[1].end()
        transcript.note("the ongoing one is over", actors[1].view())


def test_list(target: Target) -> None:
    with recorded(target, "txn_list") as (transcript, client):
        topic = transcript.stand_in(target.create_topic(partitions=2), "topic")
        actors = _states(client, transcript, topic)

        def step(title: str, version: int, *filters: Any, **fields: Any) -> None:
            answer = client.call(ListTransactionsRequest(*filters, **fields), version)
            transcript.note(f"{title}, version {version}", _only(answer, actors))

        ids = [actor.producer_id for actor in actors]
        for version in (0, 1, 2):
            step("all", version)
            for states in (["Ongoing"], ["Empty", "CompleteAbort"], ["ongoing"], ["Dead"], [""]):
                step(f"in {states}", version, states)
            step("in every state", version, ["Empty", "Ongoing", "CompleteCommit", "CompleteAbort"])
            step("also in an unknown state", version, ["CompleteCommit", "NoSuchState"])
            step("only in unknown states", version, ["NoSuchState", "Neither"])
            step("of two producers", version, [], ids[:2])
            step("of no producer", version, [], [-1])
            step("of a producer in a state", version, ["Ongoing"], ids)
        for version in (1, 2):
            for duration in (-2, 0, 3_600_000, 2**62):
                step(f"open for {duration} ms", version, duration_filter=duration)
        prefix = actors[0].id.rpartition("-")[0]
        patterns = ("", ".*", f"{prefix}-.*", f"^{prefix}-[0-9]+$", prefix, "no-such.*", "(", "*", "(?!x).*")
        for pattern in patterns:
            title = pattern.replace(prefix, "prefix")
            step(f"like {title!r}", 2, transactional_id_pattern=pattern)
        actors[1].end()


def _only(answer: ListTransactionsResponse, actors: Sequence[Actor]) -> ListTransactionsResponse:
    """Those of this test, in their order: other tests have theirs."""
    order = {actor.id: number for number, actor in enumerate(actors)}
    answer.transaction_states = sorted(
        (state for state in answer.transaction_states if state.transactional_id in order),
        key=lambda state: order[state.transactional_id],
    )
    answer.unknown_state_filters.sort()
    return answer


def test_time_runs_out(quick_target: Target) -> None:
    """The coordinator aborts with an epoch of its own; the producer is told so, its writes are void."""
    target = quick_target
    with recorded(target, "txn_time_runs_out") as (transcript, client):
        topic = transcript.stand_in(target.create_topic(partitions=2), "topic")
        group = transcript.stand_in(new_group(client), "group")
        versions = {"old": (4, 11, 4), "new": (5, 12, 5)}
        actors = {name: Actor(client, transcript, name) for name in versions}
        for number, (name, (_, produce_version, commit_version)) in enumerate(versions.items()):
            actor = actors[name]
            actor.timeout_ms = 2000  # enough for these few requests
            actor.init()
            actor.add({topic: [number]})
            actor.add_offsets(group)
            actor.produce(topic, 2, number, produce_version)
            actor.commit_offsets(group, {topic: {number: 5}}, commit_version)
        for number, (name, (end_version, produce_version, commit_version)) in enumerate(versions.items()):
            actor = actors[name]
            transcript.note(f"{name}: the view", _when_aborted(actor))
            answer = client.call(fetch_request(topic, 0, partition=number, isolation_level=1), 12)
            transcript.note(f"{name}: the log", answer)
            transcript.note(f"{name}: writes", actor.produce(topic, 1, number, produce_version))
            transcript.note(f"{name}: adds a partition", actor.add({topic: [number]}))
            answer = actor.commit_offsets(group, {topic: {number: 5}}, commit_version)
            transcript.note(f"{name}: commits offsets", answer)
            transcript.note(f"{name}: commits", actor.ask_end(end_version))
            transcript.note(f"{name}: aborts", actor.ask_end(end_version, committed=False))
            mine = {"producer_id": actor.producer_id, "producer_epoch": actor.epoch}
            transcript.note(f"{name}: recovers", actor.init(**mine))
            transcript.note(f"{name}: starts anew", actor.init())
            transcript.note(f"{name}: the view", actor.view())
        transcript.note("the offsets", client.call(offset_fetch(group, {topic: [0, 1]}, stable=True), 9))


def _when_aborted(actor: Actor) -> Any:
    return await_answer(
        actor.view, lambda found: found.transaction_states[0].transaction_state == "CompleteAbort"
    )


def test_ids_are_forgotten(forgetful_target: Target) -> None:
    target = forgetful_target
    with recorded(target, "txn_ids_forgotten") as (transcript, client):
        topic = transcript.stand_in(target.create_topic(), "topic")
        idle = Actor(client, transcript, "idle")
        idle.init()
        busy = Actor(client, transcript, "busy")
        busy.init()
        busy.add({topic: [0]})
        gone = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        await_answer(idle.view, lambda found: found.transaction_states[0].error_code == gone)
        transcript.note("one that was idle", idle.view())
        transcript.note("one with an open transaction", busy.view())
        transcript.note("the idle one adds a partition", idle.add({topic: [0]}))
        transcript.note("the idle one commits", idle.ask_end(5))
        transcript.note("the idle one writes", idle.produce(topic))
        mine = {"producer_id": idle.producer_id, "producer_epoch": idle.epoch}
        transcript.note("the idle one recovers", idle.init(**mine))
        transcript.note("the busy one commits", busy.end(5))
        await_answer(busy.view, lambda found: found.transaction_states[0].error_code == gone)
        transcript.note("the busy one, forgotten too", busy.view())
