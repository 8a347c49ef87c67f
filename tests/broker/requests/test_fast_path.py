"""What all short ways have in common: they keep to quotas and to what the authorizer says."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from mainstem.broker.network.connection import Connection
from mainstem.broker.network.throttle import Throttle
from mainstem.protocol.apis.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from mainstem.protocol.apis.k10_find_coordinator import FindCoordinatorRequest
from mainstem.protocol.apis.k12_heartbeat import HeartbeatRequest
from mainstem.protocol.apis.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.registry import API_KEYS
from mainstem.testing.in_process import InProcessBroker
from tests.broker.conftest import Rules
from tests.broker.coordination.test_classic_groups import only_member
from tests.broker.coordination.test_group_configs import join as join_consumer_group
from tests.broker.harness import Client, batch, connection_of, create_topic, produce_request, unique_name

Repeated = Callable[[Client], Awaitable[Any]]


async def a_produce(client: Client) -> Any:
    return produce_request(await create_topic(client), {0: batch(b"value")})


async def a_commit(client: Client) -> Any:
    group, topic = unique_name("group"), await create_topic(client)
    await client.call(FindCoordinatorRequest(coordinator_keys=[group]))
    part = OffsetCommitRequestPartition(0, 7, 1, "")
    return OffsetCommitRequest(group, topics=[OffsetCommitRequestTopic(topic.name, topic.topic_id, [part])])


async def a_heartbeat(client: Client) -> Any:
    group, member_id = await only_member(client)
    return HeartbeatRequest(group, 1, member_id)


async def a_heartbeat_of_a_consumer_group(client: Client) -> Any:
    topic, group = await create_topic(client), unique_name("group")
    joined = await join_consumer_group(client, group, topic.name)
    return ConsumerGroupHeartbeatRequest(group, joined.member_id, joined.member_epoch)


REPEATED: list[Repeated] = [a_produce, a_commit, a_heartbeat, a_heartbeat_of_a_consumer_group]


class Quota(Throttle):
    """Every request of the client "test" costs it 5 ms more than the one before."""

    active = True

    def __init__(self) -> None:
        self.told_ms = 0

    def time_ms(self, connection: Any, client_id: str | None) -> int:
        if client_id != "test":
            return 0  # the broker asks itself something too
        self.told_ms += 5
        return self.told_ms


def error_of(response: Any) -> int:
    """The error of a response to one of `REPEATED`, wherever it stands."""
    while not hasattr(response, "error_code"):
        lists = (getattr(response, name, None) for name in response.__struct_fields__)
        response = next(values[0] for values in lists if isinstance(values, list) and values)
    return int(response.error_code)


@pytest.mark.parametrize("repeated", REPEATED)
async def test_a_quota_is_told_of_and_kept_to(
    client: Client, broker: InProcessBroker, short_ways: list[bool], repeated: Repeated,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    request = await repeated(client)
    key = request.SCHEMA.api_key
    unthrottled = await client.call(request)
    quota = Quota()
    for name in ("active", "time_ms"):
        monkeypatch.setattr(broker.node.server.throttle, name, getattr(quota, name), raising=False)
    muted: list[int] = []
    monkeypatch.setattr(Connection, "mute", lambda _, duration_ms: muted.append(duration_ms))
    throttled = [await client.call(request) for _ in range(3)]
    assert short_ways == [True] * 3
    assert [answer.throttle_time_ms for answer in throttled] == muted == [5, 10, 15]
    for answer in throttled:
        answer.throttle_time_ms = 0
        assert error_of(answer) == error_of(unthrottled) == ErrorCode.NONE
        assert key == 0 or answer == unthrottled


@pytest.mark.parametrize("version", range(API_KEYS[12].max_version + 1))
async def test_a_version_that_cannot_tell_of_a_quota_keeps_to_it(
    client: Client, broker: InProcessBroker, short_ways: list[bool], version: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    request = await a_heartbeat(client)
    await client.call(request, version)
    quota = Quota()
    for name in ("active", "time_ms"):
        monkeypatch.setattr(broker.node.server.throttle, name, getattr(quota, name), raising=False)
    answers = [await client.call(request, version) for _ in range(2)]
    assert [answer.throttle_time_ms for answer in answers] == ([5, 10] if version else [0, 0])
    assert quota.told_ms == 10
    assert short_ways == [True, True]


@pytest.mark.parametrize("repeated", REPEATED)
async def test_a_yes_is_remembered_until_the_rules_change(
    client: Client, rules: Rules, short_ways: list[bool], repeated: Repeated
) -> None:
    request = await repeated(client)
    assert error_of(await client.call(request)) == ErrorCode.NONE
    asked = rules.asked
    assert error_of(await client.call(request)) == ErrorCode.NONE
    assert rules.asked == asked
    rules.denied = True
    rules.generation += 1
    for _ in range(2):
        assert error_of(await client.call(request)) in (
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            ErrorCode.GROUP_AUTHORIZATION_FAILED,
        )
    rules.denied = False
    rules.generation += 1
    for _ in range(2):
        assert error_of(await client.call(request)) == ErrorCode.NONE
    assert short_ways == [True, False, False, False, True]


async def test_a_connection_remembers_a_bounded_number_of_ways(
    client: Client, broker: InProcessBroker, short_ways: list[bool]
) -> None:
    topic = await create_topic(client, partitions=100)
    for _ in range(2):
        for partition in range(100):
            await client.call(produce_request(topic, {partition: batch(b"value")}))
    for _ in range(2):
        await client.call(produce_request(topic, {99: batch(b"value")}))
    assert short_ways[-2:] == [True, True]
    routes = connection_of(broker, client).routes
    assert routes is not None
    assert all(len(table.by_prefix) <= 64 for table in routes.values())
