"""Groups that move between the classic and the consumer protocol while they are live, and members of both in
one group, on the wire.
"""

from typing import Any

from mainstem.coordinator.group.embedded_protocol import (
    EmbeddedAssignment,
    EmbeddedPartitions,
    Subscription,
    read_assignment,
)
from mainstem.protocol import codec
from mainstem.protocol.apis.k11_join_group import JoinGroupRequestProtocol
from mainstem.protocol.errors import ErrorCode
from tests.support import classic_scenario
from tests.support.classic_scenario import ClassicMember, await_state, leave_request
from tests.support.consumer_group_scenario import GroupMember, describe, new_prompt_group
from tests.support.scenario import topic_id
from tests.support.target import Target
from tests.support.transcript import Transcript
from tests.support.wire import WireClient


def protocols(**metadata: bytes) -> list[JoinGroupRequestProtocol]:
    return [JoinGroupRequestProtocol(name, data) for name, data in metadata.items()]


def subscription(topic: str, *partitions: int, version: int = 3) -> bytes:
    """A consumer that has these partitions of its topic."""
    has = [EmbeddedPartitions(topic, list(partitions))] if partitions else []
    return version.to_bytes(2, "big") + codec.encode(Subscription([topic], None, has), version)


def assignment(topic: str, *partitions: int, user_data: bytes | None = None) -> bytes:
    message = EmbeddedAssignment([EmbeddedPartitions(topic, list(partitions))], user_data)
    return b"\0\3" + codec.encode(message, 3)


def synced(member: ClassicMember, **fields: Any) -> str:
    """A sync, and what it says in words."""
    answer = member.sync(**fields)
    code = ErrorCode(answer.error_code)
    if code:
        return code.name
    assigned = read_assignment(answer.assignment)
    topics = [sorted(topic.partitions) for topic in assigned.assigned_partitions]
    version = int.from_bytes(answer.assignment[:2], "big")
    return f"{code.name} {answer.protocol_type} {answer.protocol_name} {topics}, version {version}"


def described_assignment(answer: Any) -> Any:
    """DescribeGroups, with what members say about themselves in words."""
    for group in answer.groups:
        for member in group.members:
            member.member_metadata = b"metadata" if member.member_metadata else b""
            if member.member_assignment:
                topics = read_assignment(member.member_assignment).assigned_partitions
                member.member_assignment = repr([sorted(topic.partitions) for topic in topics]).encode()
        group.members.sort(key=lambda member: member.member_id)
    return answer


def test_there_and_back(target: Target) -> None:
    transcript = Transcript(target, "group_migration")
    topic = transcript.stand_in(target.create_topic(partitions=4), "topic")
    with WireClient(target) as client:
        group = transcript.stand_in(new_prompt_group(client), "group")
        transcript.stand_in(topic_id(client, topic), "topic id")
        offered = {"protocols": protocols(range=subscription(topic))}
        with ClassicMember(target, transcript, group, "classic", **offered) as classic:
            classic.get_id()
            classic.join()
            classic.sync({classic.member_id: assignment(topic, 0, 1, 2, 3)})
            member = GroupMember(client, group, "member")
            transcript.note("a consumer member joins the stable group", member.join(topic))
            transcript.note("describe", describe(client, group))
            transcript.note("describe as a classic group", classic_scenario.describe(client, group))
            transcript.note("the classic one has to join", classic.heartbeat())
            transcript.note("its sync is refused", synced(classic))
            has_all: dict[str, Any] = {"protocols": protocols(range=subscription(topic, 0, 1, 2, 3))}
            transcript.note("it joins, and has all", classic.join(**has_all))
            transcript.note("it is told what to keep", synced(classic))
            transcript.note("and still has to give up the rest", classic.heartbeat())
            kept: dict[str, Any] = {"protocols": protocols(range=subscription(topic, 0, 1))}
            transcript.note("it joins without the rest", classic.join(**kept))
            transcript.note("the one of now", synced(classic))
            transcript.note("all is well", classic.heartbeat())
            transcript.note("the consumer member gets its share", member.beat())
            transcript.note("describe", describe(client, group))
            transcript.note("the consumer member leaves", member.leave())
            described = classic_scenario.describe(client, group)
            transcript.note("the group is classic again", described_assignment(described))
            transcript.note("describe as a consumer group", describe(client, group))
            transcript.note("the classic one has to join", classic.heartbeat())
            transcript.note("a consumer member cannot go on", member.beat())
            transcript.note("it joins and is the leader", _without_members(classic.join(**kept)))
            everything = {classic.member_id: assignment(topic, 0, 1, 2, 3)}
            transcript.note("the sync of a leader", synced(classic, assignments=everything))
            transcript.note("all is well again", classic.heartbeat())
    transcript.check()


def test_a_group_that_is_rebalancing(target: Target) -> None:
    transcript = Transcript(target, "group_migration_rebalancing")
    topic = transcript.stand_in(target.create_topic(partitions=2), "topic")
    with WireClient(target) as client:
        group = transcript.stand_in(new_prompt_group(client), "group")
        transcript.stand_in(topic_id(client, topic), "topic id")
        offered = {"protocols": protocols(range=subscription(topic))}
        with (
            ClassicMember(target, transcript, group, "first", **offered) as first,
            ClassicMember(target, transcript, group, "second", **offered) as second,
        ):
            first.get_id()
            first.join()
            first.sync({first.member_id: assignment(topic, 0, 1)})
            second.get_id()
            second.send_join()
            await_state(client, group, "PreparingRebalance")
            member = GroupMember(client, group, "member")
            transcript.note("a consumer member joins", member.join(topic))
            transcript.note("whoever waited has to ask again", second.joined())
            transcript.note("the second one joins", second.join())
            transcript.note("and syncs", synced(second))
            transcript.note("the first one hears of it", first.heartbeat())
    transcript.check()


def test_groups_that_cannot_move(target: Target) -> None:
    transcript = Transcript(target, "group_migration_refused")
    topic = transcript.stand_in(target.create_topic(partitions=2), "topic")
    with WireClient(target) as client:
        transcript.stand_in(topic_id(client, topic), "topic id")
        for title, fields, assigned in (
            ("a group that is not of consumers", {"protocol_type": "connect"}, b""),
            ("an assignor with data of its own", {}, assignment(topic, 0, user_data=b"data")),
            ("an assignment that cannot be read", {}, b"\xff\xff"),
            ("an empty assignment", {}, b""),
        ):
            group = transcript.stand_in(new_prompt_group(client), "group")
            offered = {"protocols": protocols(range=subscription(topic)), **fields}
            with ClassicMember(target, transcript, group, "classic", **offered) as classic:
                classic.get_id()
                classic.join()
                sync_fields: dict[str, Any] = {"protocol_type": fields.get("protocol_type", "consumer")}
                classic.sync({classic.member_id: assigned}, **sync_fields)
                member = GroupMember(client, group, "member")
                transcript.note(title, _share(member.join(topic)))
                transcript.note("a heartbeat to a classic group", member.beat(member_epoch=4))
                transcript.note("leaving a classic group", member.leave())
                transcript.note("the classic member", classic.heartbeat())
                classic.leave()
        group = transcript.stand_in(new_prompt_group(client), "group")
        offered = {"protocols": protocols(range=subscription(topic))}
        with ClassicMember(target, transcript, group, "empty", **offered) as classic:
            classic.get_id()
            classic.join()
            classic.leave()
            await_state(client, group, "Empty")
            member = GroupMember(client, group, "member")
            transcript.note("an empty classic group", member.join(topic))
            transcript.note("is a consumer group", describe(client, group))
            member.leave()
            transcript.note(
                "and a classic one again", _without_members(ClassicMember.join(classic, member_id=""))
            )
    transcript.check()


def test_a_classic_member_in_a_consumer_group(target: Target) -> None:
    transcript = Transcript(target, "group_migration_classic_member")
    topic = transcript.stand_in(target.create_topic(partitions=2), "topic")
    with WireClient(target) as client:
        group = transcript.stand_in(new_prompt_group(client), "group")
        transcript.stand_in(topic_id(client, topic), "topic id")
        member = GroupMember(client, group, "member")
        member.join(topic)
        offered = {"protocols": protocols(range=subscription(topic), sticky=subscription(topic))}
        with ClassicMember(target, transcript, group, "classic", **offered) as classic:
            _note_odd_joins(transcript, classic)
            transcript.note("a classic one joins", classic.join())
            transcript.note("with its id", classic.join())
            transcript.note("describe", describe(client, group))
            _note_syncs_and_heartbeats(transcript, classic)
            with ClassicMember(
                target, transcript, group, "other", protocols=protocols(other=subscription(topic))
            ) as other:
                transcript.note("one with another protocol", other.join())
            transcript.note("the consumer member gives one up", member.beat(topic_partitions=[]))
            transcript.note("so there is something to join for", classic.heartbeat())
            transcript.note("join", classic.join())
            transcript.note("sync", synced(classic))
            transcript.note(
                "an offer of its second protocol alone",
                classic.join(protocols=protocols(sticky=subscription(topic))),
            )
            transcript.note(
                "a classic member goes over to the other protocol",
                GroupMember(client, group, classic.member_id).join(topic),
            )
            transcript.note("and is no classic one any more", classic.heartbeat())
            leaving = leave_request(group, ("stranger", None), (classic.member_id, None), ("", "instance"))
            transcript.note("leave", client.call(leaving))
            transcript.note(
                "leave in an old version", client.call(leave_request(group, ("stranger", None)), 2)
            )
            transcript.note("leave in an old version", client.call(leave_request(group, ("member", None)), 2))
            transcript.note("describe", describe(client, group))
            transcript.note("sync to the empty group", synced(classic))
            transcript.note("heartbeat to the empty group", classic.heartbeat())
    transcript.check()


def _note_odd_joins(transcript: Transcript, classic: ClassicMember) -> None:
    odd_joins: dict[str, dict[str, Any]] = {
        "no protocols": {"protocols": []},
        "another kind of group": {"protocol_type": "connect"},
        "an id that is not there": {"member_id": "somebody", "group_instance_id": "instance"},
    }
    for title, fields in odd_joins.items():
        transcript.note(title, classic.join(**fields))
        classic.member_id = ""
    unreadable = protocols(range=b"metadata")
    transcript.note("a subscription that cannot be read", classic.join(3, protocols=unreadable))


def _note_syncs_and_heartbeats(transcript: Transcript, classic: ClassicMember) -> None:
    syncs: dict[str, dict[str, Any]] = {
        "sync with another generation": {"generation": 1},
        "sync with another protocol": {"protocol_name": "sticky"},
        "sync with another type": {"protocol_type": "connect"},
        "sync of a stranger": {"member_id": "stranger"},
        "sync of a consumer member": {"member_id": "member"},
        "sync with an instance id": {"group_instance_id": "instance"},
        "sync": {},
    }
    for title, fields in syncs.items():
        transcript.note(title, synced(classic, **fields))
    beats: dict[str, dict[str, Any]] = {
        "heartbeat with another generation": {"generation_id": 1},
        "heartbeat of a stranger": {"member_id": "stranger"},
        "heartbeat of a consumer member": {"member_id": "member"},
        "heartbeat": {},
    }
    for title, fields in beats.items():
        transcript.note(title, classic.heartbeat(**fields))


def test_static_members_that_change_the_protocol(target: Target) -> None:
    transcript = Transcript(target, "group_migration_static")
    topic = transcript.stand_in(target.create_topic(partitions=2), "topic")
    with WireClient(target) as client:
        group = transcript.stand_in(new_prompt_group(client), "group")
        transcript.stand_in(topic_id(client, topic), "topic id")
        offered = {"protocols": protocols(range=subscription(topic)), "group_instance_id": "instance"}
        with ClassicMember(target, transcript, group, "classic", **offered) as classic:
            classic.join()
            classic.sync({classic.member_id: assignment(topic, 0, 1)}, group_instance_id="instance")
            member = GroupMember(client, group, "member", instance_id="instance")
            transcript.note("the classic one comes back as a consumer member", member.join(topic))
            transcript.note("describe", describe(client, group))
            transcript.note("the classic one is fenced", classic.heartbeat(group_instance_id="instance"))
            transcript.note("and its id is not there", classic.heartbeat())
            classic.member_id = ""
            transcript.note("it comes back as a classic one", _without_members(classic.join()))
            answer = described_assignment(classic_scenario.describe(client, group))
            transcript.note("the group is classic again", answer)
            transcript.note("the consumer member is fenced", member.beat())
            transcript.note("heartbeat", classic.heartbeat(group_instance_id="instance"))
            transcript.note("sync", synced(classic, group_instance_id="instance"))
    transcript.check()


def _share(answer: Any) -> Any:
    """Where nobody has had a partition before, Kafka decides by the order of a hash table who gets which."""
    if answer.assignment is None:
        return answer
    return f"{sum(len(topic.partitions) for topic in answer.assignment.topic_partitions)} of the partitions"


def _without_members(answer: Any) -> Any:
    """What a leader is told of the others is their metadata, which holds names of topics."""
    for member in answer.members:
        member.metadata = b"metadata"
    return answer
