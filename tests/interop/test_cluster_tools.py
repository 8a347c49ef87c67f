"""Apache Kafka's own tools on a cluster of three Mainstem nodes: what they print of it is true."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from mainstem.testing import Cluster
from tests.faults.cluster_faults import SETTINGS, await_in_sync
from tests.faults.cluster_load import make_topic
from tests.support.kafka_peer import kafka_tool

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]
TOPIC = "tools"
PARTITIONS = 3


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(3, SETTINGS) as cluster:
        make_topic(cluster.bootstrap_servers, TOPIC, PARTITIONS)
        yield cluster


def tool(cluster: Cluster, name: str, *arguments: str) -> str:
    return kafka_tool(name, "--bootstrap-server", cluster.bootstrap_servers, *arguments).check()


def fields(text: str) -> dict[str, str]:
    """`Name:   value` lines."""
    return {name: value.strip() for name, _, value in (line.partition(":") for line in text.splitlines())}


def test_metadata_quorum_tells_of_the_quorum(cluster: Cluster) -> None:
    status = fields(tool(cluster, "MetadataQuorumCommand", "describe", "--status"))
    assert int(status["LeaderId"]) == cluster.controller()
    assert int(status["HighWatermark"]) > 0
    assert int(status["MaxFollowerLag"]) >= 0
    assert [voter["id"] for voter in json.loads(status["CurrentVoters"])] == [1, 2, 3]
    assert status["CurrentObservers"] == "[]"
    head, *rows = tool(cluster, "MetadataQuorumCommand", "describe", "--replication").splitlines()
    assert head.split()[:4] == ["NodeId", "DirectoryId", "LogEndOffset", "Lag"]
    assert sorted((row.split()[0], row.split()[-1]) for row in rows if row.strip()) in (
        [("1", "Follower"), ("2", "Follower"), ("3", "Leader")],
        [("1", "Follower"), ("2", "Leader"), ("3", "Follower")],
        [("1", "Leader"), ("2", "Follower"), ("3", "Follower")],
    )


def test_cluster_tool_and_features(cluster: Cluster) -> None:
    # The options of this tool belong to its commands: they come after them.
    server = ("--bootstrap-server", cluster.bootstrap_servers)
    cluster_id = kafka_tool("ClusterTool", "cluster-id", *server).check()
    assert re.search(r"Cluster ID: [\w-]{22}", cluster_id)
    endpoints = kafka_tool("ClusterTool", "list-endpoints", *server).check()
    for node in cluster.node_ids:
        assert cluster.address(node).rpartition(":")[2] in endpoints
    described = tool(cluster, "FeatureCommand", "describe")
    assert re.search(
        r"Feature: metadata\.version\s+SupportedMinVersion: \S+\s+SupportedMaxVersion: 4\.3", described
    )


def test_partitions_that_lack_a_copy_are_found_and_led_again_by_the_first(cluster: Cluster) -> None:
    leader = cluster.leader_of(TOPIC, 0)
    assert tool(cluster, "TopicCommand", "--describe", "--under-replicated-partitions") == ""
    cluster.kill(leader)
    assert cluster.leader_of(TOPIC, 0) != leader
    lacking = tool(cluster, "TopicCommand", "--describe", "--under-replicated-partitions").splitlines()
    assert len([line for line in lacking if f"Topic: {TOPIC}\t" in line]) == PARTITIONS
    assert tool(cluster, "TopicCommand", "--describe", "--unavailable-partitions") == ""
    cluster.start(leader)
    await_in_sync(cluster)
    elected = tool(cluster, "LeaderElectionCommand", "--election-type", "preferred", "--all-topic-partitions")
    assert "Error" not in elected
    assert cluster.leader_of(TOPIC, 0) == leader


def test_partitions_are_moved(cluster: Cluster, tmp_path: Path) -> None:
    make_topic(cluster.bootstrap_servers, "moved", 1, copies=1)
    here = cluster.leader_of("moved", 0)
    there = next(node for node in cluster.node_ids if node != here)
    plan = {"version": 1, "partitions": [{"topic": "moved", "partition": 0, "replicas": [there]}]}
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(plan))
    command = ("reassign.ReassignPartitionsCommand", "--reassignment-json-file", str(file))
    assert "Successfully started" in tool(cluster, *command, "--execute")
    await_in_sync(cluster, ["moved"])
    assert "is completed" in tool(cluster, *command, "--verify")
    assert cluster.leader_of("moved", 0) == there
