"""The consumer protocol (KIP-848) on the wire: heartbeats in both versions, right and wrong; descriptions."""

from typing import Any

from mainstem.protocol.apis.k16_list_groups import ListGroupsRequest
from mainstem.protocol.apis.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from mainstem.protocol.apis.k42_delete_groups import DeleteGroupsRequest
from mainstem.protocol.apis.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.support.consumer_group_scenario import (
    GroupMember,
    alter_group,
    describe,
    new_prompt_group,
    owned,
)
from tests.support.offset_scenario import new_group, offset_commit, offset_fetch, position
from tests.support.scenario import topic_id
from tests.support.target import Target, unique_name, when_settled
from tests.support.transcript import Transcript
from tests.support.wire import WireClient


def test_heartbeats_that_no_client_should_send(target: Target) -> None:
    transcript = Transcript(target, "consumer_heartbeat_odd_values")
    topic = transcript.stand_in(target.create_topic(), "topic")
    with WireClient(target) as client:
        group = transcript.stand_in(new_group(client), "group")
        identity = transcript.stand_in(topic_id(client, topic), "topic id")
        good: dict[str, Any] = {
            "group_id": group,
            "member_id": "member",
            "rebalance_timeout_ms": 60_000,
            "subscribed_topic_names": [topic],
            "topic_partitions": [],
        }
        odd: dict[str, dict[str, Any]] = {
            "no member id": {"member_id": ""},
            "a blank member id": {"member_id": " \t"},
            "no group id": {"group_id": ""},
            "a blank group id": {"group_id": " "},
            "an empty instance id": {"instance_id": ""},
            "an empty rack": {"rack_id": ""},
            "no rebalance timeout": {"rebalance_timeout_ms": -1},
            "owned partitions left out": {"topic_partitions": None},
            "owned partitions in a join": {"topic_partitions": owned(identity, 0)},
            "no subscription": {"subscribed_topic_names": None},
            "epoch -2 without an instance id": {"member_epoch": -2},
            "epoch -3": {"member_epoch": -3},
            "an assignor that is not there": {"server_assignor": "sticky"},
            "an empty name of an assignor": {"server_assignor": ""},
            "a group that is not there": {"member_epoch": 3},
            "leaving a group that is not there": {"member_epoch": -1},
            "leaving it for a while": {"member_epoch": -2, "instance_id": "instance"},
            "a pattern that is none": {"subscribed_topic_names": None, "subscribed_topic_regex": "a("},
        }
        for title, fields in odd.items():
            for version in (0, 1):
                if version == 0 and "subscribed_topic_regex" in fields:
                    continue
                if version == 0 and title in ("no member id", "a blank member id"):
                    continue  # where the coordinator makes the id
                request = ConsumerGroupHeartbeatRequest(**good | fields)
                transcript.note(f"{title}, version {version}", client.call(request, version))
        transcript.note("the group was not made", describe(client, group))
    transcript.check()


def test_two_members_share_a_topic(target: Target) -> None:
    transcript = Transcript(target, "consumer_heartbeat")
    topic = transcript.stand_in(target.create_topic(partitions=4), "topic")
    with WireClient(target) as client:
        group = transcript.stand_in(new_prompt_group(client), "group")
        identity = transcript.stand_in(topic_id(client, topic), "topic id")
        first, second = (GroupMember(client, group, name) for name in ("first", "second"))
        transcript.note("the first one joins", first.join(topic))
        transcript.note("describe", describe(client, group))
        transcript.note("it has nothing new to say", first.beat())
        transcript.note("it repeats everything", first.beat(**_full(topic, owned(identity, 0, 1, 2, 3))))
        transcript.note("the second one joins", second.join(topic))
        transcript.note("describe", describe(client, group))
        transcript.note("the second one waits", second.beat())
        transcript.note("the first one hears of it", first.beat(topic_partitions=owned(identity, 0, 1, 2, 3)))
        transcript.note("it has not let go yet", first.beat(topic_partitions=owned(identity, 0, 1, 2, 3)))
        transcript.note("describe", describe(client, group))
        kept = describe(client, group).groups[0].members[0].target_assignment.topic_partitions[0].partitions
        transcript.note("it has let go", first.beat(topic_partitions=owned(identity, *kept)))
        transcript.note("the second one gets them", second.beat())
        transcript.note("describe", describe(client, group))
        transcript.note("the first one leaves", first.leave())
        transcript.note("it has left", first.beat())
        transcript.note("it cannot leave twice", first.leave())
        transcript.note("describe", describe(client, group))
        transcript.note("the second one gets the rest", second.beat())
        transcript.note("and leaves", second.leave())
        transcript.note("describe the empty group", describe(client, group))
        transcript.note("another one joins", first.join(topic))
        transcript.note("it joins again with epoch 0", first.join(topic))
        transcript.note("and cannot be deleted", client.call(DeleteGroupsRequest([group])))
        listed = client.call(ListGroupsRequest())
        transcript.note(
            "listed",
            repr(
                [(g.protocol_type, g.group_state, g.group_type) for g in listed.groups if g.group_id == group]
            ),
        )
        first.leave()
        transcript.note("the empty one can", client.call(DeleteGroupsRequest([group])))
        transcript.note("describe", describe(client, group))
    transcript.check()


def test_epochs_that_do_not_fit(target: Target) -> None:
    transcript = Transcript(target, "consumer_heartbeat_epochs")
    topic = transcript.stand_in(target.create_topic(partitions=2), "topic")
    with WireClient(target) as client:
        group = transcript.stand_in(new_prompt_group(client), "group")
        identity = transcript.stand_in(topic_id(client, topic), "topic id")
        member, other = GroupMember(client, group, "member"), GroupMember(client, group, "other")
        transcript.note("join", member.join(topic))
        transcript.note("an epoch too new", member.beat(member_epoch=member.epoch + 1))
        transcript.note("the epoch before, without saying what it owns", member.beat(member_epoch=1))
        transcript.note(
            "an id that is not there", GroupMember(client, group, "stranger").beat(member_epoch=2)
        )
        transcript.note("an id that is not there leaves", GroupMember(client, group, "stranger").leave())
        other.join(topic)
        transcript.note("member lets go", member.beat(topic_partitions=[]))
        before = member.epoch - 1
        transcript.note(
            "its answer was lost, and it says so", member.beat(member_epoch=before, topic_partitions=[])
        )
        given = owned(identity, 0, 1)
        transcript.note("it owns too much for that", member.beat(member_epoch=before, topic_partitions=given))
        transcript.note("it does not say", member.beat(member_epoch=before))
        transcript.note("two epochs before", member.beat(member_epoch=before - 1, topic_partitions=[]))
        transcript.note("all is well", member.beat())
    transcript.check()


def test_the_coordinator_makes_the_member_id_in_version_0(target: Target) -> None:
    transcript = Transcript(target, "consumer_heartbeat_version_0")
    topic = transcript.stand_in(target.create_topic(partitions=2), "topic")
    with WireClient(target) as client:
        group = transcript.stand_in(new_prompt_group(client), "group")
        transcript.stand_in(topic_id(client, topic), "topic id")
        member = GroupMember(client, group, "")
        answer = member.join(topic, version=0)
        assert answer.member_id is not None
        assert len(answer.member_id) == 22
        transcript.stand_in(answer.member_id, "member id")
        transcript.note("join", answer)
        transcript.note("describe, version 0", describe(client, group, version=0))
        transcript.note("heartbeat", member.beat(0))
        transcript.note("leave", member.leave())
    transcript.check()


def test_static_members(target: Target) -> None:
    transcript = Transcript(target, "consumer_heartbeat_static")
    topic = transcript.stand_in(target.create_topic(partitions=3), "topic")
    with WireClient(target) as client:
        group = transcript.stand_in(new_prompt_group(client), "group")
        transcript.stand_in(topic_id(client, topic), "topic id")
        member = GroupMember(client, group, "member", instance_id="instance")
        successor = GroupMember(client, group, "successor", instance_id="instance")
        transcript.note("join", member.join(topic))
        transcript.note("another one wants the instance id", successor.join(topic))
        transcript.note("it sends a heartbeat all the same", successor.beat(member_epoch=member.epoch))
        transcript.note("it cannot leave for the other", successor.leave())
        transcript.note("an instance id that is not there", member.beat(instance_id="no-such-instance"))
        transcript.note("leave for a while", member.leave(-2))
        transcript.note("describe", describe(client, group))
        transcript.note("a heartbeat of one who is away", member.beat())
        transcript.note("the successor joins", successor.join(topic))
        transcript.note("describe", describe(client, group))
        transcript.note("the first one is back too late", member.beat())
        transcript.note("and cannot leave", member.leave(-2))
        transcript.note("the successor leaves for a while", successor.leave(-2))
        transcript.note("the first one takes the place, and other topics", member.join("no-such-topic"))
        transcript.note("describe", describe(client, group))
        transcript.note("leave for good", member.leave())
        transcript.note("describe", describe(client, group))
    transcript.check()


def test_subscriptions_and_topics_that_change(target: Target) -> None:
    transcript = Transcript(target, "consumer_heartbeat_subscriptions")
    one = transcript.stand_in(target.create_topic(partitions=2), "one")
    two = transcript.stand_in(target.create_topic(partitions=2), "two")
    with WireClient(target) as client:
        group = transcript.stand_in(new_prompt_group(client), "group")
        transcript.stand_in(topic_id(client, one), "id of one")
        transcript.stand_in(topic_id(client, two), "id of two")
        member = GroupMember(client, group, "member")
        transcript.note("a topic that is not there", member.join("no-such-topic"))
        transcript.note("subscribe to one", member.beat(subscribed_topic_names=[one]))
        transcript.note("to two instead", member.beat(subscribed_topic_names=[two]))
        transcript.note("one is let go", member.beat(topic_partitions=[]))
        transcript.note("to both", repr(member.beat(subscribed_topic_names=[two, one, two]).member_epoch))
        transcript.note("describe", describe(client, group))
        transcript.note("to none", member.beat(subscribed_topic_names=[]))
        transcript.note("all is let go", member.beat(topic_partitions=[]))
        transcript.note("to one again", member.beat(subscribed_topic_names=[one]))
        client.call(CreatePartitionsRequest([CreatePartitionsTopic(one, 4, None)], 30_000))
        grown = when_settled(member.beat, lambda answer: answer.assignment is not None)
        transcript.note("one grows", grown)
        admin = target.admin()
        admin.delete_topics([one])[one].result(30)
        gone = when_settled(member.beat, lambda answer: answer.assignment is not None)
        transcript.note("one is deleted", gone)
        transcript.note("describe", describe(client, group))
    transcript.check()


def test_assignors_racks_and_clients(target: Target) -> None:
    transcript = Transcript(target, "consumer_heartbeat_assignors")
    topic = transcript.stand_in(target.create_topic(partitions=4), "topic")
    with WireClient(target) as client:
        group = transcript.stand_in(new_prompt_group(client), "group")
        transcript.stand_in(topic_id(client, topic), "topic id")
        first = GroupMember(client, group, "first")
        transcript.note("range", first.join(topic, server_assignor="range", rack_id="rack"))
        transcript.note("describe", describe(client, group, include_authorized_operations=True))
        transcript.note("uniform from now on", first.beat(server_assignor="uniform"))
        transcript.note("describe", describe(client, group))
        transcript.note("another rack", first.beat(rack_id="other-rack"))
        transcript.note("another rebalance timeout", first.beat(rebalance_timeout_ms=1000))
        second = GroupMember(client, group, "second")
        second.join(topic, server_assignor="range")
        transcript.note("two assignors, one member each: no new epoch from the name alone", first.beat())
        missing = transcript.stand_in(unique_name("group"), "no such group")
        transcript.note("describe several", describe(client, missing, group, missing))
    transcript.check()


def test_a_setting_of_a_live_group(target: Target) -> None:
    transcript = Transcript(target, "consumer_heartbeat_settings")
    topic = transcript.stand_in(target.create_topic(), "topic")
    with WireClient(target) as client:
        group = transcript.stand_in(new_prompt_group(client), "group")
        transcript.stand_in(topic_id(client, topic), "topic id")
        member = GroupMember(client, group, "member")
        transcript.note("join", member.join(topic))
        alter_group(client, group, "consumer.heartbeat.interval.ms", "6000")
        changed = when_settled(member.beat, lambda answer: answer.heartbeat_interval_ms == 6000)
        transcript.note("another interval", changed)
    transcript.check()


def test_patterns(target: Target) -> None:
    transcript = Transcript(target, "consumer_heartbeat_patterns")
    prefix = unique_name("pattern")
    one = transcript.stand_in(target.create_topic(f"{prefix}-one", partitions=2), "one")
    target.create_topic(f"other-{prefix}-two")
    pattern = transcript.stand_in(f"{prefix}-.*", "pattern")
    with WireClient(target) as client:
        group = transcript.stand_in(new_prompt_group(client), "group")
        transcript.stand_in(topic_id(client, one), "id of one")
        member, other = GroupMember(client, group, "member"), GroupMember(client, group, "other")
        transcript.note("join", member.join(subscribed_topic_regex=pattern))
        matched = when_settled(member.beat, lambda answer: answer.assignment is not None)
        transcript.note("the pattern is resolved", matched)
        transcript.note("describe", describe(client, group))
        transcript.note("another one has the same pattern", other.join(subscribed_topic_regex=pattern))
        transcript.note("the first one gives up its share", member.beat(topic_partitions=[]))
        transcript.note("what the other one gets", other.beat())
        transcript.note(
            "by name instead", other.beat(subscribed_topic_regex="", subscribed_topic_names=[one])
        )
        transcript.note("describe", describe(client, group))
        transcript.note("neither", member.beat(subscribed_topic_regex=""))
        transcript.note("a pattern that is none", member.beat(subscribed_topic_regex="[z-a"))
        transcript.note(
            "names and no pattern in a join",
            member.join(subscribed_topic_names=[], subscribed_topic_regex=None),
        )
    transcript.check()


def test_offsets_of_members(target: Target) -> None:
    transcript = Transcript(target, "consumer_group_offsets")
    topic = transcript.stand_in(target.create_topic(partitions=2), "topic")
    with WireClient(target) as client:
        group = transcript.stand_in(new_prompt_group(client), "group")
        identity = transcript.stand_in(topic_id(client, topic), "topic id")
        member, other = GroupMember(client, group, "member"), GroupMember(client, group, "other")
        member.join(topic)

        def commit(title: str, *partitions: int, version: int = 9, **fields: Any) -> None:
            places = [position(partition, 7) for partition in partitions]
            answer = client.call(offset_commit(group, {topic: places}, **fields), version)
            transcript.note(title, answer)

        commit("a commit of the member", 0, 1, generation=member.epoch, member="member")
        commit("in a version too old for it", 0, generation=member.epoch, member="member", version=8)
        commit("with an epoch too new", 0, generation=member.epoch + 1, member="member")
        commit("of a stranger", 0, generation=member.epoch, member="stranger")
        commit("of nobody", 0)
        other.join(topic)
        kept = (
            describe(client, group).groups[0].members[0].target_assignment.topic_partitions[0].partitions[0]
        )
        answer = member.beat(topic_partitions=owned(identity, 0, 1))
        commit("while it has to give one up", 0, 1, generation=answer.member_epoch, member="member")
        member.beat(topic_partitions=owned(identity, kept))
        commit(
            "with the epoch before, of what it has kept", kept, generation=member.epoch - 1, member="member"
        )
        commit("with that epoch, of what it gave up", 1 - kept, generation=member.epoch - 1, member="member")
        commit("of both", 0, 1, generation=member.epoch - 1, member="member")
        commit("with a much older epoch", kept, generation=1, member="member")
        commit(
            "with the epoch of now, of what it gave up", 1 - kept, generation=member.epoch, member="member"
        )
        readers: dict[str, dict[str, Any]] = {
            "a member reads": {"member": "member", "epoch": member.epoch},
            "with the epoch before": {"member": "member", "epoch": member.epoch - 1},
            "a stranger reads": {"member": "stranger", "epoch": member.epoch},
            "nobody reads": {},
        }
        for title, fields in readers.items():
            transcript.note(title, client.call(offset_fetch(group, {topic: [0]}, **fields), 9))
        member.leave()
        other.leave()
        commit("nobody commits to the empty group", 0)
    transcript.check()


def _full(topic: str, partitions: list[Any]) -> dict[str, Any]:
    return {
        "rebalance_timeout_ms": 300_000,
        "subscribed_topic_names": [topic],
        "topic_partitions": partitions,
    }
