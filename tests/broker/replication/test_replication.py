"""Three brokers that follow each other: what is acknowledged is on all of them, and stays when one goes."""

from mainstem.protocol.errors import ErrorCode
from tests.broker.harness import eventually, fetch, produce, values_of
from tests.broker.replication.cluster import BROKERS, Cluster


async def test_what_is_acknowledged_by_all_is_on_every_replica_byte_for_byte(cluster: Cluster) -> None:
    topic = await cluster.create("t")
    leader = await cluster.led(topic)
    client = await cluster.client(leader)
    for number in range(20):
        result = await produce(client, topic, b"%d" % number)
        assert (result.error_code, result.base_offset) == (ErrorCode.NONE, number)
    await cluster.in_sync(topic)
    logs = {cluster.values(node_id, topic) for node_id in BROKERS}
    assert len(logs) == 1
    assert values_of(logs.pop()) == [b"%d" % number for number in range(20)]


async def test_another_broker_leads_when_the_leader_dies_and_it_follows_when_it_is_back(
    cluster: Cluster,
) -> None:
    topic = await cluster.create("t", min_insync_replicas="2")
    first = await cluster.led(topic)
    client = await cluster.client(first)
    for number in range(5):
        assert (await produce(client, topic, b"%d" % number)).error_code == ErrorCode.NONE
    await cluster.die(first)
    await eventually(lambda: cluster.leader_of(topic) not in (None, first), "another leader")
    second = await cluster.led(topic)
    client = await cluster.client(second)
    assert (await produce(client, topic, b"5")).error_code == ErrorCode.NONE
    await cluster.start(first)
    await cluster.in_sync(topic)
    logs = {cluster.values(node_id, topic) for node_id in BROKERS}
    assert len(logs) == 1
    assert values_of(logs.pop()) == [b"%d" % number for number in range(6)]


async def test_consumers_read_from_a_follower_what_it_knows_to_be_committed(cluster: Cluster) -> None:
    topic = await cluster.create("t")
    leader = await cluster.led(topic)
    await produce(await cluster.client(leader), topic, b"v")
    await cluster.in_sync(topic)
    follower = next(node_id for node_id in BROKERS if node_id != leader)
    data = await fetch(await cluster.client(follower), topic)
    assert (data.error_code, data.high_watermark, values_of(data.records)) == (0, 1, [b"v"])
