"""Apache Kafka's own tools on a cluster of three Mainstem nodes: what they print of it is true."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from mainstem.testing import Cluster
from tests.faults.cluster_faults import SETTINGS, await_in_sync
from tests.faults.cluster_load import make_topic
from tests.interop.metadata_shell import shown
from tests.support.group_views import until
from tests.support.kafka_peer import kafka_tool
from tests.support.target import Target
from tests.support.tool_server import ToolResult

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]
TOPIC = "tools"
PARTITIONS = 3
LISTED = (TOPIC, "at-minimum", "below-minimum", "one-copy")
NOBODY = -1
MANY_SNAPSHOTS = {"metadata.log.max.record.bytes.between.snapshots": 5000}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(3, SETTINGS | MANY_SNAPSHOTS) as cluster:
        make_topic(cluster.bootstrap_servers, TOPIC, PARTITIONS)
        yield cluster


def tool(cluster: Cluster, name: str, *arguments: str) -> str:
    return kafka_tool(name, "--bootstrap-server", cluster.bootstrap_servers, *arguments).check()


def listed(cluster: Cluster, option: str) -> list[tuple[str, int]]:
    """The partitions that TopicCommand describes with an option, of topics that no other test makes."""
    text = tool(cluster, "TopicCommand", "--describe", "--exclude-internal", option)
    found = re.findall(r"Topic: (\S+)\tPartition: (\d+)\t", text)
    assert len(found) == len(text.splitlines()), text
    return sorted((topic, int(part)) for topic, part in found if topic in LISTED)


def place(cluster: Cluster, topic: str, replicas: list[int], **configs: str) -> None:
    """Make a topic of one partition on these nodes."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    new = NewTopic(topic, 1, replica_assignment=[replicas], config=configs)
    admin.create_topics([new])[topic].result(30)


def leader_and_isr(cluster: Cluster, topic: str) -> tuple[int | None, list[int]]:
    """As a broker knows them, which may not have heard of the topic yet."""
    found = cluster.topics().get(topic)
    if found is None:
        return None, []
    return found.partitions[0].leader, list(found.partitions[0].isr)


def produce_one(cluster: Cluster, topic: str) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    producer.produce(topic, b"v", partition=0)
    assert producer.flush(30) == 0


def assignment(lines: list[str], head: str) -> list[int]:
    (partition,) = json.loads(lines[lines.index(head) + 1])["partitions"]
    replicas: list[int] = partition["replicas"]
    return replicas


def voters(cluster: Cluster) -> list[dict[str, Any]]:
    described = tool(cluster, "MetadataQuorumCommand", "describe", "--status")
    found: list[dict[str, Any]] = json.loads(fields(described)["CurrentVoters"])
    return found


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
    preferred = cluster.topics()[TOPIC].partitions[0].replicas[0]
    others = [node for node in cluster.node_ids if node != leader]
    place(cluster, "at-minimum", [leader, *others], **{"min.insync.replicas": "2"})
    place(cluster, "below-minimum", [leader, *others], **{"min.insync.replicas": "3"})
    place(cluster, "one-copy", [leader])
    assert listed(cluster, "--under-replicated-partitions") == []
    cluster.kill(leader)
    assert cluster.leader_of(TOPIC, 0) != leader
    until(lambda: leader_and_isr(cluster, "one-copy")[0] == NOBODY, "nobody to lead")
    lacking = [(TOPIC, part) for part in range(PARTITIONS)]
    lacking += [("at-minimum", 0), ("below-minimum", 0), ("one-copy", 0)]
    assert listed(cluster, "--under-replicated-partitions") == sorted(lacking)
    assert listed(cluster, "--under-min-isr-partitions") == [("below-minimum", 0), ("one-copy", 0)]
    assert ("at-minimum", 0) in listed(cluster, "--at-min-isr-partitions")
    assert listed(cluster, "--unavailable-partitions") == [("one-copy", 0)]
    cluster.start(leader)
    await_in_sync(cluster)
    for option in ("--under-replicated-partitions", "--unavailable-partitions"):
        assert listed(cluster, option) == []
    assert listed(cluster, "--under-min-isr-partitions") == [("one-copy", 0)], "the cluster wants two"
    elected = tool(cluster, "LeaderElectionCommand", "--election-type", "preferred", "--all-topic-partitions")
    assert "Error" not in elected
    until(lambda: cluster.leader_of(TOPIC, 0) == preferred, "the preferred one to lead")


def test_a_copy_that_lacks_records_leads_when_that_is_asked_for(cluster: Cluster) -> None:
    active = cluster.controller()
    last, lagging = (node for node in cluster.node_ids if node != active)
    # With one copy that must be in sync nobody else is eligible.
    place(cluster, "unclean", [last, lagging], **{"min.insync.replicas": "1"})
    cluster.kill(lagging)
    until(lambda: leader_and_isr(cluster, "unclean") == (last, [last]), "the other to lag")
    produce_one(cluster, "unclean")
    cluster.kill(last)
    cluster.start(lagging)
    until(lambda: leader_and_isr(cluster, "unclean")[0] == NOBODY, "nobody to lead")
    election = ("--topic", "unclean", "--partition", "0", "--election-type")
    server = ("--bootstrap-server", cluster.bootstrap_servers)
    refused = kafka_tool("LeaderElectionCommand", *server, *election, "preferred")
    assert refused.returncode == 1
    assert "PreferredLeaderNotAvailableException" in refused.stdout + refused.stderr
    elected = tool(cluster, "LeaderElectionCommand", *election, "unclean")
    assert elected == "Successfully completed leader election (UNCLEAN) for partitions unclean-0\n"
    assert cluster.leader_of("unclean", 0) == lagging
    again = tool(cluster, "LeaderElectionCommand", *election, "unclean")
    assert again == "Valid replica already elected for partitions unclean-0\n"
    cluster.start(last)
    await_in_sync(cluster)
    ends = tool(cluster, "GetOffsetShell", "--topic", "^unclean$")
    assert ends == "unclean:0:0\n", "what was not copied is gone"


def test_features_are_lowered_and_raised(cluster: Cluster) -> None:
    level = "eligible.leader.replicas.version"
    lowered = tool(cluster, "FeatureCommand", "downgrade", "--feature", f"{level}=0")
    assert lowered == f"{level} was downgraded to 0.\n"
    described = tool(cluster, "FeatureCommand", "describe")
    assert re.search(rf"Feature: {level}.*FinalizedVersionLevel: 0", described)
    tried = tool(cluster, "FeatureCommand", "upgrade", "--feature", f"{level}=1", "--dry-run")
    assert tried == f"{level} can be upgraded to 1.\n"
    raised = tool(cluster, "FeatureCommand", "upgrade", "--feature", f"{level}=1")
    assert raised == f"{level} was upgraded to 1.\n"


@pytest.mark.parametrize(
    "options",
    [
        ("downgrade", "--metadata", "4.0-IV0"),
        ("downgrade", "--metadata", "3.3-IV0"),
        ("downgrade", "--metadata", "3.3-IV0", "--unsafe"),
        ("upgrade", "--feature", "metadata.version=29"),
        ("upgrade", "--feature", "group.version=7"),
        ("downgrade", "--feature", "transaction.version=3"),
        ("disable", "--feature", "metadata.version"),
    ],
    ids=" ".join,
)
def test_features_that_cannot_be_changed_so_are_refused_as_apache_kafka_does(
    cluster: Cluster, kafka: Target, options: tuple[str, ...]
) -> None:
    """Both are only asked what they would do, and say why not in words of their own."""
    ours, theirs = (
        kafka_tool("FeatureCommand", "--bootstrap-server", servers, *options, "--dry-run")
        for servers in (cluster.bootstrap_servers, kafka.bootstrap_servers)
    )
    assert theirs.returncode == 1
    assert (ours.returncode, _without_reasons(ours)) == (1, _without_reasons(theirs))


def _without_reasons(result: ToolResult) -> str:
    return re.sub(r"(Nothing was updated|The update failed for all features).*", "", result.stdout)


def test_a_broker_is_unregistered_and_comes_back(cluster: Cluster) -> None:
    gone = next(node for node in cluster.node_ids if node != cluster.controller())
    cluster.stop(gone)
    server = ("--bootstrap-server", cluster.bootstrap_servers)
    unregistered = kafka_tool("ClusterTool", "unregister", *server, "--id", str(gone))
    assert unregistered.check() == f"Broker {gone} is no longer registered.\n"
    again = kafka_tool("ClusterTool", "unregister", *server, "--id", str(gone))
    assert "BrokerIdNotRegisteredException" in again.stdout + again.stderr
    endpoints = kafka_tool("ClusterTool", "list-endpoints", *server, "--include-fenced-brokers").check()
    assert cluster.address(gone).rpartition(":")[2] not in endpoints
    cluster.start(gone)
    await_in_sync(cluster)


def test_partitions_are_moved(cluster: Cluster, tmp_path: Path) -> None:
    make_topic(cluster.bootstrap_servers, "moved", 1, copies=1)
    here = cluster.leader_of("moved", 0)
    there = next(node for node in cluster.node_ids if node != here)
    topics, plan = tmp_path / "topics.json", tmp_path / "plan.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": "moved"}]}))
    reassign = "reassign.ReassignPartitionsCommand"
    generated = tool(
        cluster,
        reassign,
        "--generate",
        "--topics-to-move-json-file",
        str(topics),
        "--broker-list",
        f"{there}",
    ).splitlines()
    assert assignment(generated, "Current partition replica assignment") == [here]
    assert assignment(generated, "Proposed partition reassignment configuration") == [there]
    plan.write_text(generated[-1] or generated[-2])
    command = (reassign, "--reassignment-json-file", str(plan))
    throttles = ("--throttle", "10000000", "--replica-alter-log-dirs-throttle", "20000000")
    executed = tool(cluster, *command, "--execute", *throttles)
    assert "The inter-broker throttle limit was set to 10000000 B/s" in executed
    assert "The replica-alter-dir throttle limit was set to 20000000 B/s" in executed
    assert "Successfully started partition reassignment for moved-0" in executed
    verified = ""

    def is_completed() -> bool:
        nonlocal verified
        verified = tool(cluster, *command, "--verify")
        return "Reassignment of partition moved-0 is completed." in verified

    until(is_completed, lambda: verified)
    assert "Clearing broker-level throttles on brokers 1,2,3" in verified
    assert "Clearing topic-level throttles on topic moved" in verified
    assert cluster.leader_of("moved", 0) == there
    left = tool(
        cluster, "kafka.admin.ConfigCommand", "--describe", "--entity-type", "brokers", "--entity-name", "1"
    )
    assert "throttled" not in left
    assert "No partition reassignments found." in tool(cluster, reassign, "--list")


def test_the_metadata_of_a_node_can_be_read(cluster: Cluster) -> None:
    folder = cluster.data_dir(1) / "__cluster_metadata-0"

    def snapshots() -> list[Path]:
        return [path for path in folder.glob("*.checkpoint") if not path.name.startswith("0" * 20)]

    until(snapshots, "a snapshot")
    newest = max(snapshots())
    for path in (newest, *folder.glob("*.log")):
        dumped = kafka_tool("DumpLogSegments", "--cluster-metadata-decoder", "--files", str(path)).check()
        assert "isvalid: false" not in dumped
        assert "_RECORD" in dumped
    values = shown(Path(shutil.copy(newest, cluster.data_dir(1).parent)))
    brokers = {name for name in values if name.startswith("cluster/brokers/")}
    assert len(brokers) >= 2, "one may be unregistered for a while"
    assert brokers <= {f"cluster/brokers/{node}" for node in cluster.node_ids}
    assert values[f"topics/byName/{TOPIC}/name"] == TOPIC
    assert len([name for name in values if name.startswith(f"topics/byName/{TOPIC}/")]) == PARTITIONS + 2


def test_voters_are_changed_by_way_of_a_broker_that_does_not_decide(cluster: Cluster) -> None:
    active = cluster.controller()
    asked, changed = (node for node in cluster.node_ids if node != active)
    server = ("--bootstrap-server", cluster.address(asked))
    upgrade = ("FeatureCommand", *server, "upgrade", "--feature", "kraft.version=1")
    until(lambda: kafka_tool(*upgrade).returncode == 0, "all voters to be known")
    meta = (cluster.data_dir(changed) / "meta.properties").read_text()
    directory = re.findall(r"^directory\.id=(\S+)$", meta, re.M)[0]
    whom = ("--controller-id", str(changed), "--controller-directory-id", directory)
    removed = kafka_tool("MetadataQuorumCommand", *server, "remove-controller", *whom).check()
    assert removed == f"Removed  KRaft controller {changed} with directory id {directory}\n"
    assert [voter["id"] for voter in voters(cluster)] == sorted([active, asked])
    properties = cluster.data_dir(changed).with_name(f"node-{changed}.properties")
    added = kafka_tool(
        "MetadataQuorumCommand", *server, "--command-config", str(properties), "add-controller"
    ).check()
    assert f"Added controller {changed} with directory id {directory}" in added
    assert [voter["id"] for voter in voters(cluster)] == [1, 2, 3]
