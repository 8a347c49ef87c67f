"""Consumer groups ask for the group and for every topic that a member names, matches or is shown."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mainstem.protocol.apis.k10_find_coordinator import FindCoordinatorRequest
from mainstem.protocol.apis.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from mainstem.protocol.apis.k69_consumer_group_describe import ConsumerGroupDescribeRequest
from mainstem.protocol.errors import ErrorCode
from mainstem.security.authorizer import AllowAll, Operation, ResourceType
from mainstem.testing import Broker
from mainstem.testing.in_process import InProcessBroker
from tests.security.asking import Deny, call

Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def broker(runner: asyncio.Runner) -> Iterator[InProcessBroker]:
    broker = Broker.in_process({"group.consumer.assignment.interval.ms": 0})
    runner.run(broker.start())
    runner.run(broker.node.auto_create_topics(["seen", "secret"]))
    runner.run(call(broker, FindCoordinatorRequest("g"), 3))
    yield broker
    runner.run(broker.close())


@pytest.fixture
def ask(runner: asyncio.Runner, broker: InProcessBroker) -> Iterator[Ask]:
    """Ask as somebody who may do everything, or everything but one thing."""

    def ask(request: Any, *denied: Any) -> Any:
        broker.node.server.authorizer = Deny(denied) if denied else AllowAll()
        return runner.run(asyncio.wait_for(call(broker, request, 1), 20))

    yield ask
    broker.node.server.authorizer = AllowAll()


def join(group: str, **subscription: Any) -> ConsumerGroupHeartbeatRequest:
    fields: dict[str, Any] = {"rebalance_timeout_ms": 60_000, "topic_partitions": []}
    return ConsumerGroupHeartbeatRequest(group, "m", **fields | subscription)


def test_a_heartbeat_needs_the_group_and_the_topics_that_it_names(ask: Ask) -> None:
    heartbeat = join("names", subscribed_topic_names=["seen", "secret"])
    group = (Operation.READ, ResourceType.GROUP, "names")
    topic = (Operation.DESCRIBE, ResourceType.TOPIC, "secret")
    assert ask(heartbeat, *group).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert ask(heartbeat, *topic).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert ask(heartbeat).error_code == 0


def test_a_pattern_matches_no_topic_that_the_member_may_not_see(ask: Ask) -> None:
    secret = (Operation.DESCRIBE, ResourceType.TOPIC, "secret")
    answer = ask(join("pattern", subscribed_topic_regex="se.*"), *secret)
    assert answer.error_code == 0
    while answer.assignment is None or not answer.assignment.topic_partitions:
        answer = ask(ConsumerGroupHeartbeatRequest("pattern", "m", answer.member_epoch), *secret)
        assert answer.error_code == 0
    (described,) = ask(ConsumerGroupDescribeRequest(["pattern"])).groups
    topics = described.members[0].target_assignment.topic_partitions
    assert [topic.topic_name for topic in topics] == ["seen"]


def test_a_group_is_shown_only_to_those_who_may_see_its_topics(ask: Ask) -> None:
    ask(join("shown", subscribed_topic_names=["secret"]))
    request = ConsumerGroupDescribeRequest(["shown", "g"])
    by_group = ask(request, Operation.DESCRIBE, ResourceType.GROUP, "shown").groups
    assert [(group.group_id, group.error_code) for group in by_group] == [
        ("shown", ErrorCode.GROUP_AUTHORIZATION_FAILED),
        ("g", ErrorCode.GROUP_ID_NOT_FOUND),
    ]
    by_topic = ask(request, Operation.DESCRIBE, ResourceType.TOPIC, "secret").groups
    assert [(group.error_code, group.members) for group in by_topic] == [
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, []),
        (ErrorCode.GROUP_ID_NOT_FOUND, []),
    ]
    assert [len(group.members) for group in ask(request).groups] == [1, 0]
