"""The life of topics: creating, listing, growing, deleting, creating again, and all that is refused."""

from typing import Any

from mainstem.protocol.apis.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from mainstem.protocol.apis.k03_metadata import MetadataRequest, MetadataRequestTopic
from mainstem.protocol.apis.k19_create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from mainstem.protocol.apis.k20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from mainstem.protocol.apis.k37_create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from mainstem.protocol.apis.k75_describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from mainstem.protocol.uuids import random_uuid
from tests.support.scenario import append, batch, topic_id
from tests.support.target import Target, await_leaders, unique_name, when_settled
from tests.support.transcript import Transcript
from tests.support.wire import WireClient


class _Creator:
    """Creates topics one by one and notes the answers; names and ids get stand-ins."""

    def __init__(self, client: WireClient, transcript: Transcript) -> None:
        self._client = client
        self._transcript = transcript

    def create(
        self,
        title: str,
        name: str | None = None,
        partitions: int = 1,
        replication_factor: int = 1,
        *,
        assignments: list[list[int]] | None = None,
        configs: dict[str, str | None] | None = None,
        version: int = 7,
        **fields: Any,
    ) -> str:
        if name is None:
            name = self._transcript.stand_in(unique_name(), "fresh name")
        topic = CreatableTopic(
            name,
            partitions,
            replication_factor,
            [CreatableReplicaAssignment(number, brokers) for number, brokers in enumerate(assignments or [])],
            [CreatableTopicConfig(key, value) for key, value in (configs or {}).items()],
        )
        answer = self._client.call(CreateTopicsRequest([topic], 10_000, **fields), version)
        for result in answer.topics:
            if result.topic_id != bytes(16):
                self._transcript.stand_in(result.topic_id, "fresh id")
            # The configs of an answer are compared in the scenarios about configs.
            result.configs = []
        self._transcript.note(title, answer)
        return name


def test_create_topics(target: Target) -> None:
    transcript = Transcript(target, "create_topics")
    node = target.node_id
    with WireClient(target) as client:
        create = _Creator(client, transcript).create
        existing = create("one partition")
        create("it exists", existing)
        create("it exists, validate only", existing, validate_only=True)
        create("validate only", validate_only=True)
        create("defaults", partitions=-1, replication_factor=-1)
        create("version 2 with defaults", partitions=-1, replication_factor=-1, version=2)
        create("version 4 with defaults", partitions=-1, replication_factor=-1, version=4)
        for partitions in (0, -2):
            create(f"{partitions} partitions", partitions=partitions)
        for factor in (0, -2, 2):
            create(f"replication factor {factor}", replication_factor=factor)
        create("assignments", None, -1, -1, assignments=[[node], [node]])
        create("assignments and a count", None, 2, -1, assignments=[[node], [node]])
        create("assignments and a factor", None, -1, 1, assignments=[[node]])
        create("assignment to an unknown broker", None, -1, -1, assignments=[[node + 77]])
        create("assignment to a broker twice", None, -1, -1, assignments=[[node, node]])
        create("assignment to nobody", None, -1, -1, assignments=[[]])
        for name in ("", ".", "..", "a b", "a/b", "ü", "x" * 250, "a:b", "a\n"):
            create(f"the name {name!r:.20}", name)
        create("249 characters", transcript.stand_in(unique_name().ljust(249, "x"), "long name"))
        dotted = create("a name with a dot", transcript.stand_in(unique_name("a.b"), "dotted"))
        underscored = transcript.stand_in(dotted.replace("a.b", "a_b"), "underscored")
        create("its collision with an underscore", underscored)
        create("a good config", configs={"retention.ms": "1000"})
        create("an unknown config", configs={"no.such.config": "1"})
        create("a config of the wrong type", configs={"retention.ms": "soon"})
        create("a config out of range", configs={"retention.ms": "-2"})
        create("a config without a value", configs={"retention.ms": None})
        create("a config with an unknown word", configs={"cleanup.policy": "remove"})
        create("two words in a list", configs={"cleanup.policy": "compact,delete"})
        twice = CreatableTopic(transcript.stand_in(unique_name(), "twice"), 1, 1)
        answer = client.call(CreateTopicsRequest([twice, twice], 10_000))
        transcript.note("the same name twice", answer)
        transcript.note("no topics", client.call(CreateTopicsRequest([], 10_000)))
    transcript.check()


def test_delete_topics(target: Target) -> None:
    transcript = Transcript(target, "delete_topics")
    by_name, by_id, old = (
        transcript.stand_in(target.create_topic(), name) for name in ("by name", "by id", "old")
    )
    with WireClient(target) as client:

        def delete(title: str, version: int = 6, names: list[str] | None = None, **state: Any) -> None:
            request = DeleteTopicsRequest(timeout_ms=10_000)
            if names is not None:
                request.topic_names = names
            else:
                request.topics = [DeleteTopicState(**state)]
            answer = client.call(request, version)
            for result in answer.responses:
                if result.topic_id != bytes(16):
                    transcript.stand_in(result.topic_id, "an id")
            transcript.note(title, answer)

        delete("by name", name=by_name)
        delete("by name again", name=by_name)
        uuid = topic_id(client, by_id)
        delete("by id", topic_id=uuid)
        delete("by id again", topic_id=uuid)
        delete("by an unknown id", topic_id=transcript.stand_in(random_uuid(), "unknown id"))
        delete("by name and id", name=old, topic_id=topic_id(client, old))
        delete("by neither", name=None)
        delete("version 1", version=1, names=[old])
        delete("version 5, unknown", version=5, names=[old])
        delete("a name that cannot be", version=5, names=["a/b"])
    transcript.check()


def test_create_partitions(target: Target) -> None:
    transcript = Transcript(target, "create_partitions")
    topic = transcript.stand_in(target.create_topic(partitions=2), "topic")
    node = target.node_id
    with WireClient(target) as client:

        def grow(
            title: str, count: int, name: str = topic, brokers: list[list[int]] | None = None, **fields: Any
        ) -> None:
            assignments = None if brokers is None else [CreatePartitionsAssignment(ids) for ids in brokers]
            request = CreatePartitionsRequest(
                [CreatePartitionsTopic(name, count, assignments)], 10_000, **fields
            )
            transcript.note(title, client.call(request))

        grow("to 3, validate only", 3, validate_only=True)
        grow("to 3", 3)
        grow("to 3 again", 3)
        grow("to 1", 1)
        grow("to 0", 0)
        grow("to -1", -1)
        grow("to 4 with an assignment", 4, brokers=[[node]])
        grow("to 6 with too few assignments", 6, brokers=[[node]])
        grow("to 5 with an unknown broker", 5, brokers=[[node + 77]])
        grow("to 5 with a broker twice", 5, brokers=[[node, node]])
        grow("to 5 with an empty assignment", 5, brokers=[[]])
        grow("an unknown topic", 5, name="no-such-topic")
        await_leaders(target.admin(), topic, 4)
        append(client, topic, [1], partition=3)
    transcript.check()


def test_metadata(target: Target) -> None:
    transcript = Transcript(target, "metadata")
    topic = transcript.stand_in(target.create_topic(partitions=2), "topic")
    host, port = target.address
    transcript.stand_in(host, "host")
    transcript.stand_in(port, "port")
    with WireClient(target) as client:
        transcript.stand_in(client.call(MetadataRequest(topics=[])).cluster_id, "cluster")
        known = transcript.stand_in(topic_id(client, topic), "id")
        for version in range(14):
            request = MetadataRequest([MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
            transcript.note(f"version {version}", client.call(request, version))
        for version in (1, 13):
            transcript.note(f"no topics, version {version}", client.call(MetadataRequest([]), version))

        def ask(title: str, version: int = 13, **topic_fields: Any) -> None:
            request = MetadataRequest([MetadataRequestTopic(**topic_fields)], allow_auto_topic_creation=False)
            transcript.note(title, client.call(request, version))

        ask("by id", topic_id=known, name=None)
        ask("by an unknown id", topic_id=transcript.stand_in(random_uuid(), "unknown id"), name=None)
        ask("by id and name", topic_id=known, name=topic)
        ask("unknown", name="no-such-topic")
        ask("a name that cannot be", name="a/b")
        ask("an empty name", name="")
        ask("unknown, version 4", version=4, name="no-such-topic")
        request = MetadataRequest(
            [MetadataRequestTopic(name=topic)], include_topic_authorized_operations=True
        )
        transcript.note("with authorized operations", client.call(request))
        request = MetadataRequest([], include_cluster_authorized_operations=True)
        transcript.note("with the cluster's authorized operations", client.call(request, 10))
        request = MetadataRequest([MetadataRequestTopic(name="a b")], allow_auto_topic_creation=True)
        transcript.note("automatic creation of a name that cannot be", client.call(request))
        for version in (0, 1, 13):
            every = client.call(MetadataRequest(None if version else []), version)
            assert topic in [described.name for described in every.topics]
    transcript.check()


def test_automatic_creation(target: Target) -> None:
    name = unique_name("auto")
    with WireClient(target) as client:
        request = MetadataRequest([MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
        first = client.call(request).topics[0]
        assert first.error_code in (0, 3, 5)
        while (answer := client.call(request).topics[0]).error_code:
            assert answer.error_code in (3, 5)
        assert len(answer.partitions) == 1


def test_describe_topic_partitions(target: Target) -> None:
    transcript = Transcript(target, "describe_topic_partitions")
    prefix = unique_name()
    with WireClient(target) as client:
        names = [target.create_topic(f"{prefix}-{letter}", partitions=3) for letter in "ab"]
        for name in names:
            transcript.stand_in(name, f"topic {name[-1]}")
            transcript.stand_in(topic_id(client, name), f"id {name[-1]}")

        def describe(title: str, *topics: str, limit: int = 2000, cursor: Cursor | None = None) -> None:
            request = DescribeTopicPartitionsRequest([TopicRequest(name) for name in topics], limit, cursor)
            transcript.note(title, client.call(request))

        describe("both, in the wrong order", *reversed(names))
        describe("at most 4 partitions", *names, limit=4)
        describe("the rest", *names, limit=4, cursor=Cursor(names[1], 1))
        describe("a cursor past the partitions", *names, cursor=Cursor(names[1], 3))
        describe("unknown", "no-such-topic")
        describe("a name that cannot be", "a/b")
    transcript.check()


def test_a_topic_that_was_created_again(target: Target) -> None:
    transcript = Transcript(target, "recreated_topic")
    topic = target.create_topic()
    with WireClient(target) as client:
        old = transcript.stand_in(topic_id(client, topic), "old id")
        append(client, topic, [2])
        client.call(DeleteTopicsRequest([DeleteTopicState(topic)], timeout_ms=10_000))
        target.create_topic(topic)
        new = when_settled(lambda: topic_id(client, topic), lambda answer: answer != old)
        transcript.stand_in(new, "new id")
        for name, uuid in (("old", old), ("new", new)):
            data = [TopicProduceData(topic_id=uuid, partition_data=[PartitionProduceData(0, batch(1))])]
            request = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=data)
            transcript.note(f"produce to the {name} id", client.call(request, 13))
    transcript.check()
