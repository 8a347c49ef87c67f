"""Apache Kafka's own command-line tools, the Java client inside them, take the broker for Kafka.

A Java start costs a second, so each test gets as much as it can out of one run.
"""

import json
import re
import time
from pathlib import Path

import pytest

from tests.support.clients import Message, read_confluent, write_kafka_python
from tests.support.kafka_peer import kafka_tool
from tests.support.target import KEEP_FOREVER, Target, await_leaders, unique_name, when_settled
from tests.support.tool_server import ToolResult

pytestmark = pytest.mark.peer


def _tool(target: Target, name: str, *arguments: str, stdin: str = "") -> ToolResult:
    return kafka_tool(name, "--bootstrap-server", target.bootstrap_servers, *arguments, stdin=stdin)


def test_topic_command_creates_describes_grows_and_deletes(target: Target) -> None:
    name = unique_name()
    created = _tool(
        target,
        "TopicCommand",
        *("--create", "--topic", name, "--partitions", "2", "--replication-factor", "1"),
        *("--config", "retention.ms=60000", "--config", "cleanup.policy=compact"),
    )
    assert created.check() == f"Created topic {name}.\n"
    await_leaders(target.admin(), name, 2)
    again = _tool(target, "TopicCommand", "--create", "--topic", name)
    assert again.returncode == 1
    assert "TopicExistsException" in again.stdout

    _tool(target, "TopicCommand", "--alter", "--topic", name, "--partitions", "3").check()
    fewer = _tool(target, "TopicCommand", "--alter", "--topic", name, "--partitions", "1")
    assert fewer.returncode == 1
    assert "InvalidPartitionsException" in fewer.stdout

    def describe() -> ToolResult:
        return _tool(target, "TopicCommand", "--describe", "--topic", name)

    described = when_settled(lambda: describe().check(), lambda text: "PartitionCount: 3" in text)
    head, *partitions = described.splitlines()
    configs = "cleanup.policy=compact,retention.ms=60000"
    assert re.fullmatch(
        rf"Topic: {name}\tTopicId: [\w-]{{22}}\tPartitionCount: 3\tReplicationFactor: 1\tConfigs: (.*)", head
    )
    assert sorted(head.rpartition(" ")[2].split(",")) == configs.split(",")
    assert len(partitions) == 3
    for number, line in enumerate(partitions):
        start = rf"\tTopic: {name}\tPartition: {number}\t"
        assert re.fullmatch(start + r"Leader: (\d+)\tReplicas: \1\tIsr: \1\tElr: \tLastKnownElr: ", line)

    assert name in _tool(target, "TopicCommand", "--list").check().splitlines()
    _tool(target, "TopicCommand", "--delete", "--topic", name).check()
    gone = when_settled(describe, lambda found: found.returncode == 1)
    assert gone.returncode == 1
    assert f"Topic '{name}' does not exist as expected" in gone.stdout


def test_console_producer_and_consumer_without_a_group(target: Target, topic: str) -> None:
    _tool(
        target,
        "ConsoleProducer",
        *("--topic", topic, "--compression-codec", "lz4", "--property", "parse.key=true"),
        *("--property", "parse.headers=true", "--property", "null.marker=NULL"),
        stdin="a:1,b:2\tk1\tone\nNULL\tk2\tNULL\nNULL\tNULL\tthree\n",
    ).check()
    assert [(m.key, m.value, m.headers) for m in read_confluent(target, topic, 3)] == [
        (b"k1", b"one", (("a", b"1"), ("b", b"2"))),
        (b"k2", None, ()),
        (None, b"three", ()),
    ]
    write_kafka_python(
        target, topic, [Message(b"snappy", timestamp_ms=int(time.time() * 1000))], codec="snappy"
    )
    formatting = [
        part
        for name in ("offset", "key", "headers", "partition")
        for part in ("--formatter-property", f"print.{name}=true")
    ]
    consumed = _tool(
        target,
        "consumer.ConsoleConsumer",
        *("--topic", topic, "--partition", "0", "--offset", "1", "--max-messages", "3"),
        *("--timeout-ms", "20000", *formatting),
    ).check()
    assert consumed.splitlines() == [
        "Partition:0\tOffset:1\tNO_HEADERS\tk2\tnull",
        "Partition:0\tOffset:2\tNO_HEADERS\tnull\tthree",
        "Partition:0\tOffset:3\tNO_HEADERS\tnull\tsnappy",
    ]


def test_get_offset_shell_knows_earliest_latest_and_times(target: Target) -> None:
    topic = target.create_topic(partitions=2, configs=KEEP_FOREVER)
    messages = [Message(b"x", timestamp_ms=1000 + number) for number in range(5)]
    messages[1] = Message(b"latest time", timestamp_ms=9000)
    write_kafka_python(target, topic, messages, partition=1)

    def offsets(time: str) -> list[str]:
        arguments = ("--topic", f"^{topic}$", "--time", time)
        return _tool(target, "GetOffsetShell", *arguments).check().splitlines()

    assert offsets("latest") == [f"{topic}:0:0", f"{topic}:1:5"]
    assert offsets("earliest") == [f"{topic}:0:0", f"{topic}:1:0"]
    assert offsets("max-timestamp") == [f"{topic}:1:1"]
    assert offsets("1003") == [f"{topic}:1:1"]


def test_the_java_producers_write_in_every_codec(target: Target, topic: str, tmp_path: Path) -> None:
    performance = kafka_tool(
        "ProducerPerformance",
        *("--topic", topic, "--num-records", "2000", "--record-size", "100", "--throughput", "-1"),
        *("--command-property", f"bootstrap.servers={target.bootstrap_servers}", "compression.type=snappy"),
    ).check()
    assert performance.startswith("2000 records sent")

    acknowledged = 2000
    for codec in ("gzip", "zstd"):
        config = tmp_path / f"{codec}.properties"
        config.write_text(f"compression.type={codec}\n")
        output = _tool(
            target,
            "VerifiableProducer",
            *("--topic", topic, "--max-messages", "500", "--command-config", str(config)),
        ).check()
        events = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        offsets = [event["offset"] for event in events if event["name"] == "producer_send_success"]
        assert offsets == list(range(acknowledged, acknowledged + 500))
        acknowledged += 500
    messages = read_confluent(target, topic, acknowledged)
    assert [message.value for message in messages[2500:]] == [b"%d" % number for number in range(500)]


def test_config_command_alters_and_describes_topic_and_broker(target: Target, topic: str) -> None:
    def config(*arguments: str) -> str:
        return _tool(target, "kafka.admin.ConfigCommand", *arguments).check()

    entity = ("--entity-type", "topics", "--entity-name", topic)
    altered = config("--alter", *entity, "--add-config", "retention.ms=1000000,max.message.bytes=2000")
    assert altered == f"Completed updating config for topic {topic}.\n"
    described = when_settled(
        lambda: config("--describe", *entity).splitlines(), lambda lines: len(lines) == 3
    )
    assert described[0] == f"Dynamic configs for topic {topic} are:"
    assert sorted(line.strip() for line in described[1:]) == [
        "max.message.bytes=2000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:max.message.bytes=2000, "
        "DEFAULT_CONFIG:message.max.bytes=1048588}",
        "retention.ms=1000000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=1000000}",
    ]
    config("--alter", *entity, "--delete-config", "retention.ms")
    left = when_settled(lambda: config("--describe", *entity), lambda text: "retention.ms=" not in text)
    assert "retention.ms=" not in left
    refused = _tool(
        target, "kafka.admin.ConfigCommand", "--alter", *entity, "--add-config", "retention.ms=soon"
    )
    assert refused.returncode != 0
    assert "InvalidConfigurationException" in refused.stdout + refused.stderr


def test_delete_records_and_log_dirs(target: Target, topic: str, tmp_path: Path) -> None:
    write_kafka_python(target, topic, [Message(b"x" * 100) for _ in range(10)])
    request = tmp_path / "delete.json"
    partition = {"topic": topic, "partition": 0, "offset": 4}
    request.write_text(json.dumps({"version": 1, "partitions": [partition]}))
    deleted = _tool(target, "DeleteRecordsCommand", "--offset-json-file", str(request)).check()
    assert f"partition: {topic}-0\tlow_watermark: 4" in deleted
    earliest = _tool(target, "GetOffsetShell", "--topic", f"^{topic}$", "--time", "earliest").check()
    assert earliest == f"{topic}:0:4\n"

    output = _tool(target, "LogDirsCommand", "--describe", "--topic-list", topic).check()
    (broker,) = json.loads(output.splitlines()[-1])["brokers"]
    (log_dir,) = broker["logDirs"]
    assert log_dir["logDir"] == str(target.log_dir)
    assert log_dir["error"] is None
    (partition,) = log_dir["partitions"]
    assert partition["partition"] == f"{topic}-0"
    assert partition["size"] > 1000
    assert (partition["offsetLag"], partition["isFuture"]) == (0, False)


def test_cluster_and_version_tools(target: Target) -> None:
    server = ("--bootstrap-server", target.bootstrap_servers)
    assert re.fullmatch(r"Cluster ID: [\w-]{22}\n", kafka_tool("ClusterTool", "cluster-id", *server).check())
    versions = _tool(target, "BrokerApiVersionsCommand").check()
    served = dict(re.findall(r"^\t(\w+)\(\d+\): (.*?) \[usable: ", versions, re.M))
    assert served["Metadata"] == "0 to 13"
    assert served["Produce"] == "0 to 13"
    assert served["ApiVersions"] == "0 to 4"
