"""Apache Kafka's tools for settings, log directories and offsets, unchanged, against both brokers: what they
print is the same, but for names of folders, sizes of disks and words in error messages.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mainstem.protocol.apis.k34_alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from mainstem.protocol.apis.k35_describe_log_dirs import DescribeLogDirsRequest
from mainstem.protocol.apis.k45_alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from mainstem.protocol.apis.k46_list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.testing import Broker
from tests.cli.command import run_command
from tests.support.clients import Message, write_kafka_python
from tests.support.kafka_peer import end_own_kafka, kafka_tool, start_own_kafka
from tests.support.target import KEEP_FOREVER, Target, when_settled
from tests.support.tool_server import ToolResult
from tests.support.wire import WireClient

pytestmark = pytest.mark.peer

CONFIGS, LOG_DIRS = "kafka.admin.ConfigCommand", "LogDirsCommand"
REASSIGN = "reassign.ReassignPartitionsCommand"


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Target]]:
    """Mainstem and Apache Kafka, each with two log directories."""
    folder = tmp_path_factory.mktemp("dirs")
    dirs = {name: f"{folder / name / 'one'},{folder / name / 'two'}" for name in ("kafka", "mainstem")}
    kafka = start_own_kafka({"log.dirs": dirs["kafka"]})
    with Broker(data_dir=dirs["mainstem"]) as mainstem:
        yield [
            Target("mainstem", mainstem.bootstrap_servers, folder / "mainstem"),
            Target("kafka", kafka.bootstrap_servers, folder / "kafka"),
        ]
    end_own_kafka(kafka, kindly=False)


def _tool(target: Target, name: str, *arguments: str) -> ToolResult:
    return kafka_tool(name, "--bootstrap-server", target.bootstrap_servers, *arguments)


def _shown(target: Target, result: ToolResult) -> str:
    """What a run printed, without what depends on the machine and without the broker's own words."""
    lines = (result.stdout + result.stderr).replace(str(target.log_dir), "<dirs>").splitlines()
    kept = []
    for line in lines:
        if " ERROR [AdminClient " in line:
            continue  # a log line with the time
        if line.startswith("{"):
            line = json.dumps(_sorted(json.loads(line)))
        elif "errors." in line:
            line = re.sub(r"(errors\.\w+).*", r"\1", line)
        elif line.startswith(("\tat ", "Caused by: ", "Error while executing")):
            continue
        kept.append(line)
    return "\n".join([*kept, f"exit code {result.returncode}"])


def _sorted(value: object) -> object:
    """The order of directories and partitions is that of a hash table."""
    if isinstance(value, list):
        return sorted((_sorted(item) for item in value), key=json.dumps)
    if isinstance(value, dict):
        return {key: _sorted(item) for key, item in value.items()}
    return value


def _compare(both: list[Target], scenario: Callable[[Target], list[str]]) -> list[str]:
    """Run the scenario against both; what Mainstem gave, which must be what Apache Kafka gave."""
    mainstem, kafka = (scenario(target) for target in both)
    assert mainstem == kafka
    return mainstem


def _configs(target: Target, entity: str, *arguments: str) -> str:
    return _shown(target, _tool(target, CONFIGS, *entity.split(), *arguments))


def test_config_command(both: list[Target]) -> None:
    def scenario(target: Target) -> list[str]:
        topic = target.create_topic("settings", configs=KEEP_FOREVER)
        one, every = "--entity-type brokers --entity-name 1", "--entity-type brokers --entity-default"
        here = f"--entity-type topics --entity-name {topic}"

        def alter(entity: str, *changes: str) -> str:
            return _configs(target, entity, "--alter", *changes)

        def describe(entity: str, settled: str, *arguments: str) -> str:
            return when_settled(
                lambda: _configs(target, entity, "--describe", *arguments), lambda text: settled in text
            )

        return [
            alter(here, "--add-config", "retention.ms=5000,cleanup.policy=[compact,delete]"),
            describe(here, "retention.ms=5000"),
            describe(here, "retention.ms=5000", "--all"),
            alter(here, "--add-config", "retention.ms=soon"),
            alter(here, "--add-config", "segment.bytes=1"),
            alter(here, "--add-config", "no.such.setting=1"),
            alter(here, "--delete-config", "no.such.setting"),
            alter(here, "--delete-config", "cleanup.policy"),
            alter("--entity-type topics --entity-name nowhere", "--add-config", "retention.ms=1"),
            alter(one, "--add-config", "log.flush.interval.messages=7000,num.io.threads=9"),
            alter(every, "--add-config", "log.flush.interval.messages=8000"),
            describe(one, "DEFAULT_BROKER_CONFIG:log.flush.interval.messages=8000"),
            describe(every, "8000"),
            describe(here, "log.flush.interval.messages=7000", "--all"),
            alter(one, "--add-config", "num.partitions=3"),
            alter(one, "--add-config", "log.retention.ms=soon"),
            alter(one, "--add-config", "max.connections=-4"),
            alter(every, "--add-config", "listeners=PLAINTEXT://:1"),
            alter(one, "--delete-config", "log.flush.interval.messages,num.io.threads"),
            alter(every, "--delete-config", "log.flush.interval.messages"),
            when_settled(
                lambda: _configs(target, one, "--describe"), lambda text: "log.flush.interval" not in text
            ),
        ]

    shown = _compare(both, scenario)
    assert shown[0] == "Completed updating config for topic settings.\nexit code 0"
    assert "DYNAMIC_BROKER_CONFIG:log.flush.interval.messages=7000" in shown[13]


def test_log_dirs_command_and_moves_between_directories(both: list[Target]) -> None:
    def scenario(target: Target) -> list[str]:
        topic = target.create_topic("places", partitions=2, configs=KEEP_FOREVER)
        write_kafka_python(target, topic, [Message(b"x", timestamp_ms=1000)] * 20, partition=0)
        plan = Path(target.log_dir) / "plan.json"
        parts = [
            {"topic": topic, "partition": index, "replicas": [1], "log_dirs": [str(target.log_dir / name)]}
            for index, name in ((0, "two"), (1, "one"))
        ]
        plan.write_text(json.dumps({"version": 1, "partitions": parts}))

        def dirs(*arguments: str) -> str:
            return _shown(target, _tool(target, LOG_DIRS, "--describe", *arguments))

        def reassign(*arguments: str) -> str:
            given = ("--reassignment-json-file", str(plan), *arguments)
            return _shown(target, _tool(target, REASSIGN, *given))

        before = dirs("--topic-list", topic)
        executed = reassign("--execute").partition("Save this")[2]
        verified = when_settled(
            lambda: reassign("--verify"), lambda text: text.count("completed successfully") == 2
        )
        parts[0]["log_dirs"] = [str(target.log_dir / "three")]
        plan.write_text(json.dumps({"version": 1, "partitions": parts[:1]}))
        return [
            re.sub(r'"size": \d+', '"size": 0', re.sub(r"/(one|two)", "", before)),
            executed,
            verified,
            re.sub(r'"size": \d\d+', '"size": "some"', dirs("--topic-list", topic)),
            dirs("--topic-list", "nowhere"),
            dirs("--broker-list", "1,9"),
            reassign("--verify"),
        ]

    shown = _compare(both, scenario)
    moved = json.loads(shown[3].splitlines()[2])["brokers"][0]["logDirs"]
    names = {
        Path(entry["logDir"]).name: [part["partition"] for part in entry["partitions"]] for entry in moved
    }
    assert names == {"one": ["places-1"], "two": ["places-0"]}


def test_answers_to_moves(both: list[Target]) -> None:
    def scenario(target: Target) -> list[str]:
        topic, long = target.create_topic("answers"), target.create_topic("x" * 249)

        def ask(name: str, path: Path | str, index: int, version: int) -> int:
            topics = [AlterReplicaLogDirTopic(name, [index])]
            request = AlterReplicaLogDirsRequest([AlterReplicaLogDir(str(path), topics)])
            return int(client.call(request, version).results[0].partitions[0].error_code)

        with WireClient(target) as client:
            return [
                ErrorCode(ask(name, path, index, version)).name
                for version in (1, 2)
                for name, path, index in (
                    (topic, target.log_dir / "two", 0),
                    (topic, target.log_dir / "one", 0),
                    (topic, target.log_dir / "three", 0),
                    (topic, "two", 0),
                    (topic, "", 0),
                    (topic, target.log_dir / "one", 7),
                    (topic, target.log_dir / "one", -1),
                    ("nowhere", target.log_dir / "one", 0),
                    ("nowhere", target.log_dir / "three", 0),
                    ("not/a/name", target.log_dir / "one", 0),
                    (long, target.log_dir / "two", 0),
                )
            ]

    names = _compare(both, scenario)
    assert set(names) == {
        "NONE", "LOG_DIR_NOT_FOUND", "UNKNOWN_TOPIC_OR_PARTITION", "INVALID_TOPIC_EXCEPTION"
    }  # fmt: skip


def test_answers_to_reassignments(both: list[Target]) -> None:
    def scenario(target: Target) -> list[str]:
        topic = target.create_topic("assigned")

        def alter(name: str, index: int, replicas: list[int] | None, version: int) -> str:
            parts = [ReassignablePartition(index, replicas)]
            request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name, parts)])
            answer = client.call(request, version)
            assert answer.error_code == 0
            return ErrorCode(answer.responses[0].partitions[0].error_code).name

        with WireClient(target) as client:
            shown = [
                alter(name, index, replicas, version)
                for version in (0, 1)
                for name, index, replicas in (
                    (topic, 0, [1]),
                    (topic, 0, [9]),
                    (topic, 0, []),
                    (topic, 0, [1, 1]),
                    (topic, 0, [-1]),
                    (topic, 0, None),
                    (topic, 5, [1]),
                    ("nowhere", 0, [1]),
                )
            ]
            for topics in (None, [], [ListPartitionReassignmentsTopics(topic, [0, 7])]):
                answer = client.call(ListPartitionReassignmentsRequest(topics=topics))
                shown.append(str((answer.error_code, answer.topics)))
        return shown

    shown = _compare(both, scenario)
    assert shown[0] == "NONE"
    assert shown[-1] == "(0, [])"


def test_mainstems_own_commands_work_on_both(both: list[Target]) -> None:
    def scenario(target: Target) -> list[str]:
        target.create_topic("commanded", partitions=2, configs=KEEP_FOREVER)
        write_kafka_python(target, "commanded", [Message(b"x" * 100, timestamp_ms=1000)] * 20, partition=0)

        def run(*arguments: str) -> str:
            done = run_command(*arguments, environment={"MAINSTEM_BOOTSTRAP": target.bootstrap_servers})
            return f"{done.stdout}{done.stderr}exit code {done.returncode}"

        def settled(words: str, *arguments: str) -> str:
            return when_settled(lambda: run(*arguments), lambda text: words in text)

        topic = ("--topic", "commanded")
        described = json.loads(run("topics", "describe", "commanded", "--json").rpartition("exit code")[0])
        sizes = json.loads(run("logs", "sizes", "commanded", "--json").rpartition("exit code")[0])
        return [
            run("config", "set", "retention.ms=5000", "max.message.bytes=4000", *topic),
            settled("5000", "config", "get", "retention.ms", *topic),
            settled("retention.ms", "config", "describe", *topic),
            run("config", "unset", "max.message.bytes", *topic).partition(":")[0],
            run("config", "set", "log.flush.interval.messages=70000", "--broker", "1"),
            settled("70000", "config", "get", "log.flush.interval.messages", "--broker", "1"),
            run("config", "unset", "log.flush.interval.messages", "--broker", "1").partition(":")[0],
            run("config", "set", "retention.ms=soon", *topic)[:32],
            run("config", "get", "log.segment.bytes"),
            str([part["size"] > 0 for part in described[0]["partitions"]]),
            str(sorted((part["partition"], part["size"] > 0) for part in sizes["partitions"])),
            str([directory["problem"] for directory in sizes["directories"]]),
        ]

    shown = _compare(both, scenario)
    assert shown[1] == "5000\nexit code 0"
    assert shown[9] == "[True, False]"


def test_cordoned_directories(both: list[Target]) -> None:
    def scenario(target: Target) -> list[str]:
        one = "--entity-type brokers --entity-name 1"

        def cordon(value: str) -> str:
            return _configs(target, one, "--alter", "--add-config", f"cordoned.log.dirs={value}")

        def created() -> str:
            result = _tool(target, "TopicCommand", "--create", "--topic", "nowhere-to-go")
            return re.sub(r"(?s).*errors\.(\w+).*", r"\1", result.stdout)

        def places() -> str:
            found = _tool(target, LOG_DIRS, "--describe", "--topic-list", "cordoned").check().splitlines()[2]
            dirs = json.loads(found)["brokers"][0]["logDirs"]
            return str(
                {
                    Path(entry["logDir"]).name: len(entry["partitions"])
                    for entry in dirs
                    if entry["partitions"]
                }
            )

        def is_cordoned(wanted: list[bool]) -> str:
            with WireClient(target) as client:
                return str(
                    when_settled(
                        lambda: sorted(
                            entry.is_cordoned for entry in client.call(DescribeLogDirsRequest(None)).results
                        ),
                        lambda answer: answer == wanted,
                    )
                )

        two = str(target.log_dir / "two")
        shown = [cordon("/nowhere"), cordon(two), is_cordoned([False, True])]
        target.create_topic("cordoned", partitions=4)
        shown += [places(), cordon("*"), is_cordoned([True, True]), created()]
        shown.append(_configs(target, one, "--alter", "--delete-config", "cordoned.log.dirs"))
        return [*shown, is_cordoned([False, False])]

    shown = _compare(both, scenario)
    assert shown[3] == "{'one': 4}"
    assert shown[6] == "InvalidReplicationFactorException"


def test_delete_records_command_and_get_offset_shell(both: list[Target]) -> None:
    def scenario(target: Target) -> list[str]:
        topic = target.create_topic("shorter", partitions=3, configs=KEEP_FOREVER)
        compacted = target.create_topic("kept", configs={"cleanup.policy": "compact"})
        write_kafka_python(target, topic, [Message(b"x", timestamp_ms=1000)] * 20, partition=0)
        write_kafka_python(target, topic, [Message(b"x", timestamp_ms=2000)] * 5, partition=1)
        path = Path(target.log_dir) / "delete.json"

        def delete(*entries: tuple[str, int, int]) -> str:
            parts = [{"topic": name, "partition": part, "offset": offset} for name, part, offset in entries]
            path.write_text(json.dumps({"version": 1, "partitions": parts}))
            return _shown(target, _tool(target, "DeleteRecordsCommand", "--offset-json-file", str(path)))

        def offsets(*arguments: str) -> str:
            given = ("--topic-partitions", f"{topic}:0-3", *arguments)
            return _shown(target, _tool(target, "GetOffsetShell", *given))

        return [
            "\n".join(sorted(delete((topic, 0, 7), (topic, 1, -1), (topic, 2, 0)).splitlines())),
            offsets("--time", "earliest"),
            offsets(),
            offsets("--time", "max-timestamp"),
            delete((topic, 0, 3)),
            delete((topic, 0, 21)),
            delete((compacted, 0, 0)),
            delete((topic, 0, 1), (topic, 0, 2)),
            offsets("--time", "earliest"),
        ]

    shown = _compare(both, scenario)
    assert shown[1].splitlines()[:3] == ["shorter:0:7", "shorter:1:5", "shorter:2:0"]
