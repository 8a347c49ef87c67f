"""Classic groups in a running broker: they go on after a restart, and waiting members disturb nobody."""

import asyncio
from typing import Any

import pytest

from mainstem.protocol.apis.k10_find_coordinator import FindCoordinatorRequest
from mainstem.protocol.apis.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from mainstem.protocol.apis.k12_heartbeat import HeartbeatRequest
from mainstem.protocol.apis.k13_leave_group import LeaveGroupRequest, MemberIdentity
from mainstem.protocol.apis.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from mainstem.protocol.apis.k15_describe_groups import DescribeGroupsRequest
from mainstem.protocol.apis.k16_list_groups import ListGroupsRequest
from mainstem.protocol.errors import ErrorCode
from mainstem.testing.in_process import InProcessBroker
from tests.broker.conftest import Connect, MakeBroker
from tests.broker.harness import Client, eventually, unique_name

SUBSCRIPTION = b"\x00\x00" + b"\x00\x00\x00\x00" + b"\xff\xff\xff\xff"
# The last version in which a member joins at once, without being given an id first.
AT_ONCE = 3


def join(group: str, member_id: str = "", session_timeout_ms: int = 60_000) -> JoinGroupRequest:
    protocols = [JoinGroupRequestProtocol("range", SUBSCRIPTION)]
    return JoinGroupRequest(group, session_timeout_ms, 60_000, member_id, None, "consumer", protocols)


def sync(group: str, generation: int, member_id: str, **assignments: bytes) -> SyncGroupRequest:
    entries = [SyncGroupRequestAssignment(member_id, data) for data in assignments.values()]
    return SyncGroupRequest(group, generation, member_id, None, "consumer", "range", entries)


def leave(group: str, member_id: str) -> LeaveGroupRequest:
    return LeaveGroupRequest(group, member_id, [MemberIdentity(member_id)])


async def only_member(client: Client) -> tuple[str, str]:
    """A new group with one member, which owns everything; the group's id and the member's."""
    group = unique_name("group")
    found = await client.call(FindCoordinatorRequest(group), 3)
    assert (found.error_code, found.error_message) == (0, "NONE")  # as Kafka answers up to version 3
    joined = await client.call(join(group), AT_ONCE)
    assert (joined.error_code, joined.generation_id) == (0, 1)
    synced = await client.call(sync(group, 1, joined.member_id, own=b"everything"))
    assert (synced.error_code, synced.assignment) == (0, b"everything")
    return group, joined.member_id


async def state(client: Client, group: str) -> str:
    answer = await client.call(DescribeGroupsRequest([group]), 5)
    found: str = answer.groups[0].group_state
    return found


async def until_state(client: Client, group: str, wanted: str) -> None:
    while await state(client, group) != wanted:
        await asyncio.sleep(0.01)


async def test_a_group_goes_on_after_a_restart(make_broker: MakeBroker, connect: Connect) -> None:
    broker = await make_broker()
    group, member_id = await only_member(await connect(broker))
    await broker.close()
    again = await make_broker(data_dir=broker.data_dir)
    client = await connect(again)
    index = again.node.groups.partition_of(group)
    await eventually(lambda: again.node.groups.shell._shards[index].loading is None)
    assert (await client.call(HeartbeatRequest(group, 1, member_id))).error_code == 0
    assert (await client.call(sync(group, 1, member_id))).assignment == b"everything"
    described = (await client.call(DescribeGroupsRequest([group]))).groups[0]
    assert (described.group_state, described.protocol_data) == ("Stable", "range")
    assert [member.client_id for member in described.members] == ["test"]


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (join(""), ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (sync("", 1, "m"), ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (leave("", "m"), ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        # The session begins when everything is loaded: nothing is wrong with this member yet.
        (HeartbeatRequest("", 1, "m"), ErrorCode.NONE),
        (DescribeGroupsRequest([]), ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (ListGroupsRequest(), ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_while_a_coordinator_loads(
    broker: InProcessBroker, client: Client, request_: Any, error: ErrorCode
) -> None:
    group = unique_name("group")
    await client.call(FindCoordinatorRequest(group), 3)
    if hasattr(request_, "group_id"):
        request_.group_id = group
    elif hasattr(request_, "groups"):
        request_.groups = [group]
    shard = broker.node.groups.shell._shards[broker.node.groups.partition_of(group)]
    shard.loading = asyncio.current_task()
    try:
        answer = await client.call(request_)
    finally:
        shard.loading = None
    part = answer.groups[0] if isinstance(request_, DescribeGroupsRequest) else answer
    assert part.error_code == error


async def test_a_waiting_member_keeps_nobody_else_waiting(broker: InProcessBroker, client: Client) -> None:
    group, first = await only_member(client)
    async with await Client.connect(broker.port) as other:
        other.send(join(group), version=AT_ONCE)
        await until_state(client, group, "PreparingRebalance")
        answer = await client.call(HeartbeatRequest(group, 1, first))
        assert answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
        await client.call(leave(group, first))
        joined = await other.receive()
    assert (joined.error_code, joined.generation_id) == (0, 2)
    assert joined.leader == joined.member_id


async def test_a_member_that_hangs_up_while_it_waits_is_missed_only_later(
    broker: InProcessBroker, client: Client
) -> None:
    group, first = await only_member(client)
    other = await Client.connect(broker.port)
    other.send(join(group), version=AT_ONCE)
    await until_state(client, group, "PreparingRebalance")
    await other.close()
    joined = await client.call(join(group, first), AT_ONCE)
    assert (joined.error_code, len(joined.members)) == (0, 2)
    await client.call(LeaveGroupRequest(group, members=[MemberIdentity(m.member_id) for m in joined.members]))
    assert await state(client, group) == "Empty"


async def test_a_silent_member_is_removed(make_broker: MakeBroker, connect: Connect) -> None:
    client = await connect(await make_broker({"group.min.session.timeout.ms": 20}))
    group = unique_name("group")
    await client.call(FindCoordinatorRequest(group), 3)
    joined = await client.call(join(group, session_timeout_ms=20), AT_ONCE)
    assert (joined.error_code, joined.generation_id) == (0, 1)
    await until_state(client, group, "Empty")
    answer = await client.call(HeartbeatRequest(group, 1, joined.member_id))
    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
