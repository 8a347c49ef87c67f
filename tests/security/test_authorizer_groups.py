"""Members of groups need to read the group, onlookers to describe it; what may not be seen is left out."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from mainstem.protocol.apis.k10_find_coordinator import FindCoordinatorRequest
from mainstem.protocol.apis.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from mainstem.protocol.apis.k12_heartbeat import HeartbeatRequest
from mainstem.protocol.apis.k13_leave_group import LeaveGroupRequest, MemberIdentity
from mainstem.protocol.apis.k14_sync_group import SyncGroupRequest
from mainstem.protocol.apis.k15_describe_groups import DescribeGroupsRequest
from mainstem.protocol.apis.k16_list_groups import ListGroupsRequest
from mainstem.protocol.errors import ErrorCode
from mainstem.security.authorizer import CLUSTER_NAME, AllowAll, Operation, ResourceType
from mainstem.testing import Broker
from mainstem.testing.in_process import InProcessBroker
from tests.security.asking import Deny, Resource, call


def join(group: str) -> JoinGroupRequest:
    return JoinGroupRequest(
        group, 10_000, 10_000, "", None, "consumer", [JoinGroupRequestProtocol("range", b"\x00")]
    )


@pytest.fixture(scope="module")
def broker(runner: asyncio.Runner) -> Iterator[InProcessBroker]:
    """With the groups `seen` and `secret`."""
    broker = Broker.in_process()
    runner.run(broker.start())
    for group in ("seen", "secret"):
        runner.run(call(broker, FindCoordinatorRequest(group), 3))
        answer = runner.run(call(broker, join(group), 9))
        assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    yield broker
    runner.run(broker.close())


@pytest.fixture
def ask(runner: asyncio.Runner, broker: InProcessBroker) -> Iterator[Any]:
    def ask(request: Any, version: int, *denied: Resource) -> Any:
        broker.node.server.authorizer = Deny(*denied)
        return runner.run(asyncio.wait_for(call(broker, request, version), 20))

    yield ask
    broker.node.server.authorizer = AllowAll()


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (join("secret"), 3),
        (join("secret"), 9),
        (HeartbeatRequest("secret", 1, "m"), 4),
        (LeaveGroupRequest("secret", "m", [MemberIdentity("m")]), 2),
        (LeaveGroupRequest("secret", "m", [MemberIdentity("m")]), 5),
        (SyncGroupRequest("secret", 1, "m", protocol_type="consumer", protocol_name="range"), 5),
    ],
)
def test_a_member_must_be_allowed_to_read_the_group(ask: Any, request_: Any, version: int) -> None:
    denied = (Operation.READ, ResourceType.GROUP, "secret")
    answer = ask(request_, version, denied)
    assert answer.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert getattr(answer, "protocol_name", None) == ("" if version == 3 else None)
    elsewhere = (Operation.READ, ResourceType.GROUP, "seen")
    assert ask(request_, version, elsewhere).error_code != ErrorCode.GROUP_AUTHORIZATION_FAILED


def test_a_group_that_may_not_be_described_is_refused_and_the_others_are_not(ask: Any) -> None:
    denied = (Operation.DESCRIBE, ResourceType.GROUP, "secret")
    answer = ask(DescribeGroupsRequest(["seen", "secret"], True), 6, denied)
    described = {group.group_id: group for group in answer.groups}
    assert described["secret"].error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert described["secret"].group_state == ""
    assert described["secret"].authorized_operations == -(2**31)
    assert described["seen"].error_code == ErrorCode.NONE
    assert described["seen"].group_state == "Empty"


def test_the_authorized_operations_are_those_of_the_asking_client(ask: Any) -> None:
    operations = (Operation.READ, Operation.DELETE, Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS)
    denied = [(operation, ResourceType.GROUP, "seen") for operation in operations]
    answer = ask(DescribeGroupsRequest(["seen"], True), 6, *denied)
    assert answer.groups[0].authorized_operations == 1 << Operation.DESCRIBE


def test_a_list_leaves_out_groups_that_may_not_be_described(ask: Any) -> None:
    cluster = (Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)
    secret = (Operation.DESCRIBE, ResourceType.GROUP, "secret")

    def names(*denied: Resource) -> set[str]:
        return {group.group_id for group in ask(ListGroupsRequest(), 5, *denied).groups}

    assert names(cluster, secret) == {"seen"}
    assert names(cluster) == {"seen", "secret"}
    # Whoever may describe the cluster sees all its groups.
    assert names(secret) == {"seen", "secret"}
