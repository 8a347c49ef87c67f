"""Classic groups: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, DescribeGroups, ListGroups in every version,
in every state, and with what no client should send.
"""

import re
from contextlib import ExitStack
from typing import Any

from mainstem.protocol.apis.k12_heartbeat import HeartbeatRequest
from mainstem.protocol.apis.k15_describe_groups import DescribeGroupsRequest
from mainstem.protocol.apis.k16_list_groups import ListGroupsRequest
from tests.support.classic_scenario import (
    ClassicMember,
    await_state,
    describe,
    join_request,
    leave_request,
    protocols,
    sync_request,
)
from tests.support.offset_scenario import new_group
from tests.support.target import Target, unique_name
from tests.support.transcript import Transcript
from tests.support.wire import WireClient

Fields = dict[str, Any]
UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"


def listed(client: WireClient, group: str, version: int = 5, **filters: list[str]) -> Any:
    """Only this group: others have theirs at the same time."""
    answer = client.call(ListGroupsRequest(**filters), version)
    answer.groups = [entry for entry in answer.groups if entry.group_id == group]
    return answer


def test_every_version(target: Target) -> None:
    transcript = Transcript(target, "classic_group_versions")
    with WireClient(target) as client:
        for version in range(10):
            group = transcript.stand_in(new_group(client), "group")
            with ClassicMember(target, transcript, group, "member") as member:
                answer = member.join(version)
                transcript.note(f"join, version {version}", answer)
                if version >= 4:
                    transcript.note("join with the member id", member.join(version))
                assert re.fullmatch(f"wire-{UUID}", member.member_id), member.member_id
                later = min(version, 5)
                transcript.note("sync", member.sync({member.member_id: b"all"}, later))
                transcript.note("sync again", member.sync(None, later))
                transcript.note("heartbeat", member.heartbeat(min(version, 4)))
                described = describe(client, group, min(version, 6))
                transcript.stand_in(described.groups[0].members[0].client_host, "host")
                transcript.note("describe", described)
                transcript.note("list", listed(client, group, min(version, 5)))
                transcript.note("leave", member.leave(later))
                transcript.note("leave again", member.leave(later))
                transcript.note("describe, empty", describe(client, group, min(version, 6)))
                transcript.note("list, empty", listed(client, group, min(version, 5)))
    transcript.check()


def test_joins_that_are_refused(target: Target) -> None:
    transcript = Transcript(target, "classic_group_refused_joins")
    with WireClient(target) as client:
        group = transcript.stand_in(new_group(client), "group")
        for version in (3, 9):
            for title, request in {
                "no group id": join_request(""),
                "no group id, with a member id": join_request("", "somebody"),
                "session timeout too short": join_request(group, session_timeout_ms=5_999),
                "session timeout too long": join_request(group, session_timeout_ms=1_800_001),
                "session timeout negative": join_request(group, "somebody", session_timeout_ms=-1),
                "member id in a group that is not there": join_request(group, "somebody"),
            }.items():
                transcript.note(f"{title}, version {version}", client.call(request, version))
        transcript.note("the group after that", describe(client, group))
        offers: dict[str, Fields] = {
            "no protocols": {"protocols": []},
            "no protocol type": {"protocol_type": ""},
            "nothing of both": {"protocols": [], "protocol_type": ""},
        }
        for title, fields in offers.items():
            for version in (3, 9):
                group = transcript.stand_in(new_group(client), "group")
                answer = client.call(join_request(group, **fields), version)
                transcript.note(f"{title}, version {version}", answer)
                await_state(client, group, "Empty")  # Kafka answers before the group is written down
                transcript.note("the group is there", describe(client, group))
                transcript.note("with a member id", client.call(join_request(group, "x", **fields), version))
        with ClassicMember(target, transcript, group, "member") as member:
            member.join()
            member.join()
            for title, fields in _strangers(member.member_id).items():
                request = join_request(group, **({"member_id": ""} | fields))
                transcript.note(f"{title}, in a group with a member", client.call(request))
            transcript.note("the group after that", describe(client, group).groups[0].group_state)
    transcript.check()


def _strangers(member_id: str) -> dict[str, Fields]:
    return {
        "unknown member id": {"member_id": "somebody"},
        "another type": {"protocol_type": "connect"},
        "another protocol": {"protocols": protocols(roundrobin="topic")},
        "no protocols": {"protocols": []},
        "instance id with an unknown member id": {"member_id": "somebody", "group_instance_id": "nobody"},
        "instance id with a member that has none": {"member_id": member_id, "group_instance_id": "nobody"},
    }


def test_joins_that_are_unusual(target: Target) -> None:
    transcript = Transcript(target, "classic_group_unusual_joins")
    with WireClient(target) as client:
        cases: list[tuple[str, str, Fields]] = [
            ("group id of 249 characters", "g" * 230, {}),
            ("group id of 300 characters", "g" * 281, {}),
            ("group id with spaces and more", "a b/c\u00e9:*", {}),
            ("empty instance id", "", {"group_instance_id": ""}),
            ("instance id of 300 characters", "", {"group_instance_id": "i" * 300}),
            ("rebalance timeout negative", "", {"rebalance_timeout_ms": -1}),
            ("protocol name empty", "", {"protocols": protocols(**{"": "topic"})}),
            ("a reason", "", {"reason": "because"}),
        ]
        for title, name, fields in cases:
            group = transcript.stand_in(new_group(client, name + unique_name("-")), "group")
            with ClassicMember(target, transcript, group, "member") as member:
                transcript.note(title, member.join(**fields))
                if member.generation < 0:
                    transcript.note("join with the member id", member.join(**fields))
                if fields.get("rebalance_timeout_ms") == -1:
                    await_state(client, group, "Empty")  # the time to sync is over at once
                name = fields.get("protocols", protocols(range="topic"))[0].name
                transcript.note("sync", member.sync({member.member_id: b"all"}, protocol_name=name))
                transcript.note("leave", member.leave())
    transcript.check()


def test_join_in_every_state(target: Target) -> None:
    transcript = Transcript(target, "classic_group_joins")
    with WireClient(target) as client, ExitStack() as stack:
        group = transcript.stand_in(new_group(client), "group")
        a, b = (stack.enter_context(ClassicMember(target, transcript, group, name)) for name in "ab")
        transcript.note("a gets an id", a.join())
        transcript.note("join", a.join())
        transcript.note("again, completing, the leader", a.join())
        b.get_id()
        transcript.note("b has an id, and is no member", describe(client, group).groups[0].group_state)
        b.send_join()
        await_state(client, group, "PreparingRebalance", 2)
        transcript.note("a, while preparing", a.join())
        transcript.note("b was answered then", b.joined())
        transcript.note("b again, completing, nothing new", b.join())
        b.send_join(protocols=protocols(range="b new"))
        await_state(client, group, "PreparingRebalance")
        transcript.note("b with something new, and a", a.join())
        transcript.note("b", b.joined())
        transcript.note("a syncs", a.sync({a.member_id: b"A", b.member_id: b"B"}))
        transcript.note("b syncs", b.sync())
        b.fields["protocols"] = protocols(range="b new")
        transcript.note("b again, stable, nothing new", b.join())
        b.fields["protocols"] = protocols(range="b")
        b.send_join()
        await_state(client, group, "PreparingRebalance")
        transcript.note("b, stable, something new, and a", a.join())
        transcript.note("b", b.joined())
        transcript.note("a syncs", a.sync({a.member_id: b"A", b.member_id: b"B"}))
        transcript.note("b syncs", b.sync())
        a.send_join()
        await_state(client, group, "PreparingRebalance")
        transcript.note("the leader a, stable, nothing new, and b", b.join())
        transcript.note("a", a.joined())
        both = leave_request(group, (a.member_id, None), (b.member_id, None))
        transcript.note("both leave", client.call(both))
        transcript.note("a, empty", a.join())
    transcript.check()


def test_sync_and_heartbeat_in_every_state(target: Target) -> None:
    transcript = Transcript(target, "classic_group_syncs")
    with WireClient(target) as client, ExitStack() as stack:
        group = transcript.stand_in(new_group(client), "group")
        a, b = (stack.enter_context(ClassicMember(target, transcript, group, name)) for name in "ab")

        def ask(when: str) -> None:
            """The same questions in each state, none of which changes it."""
            cases: dict[str, Fields] = {
                "the member": {},
                "wrong generation": {"generation": 7},
                "generation -1": {"generation": -1},
                "unknown member": {"member_id": "nobody"},
                "no member id": {"member_id": ""},
                "unknown instance": {"group_instance_id": "nobody"},
            }
            for title, fields in cases.items():
                beat = {name.replace("generation", "generation_id"): value for name, value in fields.items()}
                transcript.note(f"heartbeat, {when}, {title}", a.heartbeat(**beat))
                if fields or when not in ("completing",):
                    transcript.note(f"sync, {when}, {title}", a.sync(**fields))
            transcript.note(f"sync, {when}, another type", a.sync(protocol_type="connect"))
            transcript.note(f"sync, {when}, another protocol", a.sync(protocol_name="roundrobin"))
            transcript.note(f"sync, {when}, no protocol", a.sync(protocol_name=None))
            transcript.note(f"sync, {when}, no type", a.sync(protocol_type=None))

        ask("no group")
        a.get_id()
        ask("empty")
        a.join()
        ask("completing")
        transcript.note("the leader syncs, and forgets itself", a.sync({"another": b"x"}))
        ask("stable")
        b.get_id()
        b.send_join()
        await_state(client, group, "PreparingRebalance")
        ask("preparing")
        a.join()
        b.joined()
        b.send_sync()
        transcript.note("the leader's sync", a.sync({a.member_id: b"A", b.member_id: b"B"}))
        transcript.note("the follower's", b.client.receive())
        for version in range(6):
            answer = client.call(sync_request("", 1, "x"), version)
            transcript.note(f"sync without a group id, version {version}", answer)
        for version in range(5):
            answer = client.call(HeartbeatRequest("", 1, "x"), version)
            transcript.note(f"heartbeat without a group id, version {version}", answer)
    transcript.check()


def test_leave(target: Target) -> None:
    transcript = Transcript(target, "classic_group_leaves")
    with WireClient(target) as client, ExitStack() as stack:
        for version in range(6):
            answer = client.call(leave_request("", ("x", None)), version)
            transcript.note(f"no group id, version {version}", answer)
            group = transcript.stand_in(new_group(client), "group")
            answer = client.call(leave_request(group, ("nobody", None), ("", "nobody")), version)
            transcript.note(f"no such group, version {version}", answer)
        members = [
            ClassicMember(target, transcript, group, "one", group_instance_id="one"),
            ClassicMember(target, transcript, group, "two", group_instance_id="two"),
            ClassicMember(target, transcript, group, "three"),
        ]
        for member in members:
            stack.enter_context(member)
        one, two, three = members
        one.join()
        two.send_join()
        await_state(client, group, "PreparingRebalance", 2)
        one.join()
        two.joined()
        three.get_id()
        three.send_join()
        await_state(client, group, "PreparingRebalance", 3)
        two.send_join()
        one.join()
        two.joined()
        three.joined()
        pending = stack.enter_context(ClassicMember(target, transcript, group, "pending"))
        pending.get_id()
        request = leave_request(
            group,
            ("nobody", None),
            ("nobody", "one"),
            (one.member_id, "two"),
            (one.member_id, "nobody"),
            ("", None),
            ("", "nobody"),
            ("", "one"),
            (two.member_id, None),
            (pending.member_id, None),
            (pending.member_id, None),
            ("", "two"),
        )
        transcript.note("many at once", client.call(request))
        await_state(client, group, "PreparingRebalance", 1)
        transcript.note("who has left", one.heartbeat())
        transcript.note("who is still there", three.heartbeat())
        none = leave_request(group, ("x", None))
        none.members = []
        transcript.note("nobody", client.call(none))
        three.send_join()
        transcript.note("the last one", three.joined())
        transcript.note("leaves", three.leave())
        transcript.note("the group", describe(client, group))
    transcript.check()


def test_static_members(target: Target) -> None:
    transcript = Transcript(target, "classic_group_static_members")
    with WireClient(target) as client, ExitStack() as stack:
        group = transcript.stand_in(new_group(client), "group")

        def member(name: str, instance: str) -> ClassicMember:
            fields = {"group_instance_id": instance, "protocols": protocols(range=instance)}
            return stack.enter_context(ClassicMember(target, transcript, group, name, **fields))

        one, two = member("one", "1"), member("two", "2")
        transcript.note("one", one.join())
        assert re.fullmatch(f"1-{UUID}", one.member_id), one.member_id
        two.send_join()
        await_state(client, group, "PreparingRebalance", 2)
        answer = one.join()
        transcript.note("two", two.joined())
        transcript.note("one again", answer)
        one.send_sync({one.member_id: b"first", two.member_id: b"second"})
        transcript.note("one syncs", one.client.receive())
        transcript.note("two syncs", two.sync())
        described = describe(client, group)
        transcript.stand_in(described.groups[0].members[0].client_host, "host")
        transcript.note("describe", described)
        new_two = member("new two", "2")
        transcript.note("two starts again", new_two.join())
        transcript.note("and syncs", new_two.sync(group_instance_id="2"))
        transcript.note("old two beats", two.heartbeat(group_instance_id="2"))
        transcript.note("old two beats without its instance", two.heartbeat())
        transcript.note("old two syncs", two.sync(group_instance_id="2"))
        transcript.note("old two joins", two.join())
        old = leave_request(group, (two.member_id, "2"))
        transcript.note("old two leaves", client.call(old))
        new_one = member("new one", "1")
        transcript.note("one, the leader, starts again, version 9", new_one.join())
        transcript.note("and syncs", new_one.sync())
        newer_one = member("newer one", "1")
        transcript.note("again, version 8", newer_one.join(8))
        transcript.note("and syncs", newer_one.sync())
        newer_one.send_join()
        await_state(client, group, "PreparingRebalance")
        newest_one = member("newest one", "1")
        newest_one.send_join()
        transcript.note("whoever waits with its join is fenced", newer_one.joined())
        new_two.send_join()
        transcript.note("the new one", newest_one.joined())
        transcript.note("and two", new_two.joined())
        new_two.send_sync()
        last_two = member("last two", "2")
        last_two.send_join()
        transcript.note("whoever waits with its sync is fenced", new_two.client.receive())
        await_state(client, group, "PreparingRebalance")
        answer = newest_one.join()
        transcript.note("all join again", last_two.joined())
        transcript.note("one", answer)
        transcript.note(
            "an administrator removes both", client.call(leave_request(group, ("", "1"), ("", "2")))
        )
        transcript.note("the group", describe(client, group))
    transcript.check()


def test_votes(target: Target) -> None:
    transcript = Transcript(target, "classic_group_votes")
    with WireClient(target) as client, ExitStack() as stack:
        group = transcript.stand_in(new_group(client), "group")
        offers = {
            "a": protocols(range="a", roundrobin="a"),
            "b": protocols(roundrobin="b", range="b"),
            "c": protocols(sticky="c", roundrobin="c", range="c"),
        }
        members = [
            stack.enter_context(ClassicMember(target, transcript, group, name, protocols=offered))
            for name, offered in offers.items()
        ]
        a, b, c = members
        a.get_id()
        transcript.note("a alone gets what it prefers", a.join())
        for member in (b, c):
            member.get_id()
            member.send_join()
        await_state(client, group, "PreparingRebalance", 3)
        transcript.note("a: two of three prefer roundrobin", a.join())
        for member in (b, c):
            transcript.note(f"{member.name}: two of three prefer roundrobin", member.joined())
        answer = a.join(protocols=protocols(sticky="a"))
        transcript.note("sticky alone cannot be", answer)
    transcript.check()


def test_describe_and_list(target: Target) -> None:
    transcript = Transcript(target, "classic_group_views")
    with WireClient(target) as client, ExitStack() as stack:
        group = transcript.stand_in(new_group(client), "group")
        metadata = protocols(range="orders")
        a = stack.enter_context(ClassicMember(target, transcript, group, "a", protocols=metadata))
        b = stack.enter_context(ClassicMember(target, transcript, group, "b"))
        for version in range(7):
            answer = client.call(DescribeGroupsRequest([group], True), version)
            transcript.note(f"describe a group that is not there, version {version}", answer)

        def look(state: str) -> None:
            transcript.note(f"describe, {state}", _with_host(transcript, describe(client, group)))
            transcript.note(f"list, {state}", listed(client, group))
            for name in ("Stable", "stable", " STABLE ", "Empty", "PreparingRebalance", "unheard of", ""):
                answer = listed(client, group, states_filter=[name])
                transcript.note(f"list, {state}, state {name!r}", answer)

        a.get_id()
        await_state(client, group, "Empty")
        look("empty")
        a.join()
        look("completing")
        a.sync({a.member_id: b"everything"})
        look("stable")
        for name in ("classic", "Classic", " classic", "consumer", "share", "unheard of", ""):
            transcript.note(f"list, type {name!r}", listed(client, group, types_filter=[name]))
        both = listed(client, group, states_filter=["Empty", "Stable"], types_filter=["consumer", "classic"])
        transcript.note("list, two of both", both)
        for version in range(3, 7):
            answer = client.call(DescribeGroupsRequest([group, group], True), version)
            operations = [described.authorized_operations for described in answer.groups]
            transcript.note(f"what one may do, asked twice, version {version}", repr(operations))
        b.get_id()
        b.send_join(protocols=metadata)
        await_state(client, group, "PreparingRebalance", 2)
        described = describe(client, group)
        described.groups[0].members = []  # of which nothing tells which is which
        transcript.note("describe, preparing", described)
        a.leave()
        b.joined()
        b.leave()
        look("empty again")
    transcript.check()


def _with_host(transcript: Transcript, answer: Any) -> Any:
    for group in answer.groups:
        for member in group.members:
            transcript.stand_in(member.client_host, "host")
    return answer
