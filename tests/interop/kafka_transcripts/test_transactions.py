"""The transaction coordinator, request by request: producer ids, partitions, offsets, the end; fencing."""

from collections.abc import Callable
from typing import Any

import pytest

from mainstem.protocol.apis.k10_find_coordinator import FindCoordinatorRequest
from mainstem.protocol.apis.k22_init_producer_id import InitProducerIdRequest
from mainstem.protocol.apis.k24_add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTransaction,
)
from mainstem.protocol.errors import ErrorCode
from tests.support.offset_scenario import new_group
from tests.support.target import Target
from tests.support.transaction_scenario import (
    TRANSACTION,
    Actor,
    await_answer,
    await_over,
    in_order,
    new_transactional_id,
    txn_topics,
)
from tests.support.transcript import Transcript, recorded
from tests.support.wire import WireClient

_MAX_TIMEOUT_MS = 900_000
# The newest version of each API that speaks the older protocol, and the first that speaks the newer.
_OLD_END, _NEW_END = 4, 5


def _strangers(actor: Actor) -> dict[str, dict[str, Any]]:
    """Identities that are not the actor's."""
    return {
        "an unknown transactional id": {"transactional_id": "nobody"},
        "no transactional id": {"transactional_id": ""},
        "another producer id": {"producer_id": actor.producer_id + 1_000_000},
        "producer id -1": {"producer_id": -1},
        "an earlier epoch": {"producer_epoch": actor.epoch - 1},
        "a later epoch": {"producer_epoch": actor.epoch + 1},
        "epoch -1": {"producer_epoch": -1},
    }


def test_find_coordinator(target: Target) -> None:
    with recorded(target, "txn_find_coordinator") as (transcript, client):
        host, port = target.address
        transcript.stand_in(host, "host")
        transcript.stand_in(port, "port")
        names = [transcript.stand_in(new_transactional_id(client), f"id {number}") for number in range(2)]
        for version in range(1, 4):
            answer = client.call(FindCoordinatorRequest(names[0], TRANSACTION), version)
            transcript.note(f"version {version}", answer)
            answer = client.call(FindCoordinatorRequest("", TRANSACTION), version)
            transcript.note(f"version {version}, no transactional id", answer)
        for version in range(4, 7):
            for title, keys in {"two": names, "none": [], "an empty one": [""]}.items():
                request = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=keys)
                transcript.note(f"version {version}, {title}", client.call(request, version))


def test_init_producer_id(target: Target) -> None:
    with recorded(target, "txn_init_producer_id") as (transcript, client):
        for version in range(6):
            actor = Actor(client, transcript, f"id {version}")
            transcript.note(f"a new id, version {version}", actor.init(version))
            transcript.note("its view", actor.view())
            transcript.note("the same again", actor.init(version))
            actor.timeout_ms = 30_000
            transcript.note("with another time-out", actor.init(version))
            transcript.note("its view", actor.view())
        for version in (3, 4, 5):
            _recover(client, transcript, version)


def _recover(client: WireClient, transcript: Transcript, version: int) -> None:
    actor = Actor(client, transcript, f"recovering {version}")
    transcript.note(f"a new id, version {version}", actor.init(version))
    mine = actor.producer_id
    claims = {
        "the producer recovers": (mine, 0),
        "it asks again with what it knew": (mine, 0),
        "it goes on": (mine, 1),
        "with an epoch long gone": (mine, 0),
        "with a later epoch": (mine, 9),
        "with another producer id": (mine + 1_000_000, 0),
        "with a producer id and no epoch": (mine, -1),
        "with an epoch and no producer id": (-1, 2),
        "with neither": (-1, -1),
        "with what it knew before": (mine, 2),
    }
    for title, (producer_id, epoch) in claims.items():
        answer = actor.init(version, producer_id=producer_id, producer_epoch=epoch)
        transcript.note(title, answer)
    transcript.note("its view", actor.view())
    unknown = Actor(client, transcript, f"unknown {version}")
    answer = unknown.init(version, producer_id=mine, producer_epoch=0)
    transcript.note("a new id that claims a producer id", answer)


def test_init_producer_id_with_odd_values(target: Target) -> None:
    with recorded(target, "txn_init_producer_id_odd_values") as (transcript, client):
        actor = Actor(client, transcript)
        actor.init()
        for version in (0, 5):
            for timeout_ms in (0, -1, -(2**31), _MAX_TIMEOUT_MS + 1, 2**31 - 1, _MAX_TIMEOUT_MS, 1):
                request = InitProducerIdRequest(actor.id, timeout_ms)
                title = f"version {version}, time-out {timeout_ms}"
                transcript.note(title, client.call(request, version))
            answer = client.call(InitProducerIdRequest("", 1000), version)
            transcript.note(f"version {version}, an empty transactional id", answer)
            request = InitProducerIdRequest("", 1000, actor.producer_id, 0)
            transcript.note(f"version {version}, empty, with a producer id", client.call(request, version))
        for timeout_ms in (0, -1, _MAX_TIMEOUT_MS + 1):
            answer = client.call(InitProducerIdRequest(None, timeout_ms))
            note = "a producer id" if answer.producer_id >= 0 else ErrorCode(answer.error_code).name
            transcript.note(f"no transactional id, time-out {timeout_ms}", note)
        transcript.note("the view", actor.view())


def test_add_partitions(target: Target) -> None:
    with recorded(target, "txn_add_partitions") as (transcript, client):
        topic = transcript.stand_in(target.create_topic(partitions=3), "topic")
        other = transcript.stand_in(target.create_topic(), "other")
        for version in range(6):
            actor = Actor(client, transcript, f"id {version}")
            transcript.note(f"before it has a producer, version {version}", actor.add({topic: [0]}, version))
            actor.init()
            transcript.note("nothing", actor.add({}, version))
            transcript.note("a topic without partitions", actor.add({topic: []}, version))
            transcript.note("its view", actor.view())
            transcript.note("two partitions", actor.add({topic: [0, 2]}, version))
            transcript.note("one again, one of another topic", actor.add({topic: [2], other: [0]}, version))
            transcript.note("a partition twice", actor.add({topic: [1, 1]}, version))
            transcript.note("an unknown partition", actor.add({topic: [0, 3]}, version))
            transcript.note("an unknown topic", actor.add({topic: [0], "no-such-topic": [0]}, version))
            transcript.note("a negative partition", actor.add({topic: [-1]}, version))
            transcript.note("its view", actor.view())
            for title, fields in _strangers(actor).items():
                transcript.note(title, actor.add({topic: [0]}, version, **fields))
            actor.end()
            transcript.note("after the end", actor.add({topic: [0]}, version))
            transcript.note("its view", actor.view())


def test_add_partitions_of_several_transactions(target: Target) -> None:
    with recorded(target, "txn_add_partitions_batched") as (transcript, client):
        topic = transcript.stand_in(target.create_topic(partitions=3), "topic")
        for version in (4, 5):
            actors = [Actor(client, transcript, f"id {version}.{number}") for number in range(3)]

            def call(title: str, *wanted: AddPartitionsToTxnTransaction, version: int = version) -> None:
                answer = client.call(AddPartitionsToTxnRequest(list(wanted)), version)
                transcript.note(title, in_order(answer))

            for actor in actors:
                actor.init()
            first, second, third = actors
            # One of no transaction Apache Kafka never answers.
            call(f"verified before anything is there, version {version}", _ask(first, topic, 0, 1))
            told = [_tell(first, topic, 0), _tell(second, topic, 1, 2)]
            call("two are told, one is asked", *told, _ask(third, topic, 0))
            call("verified", _ask(first, topic, 0), _ask(second, topic, 0, 1))
            call("verified, with an unknown partition", _ask(first, topic, 0, 7))
            call("told, with an unknown partition", _tell(first, topic, 1, 7))
            for title, fields in _strangers(first).items():
                call(f"verified, {title}", _ask(first, topic, 0, **fields))
            call("one of them is a stranger", _ask(first, topic, 0, producer_epoch=9), _ask(second, topic, 1))
            first.end()
            call("verified after the end", _ask(first, topic, 0))
            second.end(_NEW_END)
            call("verified after the end with its new epoch", _ask(second, topic, 1))


def _tell(actor: Actor, topic: str, *partitions: int, **fields: Any) -> AddPartitionsToTxnTransaction:
    who = {"transactional_id": actor.id, "producer_id": actor.producer_id, "producer_epoch": actor.epoch}
    return AddPartitionsToTxnTransaction(**who | fields, topics=txn_topics({topic: partitions}))


def _ask(actor: Actor, topic: str, *partitions: int, **fields: Any) -> AddPartitionsToTxnTransaction:
    transaction = _tell(actor, topic, *partitions, **fields)
    transaction.verify_only = True
    return transaction


def test_add_offsets(target: Target) -> None:
    with recorded(target, "txn_add_offsets") as (transcript, client):
        group = new_group(client)
        for version in range(5):
            actor = Actor(client, transcript, f"id {version}")
            transcript.note(f"before it has a producer, version {version}", actor.add_offsets(group, version))
            actor.init()
            transcript.note("a group", actor.add_offsets(group, version))
            transcript.note("the same", actor.add_offsets(group, version))
            transcript.note("no group", actor.add_offsets("", version))
            for title, fields in _strangers(actor).items():
                transcript.note(title, actor.add_offsets(group, version, **fields))
            transcript.note("the end", actor.end())


@pytest.mark.parametrize("version", range(6))
def test_end(target: Target, version: int) -> None:
    with recorded(target, f"txn_end_{version}") as (transcript, client):
        topic = transcript.stand_in(target.create_topic(partitions=2), "topic")
        for committed in (True, False):
            word = "commit" if committed else "abort"
            actor = Actor(client, transcript, f"{word} id")
            transcript.note(f"{word} before it has a producer", actor.ask_end(version, committed=committed))
            actor.init()
            transcript.note(f"{word} of nothing", actor.end(version, committed=committed))
            transcript.note("its view", actor.view())
            actor.init()
            actor.add({topic: [0, 1]})
            transcript.note("its view while it goes on", actor.view())
            before = {"producer_epoch": actor.epoch}
            for title, fields in _strangers(actor).items():
                answer = actor.ask_end(version, committed=committed, **fields)
                transcript.note(f"{word}: {title}", answer)
            transcript.note(word, actor.end(version, committed=committed))
            transcript.note("its view", actor.view())
            transcript.note(f"{word} again as a retry", actor.end(version, committed=committed, **before))
            transcript.note("the opposite as a retry", actor.end(version, committed=not committed, **before))
            transcript.note(f"{word} again", actor.end(version, committed=committed))
            transcript.note("the opposite", actor.end(version, committed=not committed))
            transcript.note("its view", actor.view())
            transcript.note("a new start", actor.init())
            transcript.note(f"{word} after a new start", actor.end(version, committed=committed))
            transcript.note("its view", actor.view())


def _attempts(zombie: Actor, topic: str, group: str, end_version: int) -> dict[str, Callable[[], Any]]:
    mine = {"producer_id": zombie.producer_id, "producer_epoch": zombie.epoch}
    return {
        "adds a partition": lambda: zombie.add({topic: [0]}),
        "adds a partition, version 1": lambda: zombie.add({topic: [0]}, 1),
        "adds a partition as a broker": lambda: zombie.add({topic: [0]}, 5),
        "adds offsets": lambda: zombie.add_offsets(group),
        "adds offsets, version 1": lambda: zombie.add_offsets(group, 1),
        "commits offsets, version 4": lambda: zombie.commit_offsets(group, {topic: {0: 1}}, 4),
        "commits offsets, version 5": lambda: zombie.commit_offsets(group, {topic: {0: 1}}),
        "commits": lambda: zombie.ask_end(end_version),
        "commits, version 1": lambda: zombie.ask_end(1),
        "aborts": lambda: zombie.ask_end(end_version, committed=False),
        "writes": lambda: zombie.produce(topic),
        "writes, version 12": lambda: zombie.produce(topic, version=12),
        "recovers": lambda: zombie.init(**mine),
    }


@pytest.mark.parametrize("end_version", [_OLD_END, _NEW_END])
def test_a_new_instance_fences_the_older(target: Target, end_version: int) -> None:
    with recorded(target, f"txn_fencing_{end_version}") as (transcript, client):
        topic = transcript.stand_in(target.create_topic(), "topic")
        group = new_group(client)
        for version in (2, 5):
            zombie = Actor(client, transcript, f"id {version}")
            transcript.note(f"the first instance, version {version}", zombie.init(version))
            zombie.add({topic: [0]})
            transcript.note("it writes", zombie.produce(topic))
            heir = Actor(client, transcript, f"id {version}", of=zombie.id)
            transcript.note("the second instance while a transaction is open", heir.init(version))
            transcript.note("the view then", await_over(client, heir.id))
            transcript.note("the second instance", heir.init(version))
            for title, attempt in _attempts(zombie, topic, group, end_version).items():
                transcript.note(f"the first {title}", attempt())
            heir.add({topic: [0]})
            for version_of_write in (11, 12):
                transcript.note("the second writes", heir.produce(topic, version=version_of_write))
                transcript.note("the first writes", zombie.produce(topic, version=version_of_write))
            transcript.note("the second commits", heir.end(end_version))
            transcript.note("its view", heir.view())


def test_a_producer_recovers_within_a_transaction(target: Target) -> None:
    """KIP-360: with its own producer id and epoch it aborts what is open, and goes on with the next epoch."""
    with recorded(target, "txn_recovery") as (transcript, client):
        topic = transcript.stand_in(target.create_topic(), "topic")
        for version in (3, 4, 5):
            actor = Actor(client, transcript, f"id {version}")
            actor.init(version)
            actor.add({topic: [0]})
            actor.produce(topic)
            mine = {"producer_id": actor.producer_id, "producer_epoch": actor.epoch}
            transcript.note(f"it recovers, version {version}", actor.init(version, **mine))
            transcript.note("the view then", await_over(client, actor.id))
            transcript.note("it asks again", actor.init(version, **mine))
            actor.add({topic: [0]})
            transcript.note("it writes", actor.produce(topic))
            transcript.note("it commits", actor.end())


@pytest.mark.soak
def test_epochs_run_out(target: Target) -> None:
    """After 32,766 of them the producer gets a new producer id."""
    with recorded(target, "txn_epochs_run_out") as (transcript, client):
        topic = transcript.stand_in(target.create_topic(), "topic")
        actor = Actor(client, transcript)
        for _ in range(32_764):
            answer = await_answer(actor.init, lambda found: not found.error_code)
            if answer.producer_epoch >= 32_764:
                break
        for _ in range(4):
            actor.add({topic: [0]})
            transcript.note("the end of a transaction", actor.end(_NEW_END))
            transcript.note("its view", actor.view())
        for _ in range(2):
            transcript.note("a new start", actor.init())
