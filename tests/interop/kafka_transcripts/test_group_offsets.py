"""OffsetCommit and OffsetFetch in every version, and with what no client should send."""

from collections import Counter
from typing import Any

import pytest

from mainstem.protocol.apis.k08_offset_commit import OffsetCommitResponse
from mainstem.protocol.apis.k09_offset_fetch import OffsetFetchRequest
from mainstem.protocol.apis.k42_delete_groups import DeleteGroupsRequest
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.uuids import ZERO_UUID
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
from tests.support.target import Target, unique_name
from tests.support.transcript import Transcript
from tests.support.wire import WireClient

UNKNOWN_ID = b"\x12" * 16


def test_offset_commit_versions(target: Target) -> None:
    transcript = Transcript(target, "offset_commit_versions")
    topic = transcript.stand_in(target.create_topic(partitions=4), "topic")
    with WireClient(target) as client:
        identity = transcript.stand_in(topic_id(client, topic), "topic id")
        for version in range(2, 11):
            group = transcript.stand_in(new_group(client), "group")
            name = topic if version < 10 else identity
            fields = {"retention_time_ms": 3_600_000} if version < 5 else {}
            places = [position(3, 40, "three", 7), position(1, 20, None), position(2, 30, "", 0)]
            answer = client.call(offset_commit(group, {name: places}, **fields), version)
            transcript.note(f"commit, version {version}", answer)
            transcript.note("read", client.call(offset_fetch(group, {topic: [0, 1, 2, 3]}), 9))
            answer = client.call(offset_commit(group, {name: [position(3, 39)]}), version)
            transcript.note("commit backwards", answer)
            transcript.note("read again", client.call(offset_fetch(group, {topic: [3]}), 9))
    transcript.check()


def test_offset_fetch_versions(target: Target) -> None:
    transcript = Transcript(target, "offset_fetch_versions")
    topic = transcript.stand_in(target.create_topic(partitions=3), "topic")
    with WireClient(target) as client:
        identity = transcript.stand_in(topic_id(client, topic), "topic id")
        group = transcript.stand_in(new_group(client), "group")
        transcript.stand_in(UNKNOWN_ID, "unknown id")
        empty_group = transcript.stand_in(new_group(client), "unknown group")
        client.call(offset_commit(group, {topic: [position(0, 5, "note", 2), position(2, 6)]}), 9)
        for version in range(1, 11):
            name = topic if version < 10 else identity
            for title, request in {
                "three partitions": offset_fetch(group, {name: [0, 1, 2]}),
                "a partition that is not there": offset_fetch(group, {name: [0, 9]}),
                "a partition twice": offset_fetch(group, {name: [0, 0]}),
                "no topics": offset_fetch(group, {}),
                "all topics": offset_fetch(group, None),
                "an unknown group": offset_fetch(empty_group, {name: [0]}),
                "all topics of an unknown group": offset_fetch(empty_group, None),
                "stable offsets": offset_fetch(group, {name: [0]}, stable=True),
                "an unknown topic": offset_fetch(
                    group, {"no-such-topic" if version < 10 else UNKNOWN_ID: [0], name: [0]}
                ),
            }.items():
                if (version == 1 and request.topics is None) or (version < 7 and request.require_stable):
                    continue
                answer = client.call(request, version)
                transcript.note(
                    f"{title}, version {version}", answer if request.topics is not None else in_order(answer)
                )
        transcript.note("the zero id", client.call(offset_fetch(group, {ZERO_UUID: [0]}), 10))
        for version in (8, 9, 10):
            name = topic if version < 10 else identity
            several = OffsetFetchRequest(
                groups=[
                    *offset_fetch(group, {name: [0]}).groups,
                    *offset_fetch(empty_group, {name: [0]}).groups,
                    *offset_fetch(group, None).groups,
                ]
            )
            transcript.note(f"several groups, version {version}", in_order(client.call(several, version)))
        transcript.note("no groups", client.call(OffsetFetchRequest(), 10))
    transcript.check()


def test_offset_commit_of_what_is_not_there(target: Target) -> None:
    transcript = Transcript(target, "offset_commit_unknown")
    topic = transcript.stand_in(target.create_topic(partitions=2), "topic")
    other = transcript.stand_in(target.create_topic(), "other topic")
    with WireClient(target) as client:
        identity = transcript.stand_in(topic_id(client, topic), "topic id")
        other_id = transcript.stand_in(topic_id(client, other), "other id")
        transcript.stand_in(UNKNOWN_ID, "unknown id")
        group = transcript.stand_in(new_group(client), "group")
        here = [position(0, 1), position(1, 1)]
        for title, version, request in (
            ("unknown topic", 9, offset_commit(group, {"no-such-topic": here})),
            ("unknown partition", 9, offset_commit(group, {topic: [position(2, 1)]})),
            ("partition -1", 9, offset_commit(group, {topic: [position(-1, 1)]})),
            ("one of two partitions", 9, offset_commit(group, {topic: [position(0, 1), position(7, 1)]})),
            ("one of two topics", 9, offset_commit(group, {"no-such-topic": here, other: [position(0, 1)]})),
            (
                "the other of two topics",
                9,
                offset_commit(group, {other: [position()], "no-such-topic": here}),
            ),
            ("unknown id", 10, offset_commit(group, {UNKNOWN_ID: here})),
            ("zero id", 10, offset_commit(group, {ZERO_UUID: here})),
            ("one of two ids", 10, offset_commit(group, {identity: here, UNKNOWN_ID: here})),
            ("one of two, by id", 10, offset_commit(group, {other_id: here, identity: here})),
            ("a partition twice", 9, offset_commit(group, {topic: [position(0, 1), position(0, 2)]})),
            ("no partitions", 9, offset_commit(group, {topic: []})),
            ("no topics", 9, offset_commit(group, {})),
            ("an internal topic", 9, offset_commit(group, {"__consumer_offsets": [position(0, 1)]})),
        ):
            transcript.note(title, client.call(request, version))
        transcript.note("what is there now", client.call(offset_fetch(group, {topic: [0, 1], other: [0]}), 9))
    transcript.check()


def test_offset_commit_of_odd_values(target: Target) -> None:
    transcript = Transcript(target, "offset_commit_odd_values")
    topic = transcript.stand_in(target.create_topic(partitions=3), "topic")
    with WireClient(target) as client:
        group = transcript.stand_in(new_group(client), "group")
        clef = "\N{MUSICAL SYMBOL G CLEF}"
        notes = {"4096 letters": "n" * 4096, "2048 clefs": clef * 2048}
        for name, text in notes.items():
            transcript.stand_in(text, name)
        for title, places in {
            "offset -1": [position(0, -1)],
            "offset -5": [position(0, -5)],
            "the largest offset": [position(0, 2**63 - 1)],
            "leader epoch -7": [position(0, 1, "", -7)],
            "a note of 4096 letters": [position(1, 1, notes["4096 letters"])],
            "a note of 4097 letters": [position(1, 2, "n" * 4097)],
            "4096 letters that take 8192 bytes": [
                position(1, 2, transcript.stand_in("\xe9" * 4096, "4096 e"))
            ],
            "a note of 2048 clefs": [position(1, 3, notes["2048 clefs"])],
            "a note of 2049 clefs": [position(1, 4, clef * 2049)],
            "one of two too large": [position(0, 8), position(1, 8, "n" * 4097), position(2, 8)],
        }.items():
            transcript.note(title, client.call(offset_commit(group, {topic: places}), 9))
            transcript.note("what is there now", client.call(offset_fetch(group, {topic: [0, 1, 2]}), 9))
        only = transcript.stand_in(new_group(client), "another group")
        request = offset_commit(only, {topic: [position(0, 1, "n" * 4097)]})
        transcript.note("too large, and nothing else", client.call(request, 9))
        transcript.note("its group", client.call(offset_fetch(only, None), 9))
    transcript.check()


def test_offset_commit_to_odd_groups(target: Target) -> None:
    transcript = Transcript(target, "offset_commit_odd_groups")
    topic = transcript.stand_in(target.create_topic(), "topic")
    place = {topic: [position(0, 3)]}
    with WireClient(target) as client:
        for title, group in {
            "the empty id": new_group(client, ""),
            "an id of 250 letters": new_group(client, unique_name("group").ljust(250, "g")),
            "an id with odd letters": new_group(client, unique_name("\N{SNOWMAN} / \0")),
        }.items():
            transcript.stand_in(group, "group")
            for version in (2, 9):
                answer = client.call(offset_commit(group, place), version)
                transcript.note(f"{title}, version {version}", answer)
            transcript.note("read", client.call(offset_fetch(group, {topic: [0]}), 9))
        unknown = transcript.stand_in(new_group(client), "unknown group")
        for version in (8, 9):
            for generation in (0, 5):
                answer = client.call(offset_commit(unknown, place, generation=generation), version)
                transcript.note(f"generation {generation} of an unknown group, version {version}", answer)
        simple = transcript.stand_in(new_group(client), "simple group")
        odd_fields: tuple[dict[str, Any], ...] = (
            {"member": "member"},
            {"generation": -2},
            {"generation": 0},
            {"generation": 1, "member": "member"},
            {"instance": "instance"},
            {"generation": 1, "member": "member", "instance": "instance"},
        )
        for fields in odd_fields:
            transcript.note(
                f"{fields} of a simple group", client.call(offset_commit(simple, place, **fields), 9)
            )
    transcript.check()


def test_offset_commit_of_members(target: Target) -> None:
    """With a member of the classic protocol in the group."""
    transcript = Transcript(target, "offset_commit_members")
    topic = transcript.stand_in(target.create_topic(), "topic")
    place = {topic: [position(0, 3)]}
    with WireClient(target) as client, WireClient(target) as other:
        group = transcript.stand_in(new_group(client), "group")
        member, generation = join(client, group, topic)
        mine = {"generation": generation, "member": member}
        commit = client.call(offset_commit(group, place, **mine), 9)
        transcript.note("a commit before the assignment", commit)
        sync(client, group, member, generation)
        members: dict[str, dict[str, Any]] = {
            "a member": mine,
            "no member": {},
            "an unknown member": {"generation": generation, "member": "unknown"},
            "a member with the last generation": {"generation": generation - 1, "member": member},
            "a member with the next generation": {"generation": generation + 1, "member": member},
            "a member without generation": {"member": member},
            "a member with an unknown instance": {**mine, "instance": "instance"},
            "an unknown instance": {"instance": "instance"},
        }
        for title, fields in members.items():
            for version in (2, 8, 9):
                answer = other.call(offset_commit(group, place, **fields), version)
                transcript.note(f"{title}, version {version}", answer)
        for title, request in {
            "read without member": offset_fetch(group, {topic: [0]}),
            "read as a member": offset_fetch(group, {topic: [0]}, member=member, epoch=generation),
            "read as an unknown member": offset_fetch(group, {topic: [0]}, member="unknown", epoch=9),
        }.items():
            transcript.note(title, client.call(request, 9))
    transcript.check()


def test_offsets_of_members_of_the_consumer_protocol(target: Target) -> None:
    transcript = Transcript(target, "offset_commit_consumer_protocol")
    topic = transcript.stand_in(target.create_topic(), "topic")
    with WireClient(target) as client:
        identity = transcript.stand_in(topic_id(client, topic), "topic id")
        group = transcript.stand_in(new_group(client), "group")
        member, epoch = join_consumer_protocol(client, group, topic)
        mine = {"generation": epoch, "member": member}
        members: dict[str, dict[str, Any]] = {
            "a member": mine,
            "no member": {},
            "an unknown member": {**mine, "member": "unknown"},
            "a member before it had the partition": {**mine, "generation": epoch - 1},
            "a member with a later epoch": {**mine, "generation": epoch + 1},
            "a member without epoch": {"member": member},
            "an instance": {**mine, "instance": "instance"},
        }
        for version in (8, 9, 10):
            name = topic if version < 10 else identity
            for title, fields in members.items():
                answer = client.call(offset_commit(group, {name: [position(0, 3)]}, **fields), version)
                transcript.note(f"{title}, version {version}", answer)
            readers: dict[str, dict[str, Any]] = {
                "read without member": {},
                "read as a member": {"member": member, "epoch": epoch},
                "read as an unknown member": {"member": "unknown", "epoch": epoch},
                "read with an earlier epoch": {"member": member, "epoch": epoch - 1},
                "read with a later epoch": {"member": member, "epoch": epoch + 1},
                "read without epoch": {"member": member},
            }
            for title, reader in readers.items():
                answer = client.call(offset_fetch(group, {name: [0]}, **reader), version)
                transcript.note(f"{title}, version {version}", answer)
        transcript.note("delete a subscribed offset", client.call(offset_delete(group, {topic: [0]})))
        transcript.note("delete the group", client.call(DeleteGroupsRequest([group])))
    transcript.check()


def test_a_group_id_that_no_log_can_hold_costs_the_connection(target: Target) -> None:
    topic = target.create_topic()
    with WireClient(target) as client:
        new_group(client)
        client.send(offset_commit("g" * 32_768, {topic: [position(0, 3)]}), 9)
        assert client.is_closed_by_broker()


@pytest.mark.parametrize("note", ["", "n" * 100])
def test_ten_thousand_partitions_in_one_commit(target: Target, note: str) -> None:
    """More of them than the log takes in one batch are refused whole."""
    transcript = Transcript(target, f"offset_commit_large_{len(note)}")
    topic = transcript.stand_in(target.create_topic(partitions=20), "topic")
    with WireClient(target) as client:
        group = transcript.stand_in(new_group(client), "group")
        request = offset_commit(group, {topic: [position(n % 20, n, note) for n in range(10_000)]})
        transcript.note("10,000 partitions", _summary(client.call(request, 9)))
        transcript.note("what is there now", client.call(offset_fetch(group, {topic: list(range(20))}), 9))
        request = offset_commit(group, {topic: [position(n, n) for n in range(10_000)]})
        transcript.note("10,000 partitions, 9,980 unknown", _summary(client.call(request, 9)))
    transcript.check()


def _summary(answer: OffsetCommitResponse) -> str:
    """How many partitions got which answer, in the order in which they came."""
    codes = Counter(ErrorCode(part.error_code).name for topic in answer.topics for part in topic.partitions)
    indexes = [part.partition_index for topic in answer.topics for part in topic.partitions]
    first = ", ".join(map(str, indexes[:3]))
    return f"{len(answer.topics)} topic, {dict(codes)}, beginning with {first}"
