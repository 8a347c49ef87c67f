"""Nodes of one cluster: they find each other, share the work, and do without one of them."""

import asyncio
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mainstem.broker.clock import Clock
from mainstem.broker.node import Node
from mainstem.protocol.apis.k03_metadata import MetadataRequest, MetadataRequestTopic
from mainstem.protocol.apis.k19_create_topics import CreatableTopic, CreateTopicsRequest
from mainstem.protocol.apis.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from mainstem.protocol.apis.k60_describe_cluster import DescribeClusterRequest
from mainstem.protocol.apis.k75_describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import ConfigResourceType
from tests.broker.harness import Client, Topic, batch, eventually, produce, produce_request, unique_name
from tests.broker.nodes import Nodes

COMBINED = "broker,controller"
MakeNodes = Any


@pytest.fixture
def make_nodes(runner: asyncio.Runner, tmp_path: Path) -> Iterator[MakeNodes]:
    """Clusters that are stopped at the end of the test."""
    made: list[Nodes] = []

    def make(roles: dict[int, str], **settings: Any) -> Nodes:
        nodes = Nodes(tmp_path / f"cluster-{len(made)}", roles, settings)
        made.append(nodes)
        return nodes

    yield make
    for nodes in made:
        runner.run(nodes.stop())


async def create(client: Client, partitions: int = 1, copies: int = 3) -> Topic:
    request = CreateTopicsRequest([CreatableTopic(unique_name(), partitions, copies)], timeout_ms=10_000)
    (result,) = (await client.call(request)).topics
    assert result.error_code == 0, result.error_message
    return Topic(result.name, result.topic_id)


def knows(node: Node, topic: str) -> bool:
    return topic in node.server.image.topics_by_name


def holds(node: Node, topic: str) -> bool:
    assert node.broker is not None
    return node.broker.replicas.find(topic, 0) is not None


async def described(client: Client, topic: Topic) -> Any:
    request = MetadataRequest([MetadataRequestTopic(name=topic.name)], allow_auto_topic_creation=False)
    return await client.call(request)


async def test_three_combined_nodes_make_a_topic_with_three_copies(make_nodes: MakeNodes) -> None:
    nodes = make_nodes({1: COMBINED, 2: COMBINED, 3: COMBINED})
    await nodes.start()
    active = await nodes.active_controller()
    for node_id in nodes.running:
        async with await nodes.connect(node_id) as client:
            topic = await create(client, partitions=6)
            for other in nodes.running.values():
                await eventually(partial(knows, other, topic.name))
            answer = await described(client, topic)
            assert {(broker.node_id, broker.port) for broker in answer.brokers} == {
                (other, nodes.port(other)) for other in (1, 2, 3)
            }
            (found,) = answer.topics
            assert {part.leader_id for part in found.partitions} == {1, 2, 3}
            assert all(sorted(part.replica_nodes) == [1, 2, 3] for part in found.partitions)
    assert await nodes.active_controller() == active


async def test_brokers_alone_and_controllers_alone_are_a_cluster(make_nodes: MakeNodes) -> None:
    nodes = make_nodes({1: "controller", 2: "controller", 3: "controller", 4: "broker", 5: "broker"})
    await nodes.start()
    async with await nodes.connect(4) as client:
        topic = await create(client, partitions=4, copies=2)
        await eventually(lambda: topic.name in nodes.running[5].server.image.topics_by_name)
        (found,) = (await described(client, topic)).topics
        assert {part.leader_id for part in found.partitions} == {4, 5}
    active = nodes.running[await nodes.active_controller()]
    await eventually(lambda: len(active.server.image.controllers) == 3, "controllers are known")
    (listener,) = active.bound_listeners
    async with await Client.connect(listener.port) as client:
        answer = await client.call(DescribeClusterRequest(endpoint_type=2))
        assert answer.controller_id == active.server.node_id
        assert {controller.broker_id for controller in answer.brokers} == {1, 2, 3}
        assert (await client.call(DescribeClusterRequest())).error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE


async def test_the_loss_of_the_active_controller_is_survived(make_nodes: MakeNodes) -> None:
    nodes = make_nodes({1: COMBINED, 2: COMBINED, 3: COMBINED})
    await nodes.start()
    lost = await nodes.active_controller()
    left = [node_id for node_id in nodes.running if node_id != lost]
    async with await nodes.connect(left[0]) as client:
        topic = await create(client, partitions=6)
        await nodes.kill(lost)
        again = await create(client, copies=2)
        assert await nodes.active_controller() in left
        image = nodes.running[left[0]].server
        await eventually(lambda: image.image.brokers[lost].fenced, "the lost one is fenced")
        await eventually(
            lambda: all(part.leader in left for part in image.image.topics_by_name[topic.name].partitions),
            "all are led again",
        )
        answer = await described(client, topic)
        assert {broker.node_id for broker in answer.brokers} == set(left)
        assert all(part.offline_replicas == [lost] for part in answer.topics[0].partitions)
        request = DescribeTopicPartitionsRequest([TopicRequest(topic.name)])
        (found,) = (await client.call(request)).topics
        assert all(part.offline_replicas == [lost] for part in found.partitions)
        everyone = await client.call(DescribeClusterRequest(include_fenced_brokers=True))
        assert {broker.broker_id: broker.is_fenced for broker in everyone.brokers} == {
            node_id: node_id == lost for node_id in (1, 2, 3)
        }
        await nodes.start(lost)
        await eventually(lambda: not image.image.brokers[lost].fenced, "it is back")
        assert again.name in nodes.running[lost].server.image.topics_by_name


async def test_a_broker_that_lost_its_disk_takes_from_others_what_they_have(make_nodes: MakeNodes) -> None:
    """What it alone had it does not begin again, empty: its disk may come back."""
    nodes = make_nodes({1: "controller", 2: "broker", 3: "broker"})
    await nodes.start()
    lost = 3
    async with await nodes.connect(2) as client:
        shared = await create(client, partitions=2, copies=2)
        alone = await create(client, partitions=2, copies=1)
        image = nodes.running[1].server
        for partition in image.image.topics_by_name[shared.name].partitions:
            async with await nodes.connect(partition.leader) as leader:
                await eventually(partial(holds, nodes.running[partition.leader], shared.name))
                written = await produce(leader, shared, b"v", partition=partition.partition)
                assert written.error_code == 0
        await nodes.kill(lost)
        await eventually(lambda: image.image.brokers[lost].fenced, "the lost one is fenced")
        shutil.rmtree(nodes.directory(lost))
        await nodes.start(lost)
        await eventually(
            lambda: all(
                sorted(part.isr) == [2, lost] for part in image.image.topics_by_name[shared.name].partitions
            ),
            "it is in sync again",
        )
        broker = nodes.running[lost].broker
        assert broker is not None
        ends = [broker.replicas.by_topic(shared.name, index).log.log_end_offset for index in (0, 1)]
        assert ends == [1, 1]
        (missed,) = (
            part.partition
            for part in image.image.topics_by_name[alone.name].partitions
            if lost in part.replicas
        )
        assert broker.replicas.is_offline(alone.name, missed)
        described_alone = (await described(client, alone)).topics[0].partitions
        (found,) = (part for part in described_alone if part.partition_index == missed)
        assert found.leader_id == -1


async def test_a_broker_that_stops_in_order_hands_its_leaderships_over(make_nodes: MakeNodes) -> None:
    nodes = make_nodes({1: COMBINED, 2: COMBINED, 3: COMBINED})
    await nodes.start()
    leaving = await nodes.active_controller()
    left = [node_id for node_id in nodes.running if node_id != leaving]
    async with await nodes.connect(left[0]) as client:
        topic = await create(client, partitions=6)
        server = nodes.running[left[0]].server
        await eventually(lambda: topic.name in server.image.topics_by_name)
        await nodes.stop(leaving)
        await eventually(
            lambda: all(part.leader in left for part in server.image.topics_by_name[topic.name].partitions)
        )
        assert await nodes.active_controller() in left


async def test_all_nodes_stop_at_once_and_start_again(make_nodes: MakeNodes) -> None:
    nodes = make_nodes({1: COMBINED, 2: COMBINED, 3: COMBINED})
    await nodes.start()
    async with await nodes.connect(1) as client:
        topic = await create(client)
    await asyncio.wait_for(nodes.stop(), 5)
    await nodes.start()
    async with await nodes.connect(2) as client:
        await eventually(
            lambda: nodes.running[2].server.image.topics_by_name[topic.name].partitions[0].leader > 0
        )
        assert (await described(client, topic)).topics[0].error_code == 0


async def test_who_asks_the_wrong_broker_is_told_the_right_one(make_nodes: MakeNodes) -> None:
    nodes = make_nodes({1: COMBINED, 2: COMBINED, 3: COMBINED})
    await nodes.start()
    async with await nodes.connect(1) as client:
        topic = await create(client, copies=1)
    for node in nodes.running.values():
        await eventually(partial(knows, node, topic.name))
    image = nodes.running[1].server.image
    leader = image.topics_by_name[topic.name].partitions[0].leader
    wrong = next(node_id for node_id in nodes.running if node_id != leader)
    async with await nodes.connect(wrong) as client:
        for version in range(3, 14):
            response = await client.call(produce_request(topic, {0: batch(b"v")}), version)
            (result,) = response.responses[0].partition_responses
            assert result.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            if version >= 10:
                assert (result.current_leader.leader_id, result.current_leader.leader_epoch) == (leader, 0)
                assert [(node.node_id, node.port) for node in response.node_endpoints] == [
                    (leader, nodes.port(leader))
                ]
    async with await nodes.connect(leader) as client:
        assert (await produce(client, topic, b"v")).error_code == 0


async def test_what_a_broker_forwards_has_the_errors_of_the_controller(make_nodes: MakeNodes) -> None:
    nodes = make_nodes({1: "controller", 2: "broker"})
    await nodes.start()
    async with await nodes.connect(2) as client:
        topic = await create(client, copies=1)
        twice = CreateTopicsRequest([CreatableTopic(topic.name, 1, 1)], timeout_ms=10_000)
        for version in range(2, 8):
            (result,) = (await client.call(twice, version)).topics
            assert result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
        change = AlterableConfig("retention.ms", 0, "5000")
        resource = AlterConfigsResource(ConfigResourceType.TOPIC, topic.name, [change])
        (altered,) = (await client.call(IncrementalAlterConfigsRequest([resource]))).responses
        assert altered.error_code == 0
        server = nodes.running[2].server
        await eventually(lambda: server.image.topic_config(topic.name).get("retention.ms") == "5000")


async def test_without_a_controller_a_client_hears_that_time_is_over(make_nodes: MakeNodes) -> None:
    nodes = make_nodes({1: "controller", 2: "broker"}, **{"request.timeout.ms": 300})
    await nodes.start()
    async with await nodes.connect(2) as client:
        topic = await create(client, copies=1)
        await eventually(partial(holds, nodes.running[2], topic.name), "broker 2 has the partition")
        await nodes.kill(1)
        request = CreateTopicsRequest([CreatableTopic(unique_name(), 1, 1)], timeout_ms=10_000)
        (result,) = (await client.call(request)).topics
        assert result.error_code == ErrorCode.REQUEST_TIMED_OUT
        assert (await produce(client, topic, b"v")).error_code == 0, "what needs no controller goes on"


# ---- bad input


async def test_a_broker_with_the_directory_of_another_cluster_is_told_so_and_gets_nothing(
    make_nodes: MakeNodes, caplog: pytest.LogCaptureFixture
) -> None:
    nodes = make_nodes({1: COMBINED, 2: "broker"})
    await nodes.start(1)
    nodes.other_cluster_ids[2] = "AAAAAAAAAAAAAAAAAAAAAQ"
    starting = asyncio.ensure_future(nodes.begin(2))
    await eventually(lambda: "is not of this cluster" in caplog.text)
    await eventually(lambda: "waits for a controller" in caplog.text)
    assert "no controller leads the quorum" in caplog.text
    assert list(nodes.running[1].server.image.brokers) == [1]
    starting.cancel()
    await asyncio.wait((starting,))


class LateClock(Clock):
    """Hours behind the others."""

    def now_ms(self) -> int:
        return super().now_ms() - 7 * 3_600_000


async def test_clocks_that_are_hours_apart_change_nothing(make_nodes: MakeNodes) -> None:
    nodes = make_nodes({1: COMBINED, 2: COMBINED, 3: COMBINED})
    nodes.clocks = {2: LateClock()}
    await nodes.start()
    async with await nodes.connect(2) as client:
        topic = await create(client, partitions=3)
        lost = await nodes.active_controller()
        if lost != 2:
            await nodes.kill(lost)
            server = nodes.running[2].server
            await eventually(
                lambda: all(
                    part.leader != lost for part in server.image.topics_by_name[topic.name].partitions
                )
            )
            assert server.image.brokers.keys() == {1, 2, 3}


async def test_a_controller_that_stops_does_not_dial_whom_it_hangs_up_on(make_nodes: MakeNodes) -> None:
    nodes = make_nodes({1: "controller", 2: "broker"})
    await nodes.start()
    role = nodes.running[1].server.controller_role
    assert role is not None
    broker = nodes.running[2].broker
    assert broker is not None
    role.close()
    role.connection_lost(2, broker.epoch)
    assert role._timer is None


async def test_a_controller_alone_is_ready_before_there_is_a_quorum(make_nodes: MakeNodes) -> None:
    nodes = make_nodes({1: "controller", 2: "controller", 3: "controller"})
    await nodes.begin(1)
    (listener,) = nodes.running[1].bound_listeners
    async with await Client.connect(listener.port) as client:
        assert await client.is_served()
    await nodes.start(2)
    assert await nodes.active_controller() in (1, 2)


async def test_a_node_id_that_is_used_twice_is_said_and_takes_nothing_over(
    make_nodes: MakeNodes, caplog: pytest.LogCaptureFixture
) -> None:
    nodes = make_nodes({1: COMBINED, 2: "broker"})
    await nodes.start()
    epoch = nodes.running[2].broker.epoch
    twin = make_nodes({1: COMBINED, 2: "broker"})
    twin.cluster_id = nodes.cluster_id
    twin._ports = nodes._ports
    starting = asyncio.ensure_future(twin.begin(2))
    await eventually(lambda: "another node may have this node.id" in caplog.text)
    starting.cancel()
    await asyncio.wait((starting,))
    assert nodes.running[1].server.image.brokers[2].epoch == epoch
