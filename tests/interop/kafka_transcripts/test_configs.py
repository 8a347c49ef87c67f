"""Configurations over the wire: what a topic and a broker say about each setting, and how it is changed.

Scenarios that see or change the broker's own settings hold a lock: all workers share one Apache Kafka.
"""

from typing import Any

from mainstem.protocol.apis import k33_alter_configs as legacy
from mainstem.protocol.apis import k44_incremental_alter_configs as incremental
from mainstem.protocol.apis.k19_create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from mainstem.protocol.apis.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tests.support.shared import session_lock
from tests.support.target import Target, unique_name
from tests.support.transcript import Transcript
from tests.support.wire import WireClient

TOPIC, BROKER, BROKER_LOGGER = 2, 4, 8
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


def _describe(
    client: WireClient, kind: int, name: str, keys: list[str] | None = None, version: int = 4, **fields: Any
) -> Any:
    request = DescribeConfigsRequest([DescribeConfigsResource(kind, name, keys)], **fields)
    answer = client.call(request, version)
    for result in answer.results:
        result.configs.sort(key=lambda config: config.name)
    return answer


def test_every_setting_of_a_topic(target: Target) -> None:
    transcript = Transcript(target, "describe_topic_configs")
    configs = {"retention.ms": "3600000", "cleanup.policy": "compact,delete", "segment.bytes": "2097152"}
    topic = transcript.stand_in(target.create_topic(configs=configs), "topic")
    with session_lock("configs"), WireClient(target) as client:
        answer = _describe(client, TOPIC, topic, include_synonyms=True, include_documentation=True)
        transcript.note("all of them", answer)
        for version in (1, 3):
            answer = _describe(client, TOPIC, topic, ["retention.ms", "flush.ms"], version)
            transcript.note(f"two of them, version {version}", answer)
        transcript.note("unknown name", _describe(client, TOPIC, topic, ["no.such.config"]))
        transcript.note("no names", _describe(client, TOPIC, topic, []))
        transcript.note("unknown topic", _describe(client, TOPIC, "no-such-topic"))
        transcript.note("a name that cannot be", _describe(client, TOPIC, "a/b"))
        transcript.note("unknown kind of resource", _describe(client, 3, "x"))
    transcript.check()


def test_configs_in_the_answer_of_a_creation(target: Target) -> None:
    transcript = Transcript(target, "create_topics_configs")
    name = transcript.stand_in(unique_name(), "topic")
    with session_lock("configs"), WireClient(target) as client:
        topic = CreatableTopic(name, 1, 1, configs=[CreatableTopicConfig("retention.ms", "1000")])
        answer = client.call(CreateTopicsRequest([topic], 10_000))
        answer.topics[0].configs.sort(key=lambda config: config.name)
        transcript.stand_in(answer.topics[0].topic_id, "id")
        transcript.note("one of them set", answer)
    transcript.check()


# Settings whose value depends on the machine, the address, the version, or on how the test starts the broker.
_LOCAL = {
    "advertised.listeners",
    "broker.id",
    "controller.listener.names",
    "controller.quorum.voters",
    "group.initial.rebalance.delay.ms",
    "listener.security.protocol.map",
    "listeners",
    "log.dir",
    "log.dirs",
    "node.id",
    "offsets.topic.replication.factor",
    "process.roles",
    "share.coordinator.state.topic.min.isr",
    "share.coordinator.state.topic.replication.factor",
    "transaction.state.log.min.isr",
    "transaction.state.log.replication.factor",
}


def test_every_setting_of_the_broker(target: Target) -> None:
    transcript = Transcript(target, "describe_broker_configs")
    with session_lock("configs"), WireClient(target) as client:
        answer = _describe(client, BROKER, str(target.node_id), include_synonyms=True)
        described = {config.name for config in answer.results[0].configs}
        assert {"listeners", "log.dirs", "node.id"} <= described
        answer.results[0].configs = [
            config for config in answer.results[0].configs if config.name not in _LOCAL
        ]
        transcript.note("those that do not depend on the machine", answer)
        transcript.note("of another broker", _describe(client, BROKER, str(target.node_id + 77)))
        transcript.note("of a broker that is no number", _describe(client, BROKER, "one"))
        transcript.note("of all brokers", _describe(client, BROKER, ""))
    transcript.check()


def test_incremental_changes(target: Target) -> None:
    transcript = Transcript(target, "incremental_alter_configs")
    topic = transcript.stand_in(target.create_topic(configs={"retention.ms": "1000"}), "topic")
    keys = ["retention.ms", "cleanup.policy", "max.message.bytes"]
    with WireClient(target) as client:

        def alter(
            title: str,
            *changes: tuple[str, int, str | None],
            kind: int = TOPIC,
            name: str = topic,
            **fields: Any,
        ) -> None:
            configs = [
                incremental.AlterableConfig(key, operation, value) for key, operation, value in changes
            ]
            resource = incremental.AlterConfigsResource(kind, name, configs)
            request = incremental.IncrementalAlterConfigsRequest([resource], **fields)
            transcript.note(title, client.call(request))

        def describe(title: str) -> None:
            transcript.note_when_settled(
                title, lambda: _describe(client, TOPIC, topic, keys, include_synonyms=True)
            )

        alter("set two", ("retention.ms", SET, "2000"), ("max.message.bytes", SET, "4000"))
        describe("after setting two")
        alter("delete one", ("retention.ms", DELETE, None))
        alter("delete one that is not set", ("flush.ms", DELETE, None))
        alter("append to a list", ("cleanup.policy", APPEND, "compact"))
        describe("after appending")
        alter("subtract from a list", ("cleanup.policy", SUBTRACT, "delete"))
        describe("after subtracting")
        alter("append to what is no list", ("retention.ms", APPEND, "1"))
        alter("the same name twice", ("retention.ms", SET, "1"), ("retention.ms", SET, "2"))
        alter("an unknown name", ("no.such.config", SET, "1"))
        alter("a wrong value", ("retention.ms", SET, "soon"))
        alter("no value", ("retention.ms", SET, None))
        alter("good and bad together", ("retention.ms", SET, "5000"), ("segment.bytes", SET, "tiny"))
        alter("validate only", ("retention.ms", SET, "7000"), validate_only=True)
        describe("after the refused ones")
        alter("an unknown topic", ("retention.ms", SET, "1"), name="no-such-topic")
        alter("an empty topic name", ("retention.ms", SET, "1"), name="")
        alter("no changes")
        node = str(target.node_id)
        alter("a read-only broker setting", ("num.partitions", SET, "3"), kind=BROKER, name=node)
        alter("an unknown broker", ("log.retention.ms", SET, "3"), kind=BROKER, name=str(target.node_id + 77))
        alter("an unknown kind", ("x", SET, "3"), kind=77, name="x")
    transcript.check()


def test_a_broker_setting_reaches_its_topics(target: Target) -> None:
    transcript = Transcript(target, "alter_broker_configs")
    topic = transcript.stand_in(target.create_topic(), "topic")
    node = str(target.node_id)
    with session_lock("configs"), WireClient(target) as client:

        def alter(title: str, name: str, operation: int, value: str | None) -> None:
            config = incremental.AlterableConfig("log.flush.interval.messages", operation, value)
            resource = incremental.AlterConfigsResource(BROKER, name, [config])
            transcript.note(title, client.call(incremental.IncrementalAlterConfigsRequest([resource])))

        def describe(title: str, value: str) -> None:
            while True:  # the change travels through the metadata log
                answer = _describe(client, TOPIC, topic, ["flush.messages"], include_synonyms=True)
                if answer.results[0].configs[0].value == value:
                    break
            transcript.note(title, answer)

        alter("for one broker", node, SET, "1000000")
        describe("the topic has the broker's value", "1000000")
        alter("for all brokers", "", SET, "2000000")
        alter("no more for one broker", node, DELETE, None)
        describe("the topic has the cluster's value", "2000000")
        alter("no more for all brokers", "", DELETE, None)
        describe("the topic has the default", "9223372036854775807")
    transcript.check()


def test_legacy_changes_replace_everything(target: Target) -> None:
    transcript = Transcript(target, "alter_configs")
    topic = transcript.stand_in(target.create_topic(configs={"retention.ms": "1000"}), "topic")
    keys = ["retention.ms", "flush.ms"]
    with WireClient(target) as client:

        def alter(title: str, configs: dict[str, str | None], name: str = topic, **fields: Any) -> None:
            entries = [legacy.AlterableConfig(key, value) for key, value in configs.items()]
            resource = legacy.AlterConfigsResource(TOPIC, name, entries)
            transcript.note(title, client.call(legacy.AlterConfigsRequest([resource], **fields)))

        alter("set another", {"flush.ms": "5000"})
        transcript.note_when_settled("the first is gone", lambda: _describe(client, TOPIC, topic, keys))
        alter("a wrong value", {"flush.ms": "soon"})
        alter("no value", {"flush.ms": None})
        alter("validate only", {"retention.ms": "7000"}, validate_only=True)
        alter("unknown topic", {"flush.ms": "5000"}, name="no-such-topic")
        alter("nothing", {})
        transcript.note_when_settled("all are gone", lambda: _describe(client, TOPIC, topic, keys))
    transcript.check()
