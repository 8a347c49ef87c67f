"""Three brokers that follow each other: what is acknowledged is on all of them, and stays when one goes."""

from mainstem.protocol.apis.k21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from mainstem.protocol.apis.k45_alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.replication.leader_state import LeaderState
from tests.broker.harness import (
    ask,
    batch,
    eventually,
    fetch,
    fetch_request,
    produce,
    produce_request,
    values_of,
)
from tests.broker.replication.cluster import BROKERS, CONTROLLER, Cluster
from tests.broker.replication.conftest import MakeCluster


def others(leader: int) -> list[int]:
    return [node_id for node_id in BROKERS if node_id != leader]


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
    follower = others(leader)[0]
    data = await fetch(await cluster.client(follower), topic)
    assert (data.error_code, data.high_watermark, values_of(data.records)) == (0, 1, [b"v"])


async def test_a_follower_that_falls_behind_leaves_those_in_sync_and_comes_back(
    make_cluster: MakeCluster,
) -> None:
    cluster = make_cluster(replica_lag_time_max_ms="400", replica_fetch_wait_max_ms="200")
    await cluster.start_all()
    topic = await cluster.create("t", min_insync_replicas="2")
    leader = await cluster.led(topic)
    await cluster.in_sync(topic)
    client = await cluster.client(leader)
    slow = cluster.partition(others(leader)[0], topic)
    with cluster.stalled(slow.node_id):
        # Who waits for the slow one is answered when it does not count any more.
        assert (await produce(client, topic, b"1")).error_code == ErrorCode.NONE
        led = cluster.partition(leader, topic).role
        assert isinstance(led, LeaderState)
        assert slow.node_id not in led.isr
    await cluster.in_sync(topic, 3)
    assert slow.log.log_end_offset == 1


async def test_acks_all_is_refused_while_too_few_are_in_sync(cluster: Cluster) -> None:
    topic = await cluster.create("t", min_insync_replicas="3")
    leader = await cluster.led(topic)
    client = await cluster.client(leader)
    assert (await produce(client, topic, b"1")).error_code == ErrorCode.NONE
    gone = others(leader)[0]
    await cluster.die(gone)
    await eventually(lambda: not cluster.partition(leader, topic).has_enough_replicas, "it is missed")
    assert (await produce(client, topic, b"2")).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert (await produce(client, topic, b"3", acks=1)).error_code == ErrorCode.NONE
    assert cluster.partition(leader, topic).high_watermark == 1, "nothing is committed by two alone"
    await cluster.start(gone)
    await cluster.in_sync(topic)
    assert cluster.partition(leader, topic).high_watermark == 2


async def test_acks_all_is_taken_by_a_topic_of_fewer_replicas_than_must_be_in_sync(cluster: Cluster) -> None:
    topic = await cluster.create("t", replicas=1, min_insync_replicas="2")
    leader = await cluster.led(topic)
    client = await cluster.client(leader)
    assert (await produce(client, topic, b"1")).error_code == ErrorCode.NONE
    assert cluster.partition(leader, topic).high_watermark == 1


async def test_deleted_records_are_gone_from_all_replicas_when_the_client_is_answered(
    cluster: Cluster,
) -> None:
    topic = await cluster.create("t")
    leader = await cluster.led(topic)
    client = await cluster.client(leader)
    for number in range(6):
        await produce(client, topic, b"%d" % number)
    part = DeleteRecordsPartition(partition_index=0, offset=4)
    request = DeleteRecordsRequest([DeleteRecordsTopic(topic.name, [part])], timeout_ms=10_000)
    (result,) = (await client.call(request)).topics[0].partitions
    assert (result.error_code, result.low_watermark) == (ErrorCode.NONE, 4)
    assert [cluster.partition(node_id, topic).log.log_start_offset for node_id in BROKERS] == [4, 4, 4]


async def test_a_consumer_is_sent_to_the_replica_in_its_own_rack(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(replica_selector_class="org.apache.kafka.common.replica.RackAwareReplicaSelector")
    await cluster.start_all()
    topic = await cluster.create("t")
    leader = await cluster.led(topic)
    client = await cluster.client(leader)
    await produce(client, topic, b"v")
    await cluster.in_sync(topic)
    near = others(leader)[1]
    for rack, preferred in ((f"rack-{near}", near), (f"rack-{leader}", -1), ("elsewhere", -1)):
        request = fetch_request({topic: [ask()]}, rack_id=rack)
        (data,) = (await client.call(request)).responses[0].partitions
        assert data.preferred_read_replica == preferred
        assert values_of(data.records) == ([] if preferred == near else [b"v"])


async def test_a_new_replica_begins_where_the_leaders_log_starts(cluster: Cluster) -> None:
    topic = await cluster.create("t", min_insync_replicas="1")
    leader = await cluster.led(topic)
    client = await cluster.client(leader)
    away = others(leader)[0]
    await cluster.die(away)
    for number in range(6):
        await produce(client, topic, b"%d" % number, acks=1)
    await cluster.in_sync(topic, 2)
    part = DeleteRecordsPartition(partition_index=0, offset=4)
    await client.call(DeleteRecordsRequest([DeleteRecordsTopic(topic.name, [part])], timeout_ms=10_000))
    await cluster.start(away)
    await cluster.in_sync(topic)
    assert cluster.partition(away, topic).log.log_start_offset == 4
    assert values_of(cluster.values(away, topic)) == [b"4", b"5"]


async def test_what_must_be_on_disk_first_is_not_left_behind_by_other_partitions(
    make_cluster: MakeCluster,
) -> None:
    """Nothing comes to these: a fetch for them alone would wait at the leader for longer than the client."""
    cluster = make_cluster(
        replica_fetch_wait_max_ms="25000", replica_lag_time_max_ms="60000", replica_socket_timeout_ms="60000"
    )
    await cluster.start_all()
    topic = await cluster.create("t", partitions=12, flush_messages="1")
    led: dict[int, list[int]] = {}
    for index in range(12):
        led.setdefault(await cluster.led(topic, index), []).append(index)
        await cluster.in_sync(topic, index=index)
    for leader, indexes in led.items():
        cluster.broker(leader).replicas.brokers._awaited_until_ms.clear()  # its followers are there
        client = await cluster.client(leader)
        for _ in range(5):
            request = produce_request(topic, {index: batch(b"v") for index in indexes}, -1)
            for answer in (await client.call(request)).responses[0].partition_responses:
                assert answer.error_code == ErrorCode.NONE


async def test_a_replica_that_was_moved_away_while_its_broker_was_down_is_gone_when_it_is_back(
    cluster: Cluster,
) -> None:
    topic = await cluster.create("t", replicas=2, min_insync_replicas="1")

    def replicas() -> tuple[int, ...]:
        part = cluster.nodes[CONTROLLER].server.image.partition(topic.name, 0)
        assert part is not None
        return part.replicas

    leader = await cluster.led(topic)
    (away,) = set(replicas()) - {leader}
    (free,) = set(BROKERS) - set(replicas())
    assert (await produce(await cluster.client(leader), topic, b"v")).error_code == ErrorCode.NONE
    folder = cluster.directory(away) / f"{topic.name}-0"
    assert folder.exists()
    await cluster.die(away)
    wish = ReassignableTopic(topic.name, [ReassignablePartition(0, [leader, free])])
    answer = await cluster.ask(leader, AlterPartitionReassignmentsRequest(topics=[wish]))
    assert answer.error_code == ErrorCode.NONE
    await eventually(lambda: set(replicas()) == {leader, free}, "it is moved")
    await cluster.start(away)
    assert not folder.exists()
    await cluster.in_sync(topic, 2)
    assert values_of(cluster.values(free, topic)) == [b"v"]
