"""Offsets in transactions, request by request: pending, committed, aborted; who may, and who may not."""

from typing import Any

import pytest

from mainstem.protocol.apis.k42_delete_groups import DeleteGroupsRequest
from tests.support.offset_scenario import (
    in_order,
    join,
    join_consumer_protocol,
    new_group,
    offset_commit,
    offset_delete,
    offset_fetch,
    position,
    sync,
)
from tests.support.scenario import topic_id
from tests.support.target import Target
from tests.support.transaction_scenario import Actor
from tests.support.transcript import Transcript, recorded
from tests.support.wire import WireClient

# Up to this version a producer names the group beforehand, from the next on it need not.
_OLD_COMMIT, _NEW_COMMIT = 4, 5


def _note_offsets(
    transcript: Transcript, client: WireClient, group: str, topic: str, title: str, version: int = 9
) -> None:
    """What is read by those who wait for open transactions, and by those who do not."""
    for name, stable in (("stable", True), ("unstable", False)):
        answer = client.call(offset_fetch(group, {topic: [0, 1]}, stable=stable), version)
        transcript.note(f"{title}: {name}", answer)
        answer = in_order(client.call(offset_fetch(group, None, stable=stable), version))
        transcript.note(f"{title}: all, {name}", answer)


@pytest.mark.parametrize("version", range(6))
def test_offsets_of_a_transaction(target: Target, version: int) -> None:
    with recorded(target, f"txn_offsets_{version}") as (transcript, client):
        topic = transcript.stand_in(target.create_topic(partitions=2), "topic")
        group = transcript.stand_in(new_group(client), "group")
        actor = Actor(client, transcript)
        transcript.note("without a producer", actor.commit_offsets(group, {topic: {0: 3}}, version))
        actor.init()
        transcript.note("not named before", actor.commit_offsets(group, {topic: {0: 3}}, version))
        transcript.note("the group is named", actor.add_offsets(group))
        transcript.note("then", actor.commit_offsets(group, {topic: {0: 3}}, version, "note"))
        _note_offsets(transcript, client, group, topic, "open")
        transcript.note("again", actor.commit_offsets(group, {topic: {0: 4, 1: 1}}, version))
        transcript.note("the end", actor.end(_NEW_COMMIT))
        _note_offsets(transcript, client, group, topic, "committed")
        actor.add_offsets(group)
        transcript.note("the next", actor.commit_offsets(group, {topic: {0: 9}}, version, "lost"))
        _note_offsets(transcript, client, group, topic, "the next is open")
        transcript.note("it is aborted", actor.end(_NEW_COMMIT, committed=False))
        _note_offsets(transcript, client, group, topic, "aborted")
        transcript.note("after the end", actor.commit_offsets(group, {topic: {0: 9}}, version))
        transcript.note("the end", actor.end(_NEW_COMMIT, committed=False))


@pytest.mark.parametrize("version", [0, 2, 3, 4, 5])
def test_strangers_and_odd_values(target: Target, version: int) -> None:
    with recorded(target, f"txn_offsets_odd_values_{version}") as (transcript, client):
        topic = transcript.stand_in(target.create_topic(partitions=2), "topic")
        group = transcript.stand_in(new_group(client), "group")
        other = transcript.stand_in(new_group(client), "other group")
        actor = Actor(client, transcript)
        actor.init()
        actor.init()

        def step(
            title: str, offsets: dict[str, dict[int, int]], note: str | None = "", **fields: Any
        ) -> None:
            whose = fields.pop("group", group)
            answer = actor.commit_offsets(whose, offsets, version, note, **fields)
            for found in answer.topics:
                found.partitions.sort(key=lambda it: it.partition_index)
            transcript.note(title, answer)

        for state in ("before", "after"):
            for title, fields in _strangers(actor).items():
                step(f"{title}, {state} the group is named", {topic: {0: 1}}, **fields)
            actor.add_offsets(group)
        step("nothing", {})
        step("a topic without partitions", {topic: {}})
        step("an unknown partition", {topic: {0: 1, 7: 1}})
        step("an unknown topic", {topic: {0: 1}, "no-such-topic": {0: 1}})
        step("a negative partition", {topic: {-1: 1}})
        step("a negative offset", {topic: {0: -1}})
        step("a very negative offset", {topic: {0: -(2**63)}})
        step("the largest offset", {topic: {0: 2**63 - 1}})
        step("no note", {topic: {0: 1}}, None)
        step("a long note", {topic: {0: 1}}, "n" * 4096)
        step("too long a note", {topic: {0: 1, 1: 1}}, "n" * 4097)
        step("no group", {topic: {0: 1}}, group="")
        step("another group", {topic: {0: 1}}, group=other)
        transcript.note("the end", actor.end(4))
        _note_offsets(transcript, client, group, topic, "committed")
        _note_offsets(transcript, client, other, topic, "the other group")


def _strangers(actor: Actor) -> dict[str, dict[str, Any]]:
    return {
        "an unknown transactional id": {"transactional_id": "nobody"},
        "no transactional id": {"transactional_id": ""},
        "another producer id": {"producer_id": actor.producer_id + 1_000_000},
        "an earlier epoch": {"producer_epoch": actor.epoch - 1},
        "a later epoch": {"producer_epoch": actor.epoch + 1},
    }


def test_members_of_a_classic_group(target: Target) -> None:
    with recorded(target, "txn_offsets_classic_members") as (transcript, client):
        topic = transcript.stand_in(target.create_topic(), "topic")
        group = transcript.stand_in(new_group(client), "group")
        actor = Actor(client, transcript)
        actor.init()
        nobody: dict[str, Any] = {"generation_id": 1, "member_id": "unknown"}
        for version in (3, _OLD_COMMIT, _NEW_COMMIT):
            actor.add_offsets(group)
            answer = actor.commit_offsets(group, {topic: {0: 1}}, version, **nobody)
            transcript.note(f"a member of an empty group, version {version}", answer)
        member, generation = join(client, group, topic)
        mine = {"generation_id": generation, "member_id": member}
        members: dict[str, dict[str, Any]] = {
            "a member": mine,
            "no member": {},
            "an unknown member": {**mine, "member_id": "unknown"},
            "an earlier generation": {**mine, "generation_id": generation - 1},
            "a later generation": {**mine, "generation_id": generation + 1},
            "a member without generation": {"member_id": member},
            "a generation without member": {"generation_id": generation},
            "an unknown instance": {**mine, "group_instance_id": "instance"},
        }
        for state in ("rebalancing", "stable"):
            for version in (2, 3, _OLD_COMMIT, _NEW_COMMIT):
                for title, fields in members.items():
                    answer = actor.commit_offsets(group, {topic: {0: 2}}, version, **fields)
                    transcript.note(f"{title}, {state}, version {version}", answer)
            if state == "rebalancing":
                sync(client, group, member, generation)
        transcript.note("the end", actor.end())
        _note_offsets(transcript, client, group, topic, "committed")


def test_members_of_the_consumer_protocol(target: Target) -> None:
    with recorded(target, "txn_offsets_consumer_members") as (transcript, client):
        topic = transcript.stand_in(target.create_topic(), "topic")
        group = transcript.stand_in(new_group(client), "group")
        actor = Actor(client, transcript)
        actor.init()
        actor.add_offsets(group)
        member, epoch = join_consumer_protocol(client, group, topic)
        mine = {"generation_id": epoch, "member_id": member}
        members: dict[str, dict[str, Any]] = {
            "a member": mine,
            "no member": {},
            "an unknown member": {**mine, "member_id": "unknown"},
            "an earlier epoch": {**mine, "generation_id": epoch - 1},
            "a later epoch": {**mine, "generation_id": epoch + 1},
            "a member without epoch": {"member_id": member},
            "an epoch without member": {"generation_id": epoch},
            "an instance": {**mine, "group_instance_id": "instance"},
        }
        for version in (2, 3, _OLD_COMMIT, _NEW_COMMIT):
            for title, fields in members.items():
                answer = actor.commit_offsets(group, {topic: {0: 2}}, version, **fields)
                transcript.note(f"{title}, version {version}", answer)
        transcript.note("the end", actor.end())
        _note_offsets(transcript, client, group, topic, "committed")


def test_pending_offsets_beside_others(target: Target) -> None:
    """Two transactions and a plain commit of one partition; deletions while one is open."""
    with recorded(target, "txn_offsets_beside_others") as (transcript, client):
        topic = transcript.stand_in(target.create_topic(partitions=2), "topic")
        group = transcript.stand_in(new_group(client), "group")
        one, two = Actor(client, transcript, "one"), Actor(client, transcript, "two")
        one.init()
        two.init()
        transcript.note("one", one.commit_offsets(group, {topic: {0: 10}}))
        transcript.note("two", two.commit_offsets(group, {topic: {0: 20}}))
        plain = offset_commit(group, {topic: [position(0, 30)]})
        transcript.note("a plain commit", client.call(plain, 9))
        _note_offsets(transcript, client, group, topic, "both are open")
        transcript.note("two commits", two.end(5))
        _note_offsets(transcript, client, group, topic, "one is open")
        transcript.note("one commits", one.end(5))
        _note_offsets(transcript, client, group, topic, "both are over")
        transcript.note("one, again", one.commit_offsets(group, {topic: {0: 11, 1: 12}}))
        transcript.note("one offset is deleted", client.call(offset_delete(group, {topic: [0]})))
        _note_offsets(transcript, client, group, topic, "after the deletion")
        transcript.note("one commits", one.end(5))
        _note_offsets(transcript, client, group, topic, "and now")
        transcript.note("one, again", one.commit_offsets(group, {topic: {0: 13}}))
        transcript.note("the group is deleted", client.call(DeleteGroupsRequest([group])))
        _note_offsets(transcript, client, group, topic, "after the group's deletion")
        transcript.note("one commits", one.end(5))
        _note_offsets(transcript, client, group, topic, "and now")
        fresh = transcript.stand_in(new_group(client), "fresh group")
        transcript.note("a group of its own", one.commit_offsets(fresh, {topic: {0: 1}}))
        transcript.note("is deleted", client.call(DeleteGroupsRequest([fresh])))
        transcript.note("one aborts", one.end(5, committed=False))
        transcript.note("is deleted", client.call(DeleteGroupsRequest([fresh])))


def test_versions_of_reading(target: Target) -> None:
    with recorded(target, "txn_offsets_read_versions") as (transcript, client):
        topic = transcript.stand_in(target.create_topic(), "topic")
        identity = transcript.stand_in(topic_id(client, topic), "topic id")
        group = transcript.stand_in(new_group(client), "group")
        actor = Actor(client, transcript)
        actor.init()
        client.call(offset_commit(group, {topic: [position(0, 1)]}), 9)
        actor.commit_offsets(group, {topic: {0: 2}})
        for version in range(1, 11):
            name = topic if version < 10 else identity
            for stable in (True, False) if version >= 7 else (False,):
                answer = client.call(offset_fetch(group, {name: [0]}, stable=stable), version)
                transcript.note(f"version {version}, stable {stable}", answer)
        actor.end(5)
