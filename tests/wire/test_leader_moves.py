"""Two nodes of Apache Kafka: partitions are read and written on while their leaders move."""

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from mainstem.wire import Cluster, WireError
from tests.support.target import await_leaders, unique_name
from tests.wire.helpers import batch, numbered, options_of, values_of, with_offsets
from tests.wire.kafka_nodes import KafkaNode, await_ready, new_cluster_id, start_node
from tests.wire.ports import free_ports

PARTITIONS = 4


def start_two() -> tuple[KafkaNode, KafkaNode]:
    """The first node is the controller, too."""
    controller, *ports = free_ports(3)
    cluster_id = new_cluster_id()
    nodes: list[KafkaNode] = []
    for node_id, port in enumerate(ports, 1):
        listeners = f"PLAINTEXT://127.0.0.1:{port}"
        roles = "broker"
        if node_id == 1:
            listeners, roles = f"{listeners},CONTROLLER://127.0.0.1:{controller}", "broker,controller"
        settings = {
            "process.roles": roles,
            "node.id": str(node_id),
            "listeners": listeners,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        }
        nodes.append(start_node(cluster_id, port, settings))
    return nodes[0], nodes[1]


def leaders(cluster: Cluster, topic: str) -> set[int]:
    return {part.leader for part in cluster.metadata([topic])[topic].partitions.values()}


@pytest.mark.peer
def test_reading_and_writing_go_on_while_leaders_move() -> None:
    first, second = start_two()
    topic = unique_name("moving")
    admin = AdminClient({"bootstrap.servers": first.bootstrap_servers})

    def both_are_there(_: Cluster) -> bool:
        return len(admin.list_topics(timeout=30).brokers) == 2

    await_ready(first, both_are_there)
    admin.create_topics([NewTopic(topic, PARTITIONS, 2)])[topic].result(30)
    await_leaders(admin, topic, PARTITIONS)
    values = numbered(2000, size=500)
    # The second node is named first: the client has to do without it later.
    with Cluster(options_of(f"{second.bootstrap_servers},{first.bootstrap_servers}")) as cluster:
        assert leaders(cluster, topic) == {1, 2}
        producer = cluster.init_producer_id()
        batches = [batch(values[at : at + 50], producer=producer, sequence=at) for at in range(0, 2000, 50)]
        partitions = [(topic, number) for number in range(PARTITIONS)]
        cluster.produce(dict.fromkeys(partitions, batches[:20]))
        reading = cluster.stream(dict.fromkeys(partitions, (0, 2000)), partition_bytes=100_000)
        found: dict[tuple[str, int], list[tuple[int, bytes | None]]] = {name: [] for name in partitions}
        for _ in range(4):
            partition, fetched = next(reading)
            found[partition] += values_of(fetched)
        second.stop()
        cluster.produce(dict.fromkeys(partitions, batches[20:]))
        for partition, fetched in reading:
            found[partition] += values_of(fetched)
        assert leaders(cluster, topic) == {1}
        assert found == {partition: with_offsets(values) for partition in partitions}
        first.stop()
        options = options_of(first.bootstrap_servers, default_api_timeout_ms="500")
        with Cluster(options) as late, pytest.raises(WireError, match="no broker answers"):
            late.metadata()
