"""Apache Kafka's tool prints the classic groups that Mainstem wrote, as it prints Kafka's own."""

import base64
from typing import Any

import pytest

from mainstem.protocol.apis.k42_delete_groups import DeleteGroupsRequest
from tests.interop.test_dump_offsets import dump
from tests.support.classic_scenario import ClassicMember, await_state, leave_request
from tests.support.offset_scenario import new_group
from tests.support.target import Target
from tests.support.transcript import Transcript
from tests.support.wire import WireClient

pytestmark = pytest.mark.peer


def _member(member: ClassicMember, instance_id: str | None, assignment: bytes) -> dict[str, Any]:
    return {
        "memberId": member.member_id,
        "groupInstanceId": instance_id,
        "clientId": "wire",
        "clientHost": "/127.0.0.1",
        "rebalanceTimeout": 60_000,
        "sessionTimeout": 60_000,
        "subscription": {"topics": [member.name], "userData": None},
        "assignment": base64.b64encode(assignment).decode(),
    }


def test_kafka_prints_the_life_of_a_classic_group(target: Target) -> None:
    transcript = Transcript(target, "not kept")
    with WireClient(target) as client:
        group = new_group(client)
        static = ClassicMember(target, transcript, group, "static", group_instance_id="one")
        dynamic = ClassicMember(target, transcript, group, "dynamic")
        with static, dynamic:
            static.join()
            dynamic.get_id()
            dynamic.send_join()
            await_state(client, group, "PreparingRebalance", 2)
            static.join()
            dynamic.joined()
            static.sync({static.member_id: b"first", dynamic.member_id: b"second"})
            client.call(leave_request(group, (static.member_id, "one"), (dynamic.member_id, None)))
        client.call(DeleteGroupsRequest([group]))
    records = dump(target.log_dir, [group])
    assert {(key["type"], key["data"]["group"]) for key, _ in records} == {("2", group)}
    *values, last = [value for _, value in records]
    assert last == "<DELETE>"
    assert {value["version"] for value in values} == {"3"}
    created, stable, empty = [value["data"] for value in values]
    for value in (created, stable, empty):
        assert value.pop("currentStateTimestamp") > 0
    no_members: dict[str, Any] = {"protocol": None, "leader": None, "members": []}
    assert created == no_members | {"protocolType": "", "generation": 0}
    assert empty == no_members | {"protocolType": "consumer", "generation": 3}
    stable["members"].sort(key=lambda member: member["assignment"])
    assert stable == {
        "protocolType": "consumer",
        "generation": 2,
        "protocol": "range",
        "leader": static.member_id,
        "members": [_member(static, "one", b"first"), _member(dynamic, None, b"second")],
    }
