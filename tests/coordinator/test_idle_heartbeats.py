"""Heartbeats to which there is nothing to say: taken without making an answer, they count as others do."""

from itertools import count
from uuid import UUID

from mainstem.config import BrokerConfig
from mainstem.coordinator.group.coordinator import GroupCoordinator
from mainstem.coordinator.group.state import Client
from mainstem.protocol.apis.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from mainstem.protocol.apis.k12_heartbeat import HeartbeatRequest
from mainstem.protocol.apis.k14_sync_group import SyncGroupRequest
from mainstem.protocol.apis.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.coordinator.harness import FakeTopics, Harness

CLIENT = Client("client", "/127.0.0.1")
SESSION_MS = 45_000  # the consumer protocol's default


def _harness() -> Harness:
    numbers, topics = count(1), FakeTopics(t=2)
    config = BrokerConfig({"group.initial.rebalance.delay.ms": "0"})

    def new_machine() -> GroupCoordinator:
        return GroupCoordinator(config, topics, lambda: str(UUID(int=next(numbers))), lambda group_id: {})

    return Harness(new_machine)


def test_a_classic_member() -> None:
    harness = _harness()
    protocols = [JoinGroupRequestProtocol("range", b"")]
    request = JoinGroupRequest("g", SESSION_MS, SESSION_MS, "", None, "consumer", protocols)
    waiting = harness.send(
        lambda machine, token, now_ms: machine.classic.join_group(request, 3, CLIENT, token, now_ms)
    )
    harness.advance(1)  # the delay of none is over
    joined = waiting.answer
    beat = HeartbeatRequest("g", joined.generation_id, joined.member_id)
    assert not harness.machine.classic.try_heartbeat(beat, harness.now_ms)  # it has to sync first
    synced = SyncGroupRequest("g", joined.generation_id, joined.member_id)
    harness.send(lambda machine, token, now_ms: machine.classic.sync_group(synced, 5, token, now_ms))
    for _ in range(5):
        harness.advance(SESSION_MS - 1)
        assert harness.machine.classic.try_heartbeat(beat, harness.now_ms)
    older = HeartbeatRequest("g", joined.generation_id - 1, joined.member_id)
    assert not harness.machine.classic.try_heartbeat(older, harness.now_ms)
    harness.advance(SESSION_MS)
    assert not harness.machine.classic.try_heartbeat(beat, harness.now_ms)


def test_a_member_of_a_consumer_group() -> None:
    harness = _harness()
    request = ConsumerGroupHeartbeatRequest(
        "g", "m", 0, rebalance_timeout_ms=60_000, subscribed_topic_names=["t"], topic_partitions=[]
    )
    joined = harness.send(
        lambda machine, token, now_ms: machine.consumer.heartbeat(request, 1, CLIENT, token, now_ms)
    ).answer
    beat = ConsumerGroupHeartbeatRequest("g", "m", joined.member_epoch)
    for _ in range(5):
        harness.advance(SESSION_MS - 1)
        assert harness.machine.consumer.try_heartbeat(beat, CLIENT, harness.now_ms)
    elsewhere = Client("client", "/127.0.0.2")
    assert not harness.machine.consumer.try_heartbeat(beat, elsewhere, harness.now_ms)
    harness.advance(SESSION_MS)
    assert not harness.machine.consumer.try_heartbeat(beat, CLIENT, harness.now_ms)
