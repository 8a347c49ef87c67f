"""Offsets ask for the group and for every topic; what may not be seen is left out or refused by itself."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from mainstem.protocol.apis.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from mainstem.protocol.apis.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from mainstem.protocol.apis.k10_find_coordinator import FindCoordinatorRequest
from mainstem.protocol.apis.k42_delete_groups import DeleteGroupsRequest
from mainstem.protocol.apis.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.security.authorizer import AllowAll, Operation, ResourceType
from mainstem.testing import Broker
from mainstem.testing.in_process import InProcessBroker
from tests.security.asking import Deny, Resource, call


@pytest.fixture(scope="module")
def broker(runner: asyncio.Runner) -> Iterator[InProcessBroker]:
    """Group `g` has offset 5 in the topics `seen` and `secret`."""
    broker = Broker.in_process()
    runner.run(broker.start())
    runner.run(broker.node.auto_create_topics(["seen", "secret"]))
    runner.run(call(broker, FindCoordinatorRequest("g"), 3))
    runner.run(call(broker, commit(), 9))
    yield broker
    runner.run(broker.close())


def commit() -> OffsetCommitRequest:
    place = [OffsetCommitRequestPartition(0, 5)]
    return OffsetCommitRequest(
        "g", topics=[OffsetCommitRequestTopic(name, partitions=place) for name in ("seen", "secret")]
    )


def fetch(*names: str) -> OffsetFetchRequest:
    """Both topics in one group, for all versions; without names all topics."""
    old = [OffsetFetchRequestTopic(name, [0]) for name in names] or None
    new = [OffsetFetchRequestTopics(name, partition_indexes=[0]) for name in names] or None
    return OffsetFetchRequest("g", old, [OffsetFetchRequestGroup("g", topics=new)])


def delete() -> OffsetDeleteRequest:
    place = [OffsetDeleteRequestPartition(0)]
    return OffsetDeleteRequest("g", [OffsetDeleteRequestTopic(name, place) for name in ("seen", "secret")])


@pytest.fixture
def ask(runner: asyncio.Runner, broker: InProcessBroker) -> Iterator[Any]:
    def ask(denied: Resource, request: Any, version: int) -> Any:
        broker.node.server.authorizer = Deny(denied)
        return runner.run(asyncio.wait_for(call(broker, request, version), 20))

    yield ask
    broker.node.server.authorizer = AllowAll()


def by_topic(topics: list[Any]) -> dict[str, str]:
    return {topic.name: ErrorCode(topic.partitions[0].error_code).name for topic in topics}


def test_commit(ask: Any) -> None:
    answer = ask((Operation.READ, ResourceType.TOPIC, "secret"), commit(), 9)
    assert by_topic(answer.topics) == {"secret": "TOPIC_AUTHORIZATION_FAILED", "seen": "NONE"}
    answer = ask((Operation.READ, ResourceType.GROUP, "g"), commit(), 9)
    assert set(by_topic(answer.topics).values()) == {"GROUP_AUTHORIZATION_FAILED"}


def test_fetch(ask: Any) -> None:
    secret = (Operation.DESCRIBE, ResourceType.TOPIC, "secret")
    for version, answer in ((v, ask(secret, fetch("seen", "secret"), v)) for v in (1, 7, 9)):
        topics = answer.topics if version < 8 else answer.groups[0].topics
        assert by_topic(topics) == {"seen": "NONE", "secret": "TOPIC_AUTHORIZATION_FAILED"}
    answer = ask(secret, fetch(), 9)
    assert by_topic(answer.groups[0].topics) == {"seen": "NONE"}


def test_fetch_of_a_group_that_may_not_be_seen(ask: Any) -> None:
    group = (Operation.DESCRIBE, ResourceType.GROUP, "g")
    assert by_topic(ask(group, fetch("seen"), 1).topics) == {"seen": "GROUP_AUTHORIZATION_FAILED"}
    answer = ask(group, fetch("seen"), 7)
    assert (answer.error_code, answer.topics) == (ErrorCode.GROUP_AUTHORIZATION_FAILED, [])
    answer = ask(group, fetch("seen"), 9)
    assert answer.groups[0].error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED


def test_delete(ask: Any) -> None:
    answer = ask((Operation.DELETE, ResourceType.GROUP, "g"), delete(), 0)
    assert (answer.error_code, answer.topics) == (ErrorCode.GROUP_AUTHORIZATION_FAILED, [])
    answer = ask((Operation.READ, ResourceType.TOPIC, "secret"), delete(), 0)
    assert by_topic(answer.topics) == {"secret": "TOPIC_AUTHORIZATION_FAILED", "seen": "NONE"}


def test_delete_groups(ask: Any) -> None:
    answer = ask((Operation.DELETE, ResourceType.GROUP, "g"), DeleteGroupsRequest(["g", "other"]), 2)
    assert {result.group_id: ErrorCode(result.error_code).name for result in answer.results} == {
        "other": "GROUP_ID_NOT_FOUND",
        "g": "GROUP_AUTHORIZATION_FAILED",
    }
