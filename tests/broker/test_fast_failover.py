"""What a dead node led is led by others without waiting for its session, and it may come back at once.

Sessions are so long here that nothing would happen by their end.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mainstem.protocol.apis.k43_elect_leaders import ElectLeadersRequest
from mainstem.protocol.errors import ErrorCode
from tests.broker.conftest import MakeBroker
from tests.broker.coordination.test_other_brokers import introduce
from tests.broker.harness import eventually
from tests.broker.nodes import Nodes
from tests.broker.test_cluster_nodes import COMBINED, create

SESSION = {"broker.session.timeout.ms": 3_600_000}


@pytest.fixture
def nodes(runner: asyncio.Runner, tmp_path: Path) -> Iterator[Nodes]:
    made = Nodes(tmp_path, dict.fromkeys((1, 2, 3), COMBINED), SESSION)
    runner.run(made.start())
    yield made
    runner.run(made.stop())


def leaders(nodes: Nodes, at: int, topic: str) -> set[int]:
    found = nodes.running[at].server.image.topics_by_name.get(topic)
    return {part.leader for part in found.partitions} if found is not None else set()


@pytest.mark.parametrize("victim", ["a broker", "the active controller"])
async def test_others_lead_what_a_dead_node_led(nodes: Nodes, victim: str) -> None:
    active = await nodes.active_controller()
    others = [node_id for node_id in nodes.running if node_id != active]
    lost, left = (active, others[0]) if victim == "the active controller" else (others[0], others[1])
    async with await nodes.connect(left) as client:
        topic = await create(client, partitions=6)
        await nodes.kill(lost)
        await eventually(lambda: lost not in leaders(nodes, left, topic.name), "others lead")
        server = nodes.running[left].server
        await eventually(lambda: server.image.brokers[lost].fenced, "it is fenced")
        await nodes.start(lost)
        await eventually(lambda: not server.image.brokers[lost].fenced, "it is back")
        assert server.image.brokers[lost].epoch == nodes.running[lost].broker.epoch


async def test_what_only_a_dead_broker_has_waits_for_it(nodes: Nodes) -> None:
    active = await nodes.active_controller()
    lost, left = (node_id for node_id in nodes.running if node_id != active)
    async with await nodes.connect(left) as client:
        shared = await create(client, partitions=6)
        alone = await create(client, partitions=3, copies=1)
        await eventually(lambda: lost in leaders(nodes, left, alone.name))
        await nodes.kill(lost)
        await eventually(lambda: lost not in leaders(nodes, left, shared.name), "others lead")
        assert lost in leaders(nodes, left, alone.name), "nobody else could"
        await nodes.start(lost)
        server = nodes.running[left].server
        await eventually(lambda: lost in leaders(nodes, left, alone.name))
        await eventually(lambda: not server.image.brokers[lost].fenced, "it is back")


async def test_preferred_leaders_come_back_when_they_are_asked_for(nodes: Nodes) -> None:
    active = await nodes.active_controller()
    lost, left = (node_id for node_id in nodes.running if node_id != active)
    async with await nodes.connect(left) as client:
        topic = await create(client, partitions=6)
        await nodes.kill(lost)
        await eventually(lambda: lost not in leaders(nodes, left, topic.name), "others lead")
        await nodes.start(lost)

        async def asked() -> Any:
            answer = await client.call(ElectLeadersRequest(0, None))
            assert answer.error_code == ErrorCode.NONE
            return answer

        await eventually_in_sync(nodes, left, topic.name)
        await asked()
        await eventually(lambda: lost in leaders(nodes, left, topic.name), "it leads again")


async def test_a_listener_that_outlives_the_connections_of_a_dying_broker_is_dialled_again(
    make_broker: MakeBroker,
) -> None:
    broker = await make_broker(SESSION)
    accepted = asyncio.Event()
    listener = await asyncio.start_server(lambda reader, writer: accepted.set(), "127.0.0.1", 0)
    await introduce(broker, 2, listener.sockets[0].getsockname()[1])
    server = broker.node.server
    assert server.controller_role is not None
    server.controller_role.connection_lost(2, server.image.brokers[2].epoch)
    await accepted.wait()
    assert not server.image.brokers[2].fenced
    listener.close()
    await eventually(lambda: server.image.brokers[2].fenced, "it is fenced")


async def eventually_in_sync(nodes: Nodes, at: int, topic: str) -> None:
    """All replicas of all partitions are in sync."""

    def all_are() -> bool:
        partitions = nodes.running[at].server.image.topics_by_name[topic].partitions
        return all(len(part.isr) == len(part.replicas) for part in partitions)

    await eventually(all_are, "all are in sync")
