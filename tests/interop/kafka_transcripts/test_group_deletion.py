"""OffsetDelete and DeleteGroups, and what becomes of the offsets of a deleted topic."""

from mainstem.protocol.apis.k08_offset_commit import OffsetCommitRequestPartition
from mainstem.protocol.apis.k20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from mainstem.protocol.apis.k42_delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from tests.support.offset_scenario import (
    in_order,
    join,
    new_group,
    offset_commit,
    offset_delete,
    offset_fetch,
    position,
    sync,
)
from tests.support.scenario import topic_id
from tests.support.target import Target
from tests.support.transcript import Transcript
from tests.support.wire import WireClient


def _three() -> list[OffsetCommitRequestPartition]:
    return [position(index, 1 + index) for index in range(3)]


def test_offset_delete(target: Target) -> None:
    transcript = Transcript(target, "offset_delete")
    topic = transcript.stand_in(target.create_topic(partitions=3), "topic")
    other = transcript.stand_in(target.create_topic(), "other topic")
    with WireClient(target) as client:
        group = transcript.stand_in(new_group(client), "group")
        unknown = transcript.stand_in(new_group(client), "unknown group")
        client.call(offset_commit(group, {topic: _three(), other: [position(0, 9)]}), 9)
        for title, request in (
            ("nothing", offset_delete(group, {})),
            ("one partition", offset_delete(group, {topic: [1]})),
            ("the same again", offset_delete(group, {topic: [1]})),
            ("a partition twice", offset_delete(group, {topic: [0, 0]})),
            ("an unknown partition", offset_delete(group, {topic: [7]})),
            ("one of two partitions", offset_delete(group, {topic: [7, 2]})),
            ("an unknown topic", offset_delete(group, {"no-such-topic": [0]})),
            ("one of two topics", offset_delete(group, {other: [0], "no-such-topic": [0]})),
            ("no partitions", offset_delete(group, {topic: []})),
            ("no partitions of an unknown topic", offset_delete(group, {"no-such-topic": []})),
            ("an unknown group", offset_delete(unknown, {topic: [0]})),
            ("nothing of an unknown group", offset_delete(unknown, {})),
            ("an unknown group, an unknown topic", offset_delete(unknown, {"no-such-topic": [0]})),
            (
                "an unknown group, one of two topics",
                offset_delete(unknown, {"no-such-topic": [0], topic: [0]}),
            ),
            ("the empty id", offset_delete("", {topic: [0]})),
            ("the empty id, an unknown topic", offset_delete("", {"no-such-topic": [0]})),
        ):
            transcript.note(title, client.call(request))
            transcript.note("what is left", in_order(client.call(offset_fetch(group, None), 9)))
    transcript.check()


def test_offset_delete_with_members(target: Target) -> None:
    transcript = Transcript(target, "offset_delete_members")
    topic = transcript.stand_in(target.create_topic(partitions=3), "topic")
    other = transcript.stand_in(target.create_topic(), "other topic")
    with WireClient(target) as client, WireClient(target) as admin:
        for protocol_type in ("consumer", "other"):
            group = transcript.stand_in(new_group(client), "group")
            client.call(offset_commit(group, {topic: _three(), other: [position(0, 9)]}), 9)
            member, generation = join(client, group, topic, protocol_type)
            for state in ("before the assignment", "after it"):
                for title, topics in {
                    "a subscribed topic": {topic: [0]},
                    "another topic": {other: [0]},
                    "both": {topic: [1, 2, 9], other: [0]},
                }.items():
                    answer = admin.call(offset_delete(group, topics))
                    transcript.note(f"{title}, protocol type {protocol_type}, {state}", answer)
                if state == "before the assignment":
                    sync(client, group, member, generation)
            transcript.note("what is left", in_order(client.call(offset_fetch(group, None), 9)))
    transcript.check()


def test_delete_groups(target: Target) -> None:
    transcript = Transcript(target, "delete_groups")
    topic = transcript.stand_in(target.create_topic(partitions=3), "topic")
    with WireClient(target) as client, WireClient(target) as admin:
        for version in range(3):
            group = transcript.stand_in(new_group(client), "group")
            unknown = transcript.stand_in(new_group(client), "unknown group")
            busy = transcript.stand_in(new_group(client), "busy group")
            member, generation = join(client, busy, topic)
            client.call(offset_commit(group, {topic: _three()}), 9)

            def delete(title: str, *groups: str, version: int = version) -> None:
                answer = admin.call(DeleteGroupsRequest(list(groups)), version)
                transcript.note(f"{title}, version {version}", _by_name(answer))

            delete("a group in a rebalance", busy)
            sync(client, busy, member, generation)
            delete("a group with a member", busy)
            delete("nothing")
            delete("an unknown group", unknown)
            delete("three groups, one twice", group, unknown, busy, group)
            delete("the same again", group)
            transcript.note("what is left", client.call(offset_fetch(group, {topic: [0]}), 9))
    transcript.check()


def test_the_offsets_of_a_deleted_topic(target: Target) -> None:
    transcript = Transcript(target, "offsets_of_deleted_topic")
    topic = transcript.stand_in(target.create_topic(partitions=3), "topic")
    other = transcript.stand_in(target.create_topic(), "other topic")
    with WireClient(target) as client:
        group = transcript.stand_in(new_group(client), "group")
        old_id = transcript.stand_in(topic_id(client, topic), "old id")
        # Some with an id and some without.
        client.call(offset_commit(group, {topic: _three(), other: [position(0, 9)]}), 9)
        client.call(offset_commit(group, {topic: [position(2, 8)]}, retention_time_ms=10_000_000), 2)
        transcript.note("before", in_order(client.call(offset_fetch(group, None), 9)))
        gone = DeleteTopicsRequest(topics=[DeleteTopicState(topic)], timeout_ms=10_000)
        assert client.call(gone).responses[0].error_code == 0
        transcript.note_when_settled("after", lambda: in_order(client.call(offset_fetch(group, None), 9)))
        transcript.note("by its id", client.call(offset_fetch(group, {old_id: [0]}), 10))
        transcript.note("by its name", client.call(offset_fetch(group, {topic: [0]}), 9))
        target.create_topic(topic, partitions=3)
        transcript.stand_in(topic_id(client, topic), "new id")
        transcript.note("after its return", client.call(offset_fetch(group, {topic: [0, 2]}), 9))
    transcript.check()


def _by_name(answer: DeleteGroupsResponse) -> DeleteGroupsResponse:
    """They come in the order of a hash table."""
    answer.results.sort(key=lambda result: (result.error_code, result.group_id))
    return answer
