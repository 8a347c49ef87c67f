"""A client that creates, grows, alters, fills and deletes topics, and knows what must be there afterwards.

Names are used again and again, so that what is left of a deleted topic would show up in the next one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random
from threading import Event
from typing import Any

from mainstem.protocol.apis.k03_metadata import MetadataRequest
from mainstem.protocol.apis.k19_create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from mainstem.protocol.apis.k20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from mainstem.protocol.apis.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from mainstem.protocol.apis.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from mainstem.protocol.apis.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import ConfigResourceType
from mainstem.protocol.uuids import ZERO_UUID
from mainstem.records.record import Record, build_batch
from mainstem.testing import Broker
from tests.faults.ledger import Ledger, connect, read_all
from tests.faults.load import take_producer_id
from tests.support.scenario import produce_request
from tests.support.wire import ConnectionClosedError, WireClient

_NAMES = [f"change-{number}" for number in range(4)]
_SETTING = "retention.ms"
_PRODUCE_BY_NAME = 12


@dataclass(frozen=True)
class Topic:
    """A topic as its last acknowledged change left it. An id of zeros stands for one that nobody has told."""

    topic_id: bytes
    partitions: int
    retention_ms: str
    payloads: tuple[bytes, ...] = ()


@dataclass
class Change:
    """What was asked for and not answered: the topic is as it was, or as it should become."""

    name: str
    before: Topic | None
    after: Topic | None


class TopicChanger:
    """One change after the other, noted when it is acknowledged."""

    def __init__(self, ledger: Ledger, seed: int, *, flush_each: bool = False) -> None:
        """With `flush_each`, records are on disk before they are acknowledged."""
        self.acknowledged = 0
        self._settings = {"flush.messages": "1"} if flush_each else {}
        self._ledger = ledger
        self._random = Random(seed)
        self._topics: dict[str, Topic] = {}
        self._used_ids: set[bytes] = set()
        self._change: Change | None = None
        self._written = 0

    def live(self, broker: Broker, stop: Event) -> None:
        """Change topics until told to stop, or until the broker is gone."""
        try:
            with connect(broker) as client:
                while not stop.is_set():
                    self._change_something(client)
        except (ConnectionClosedError, OSError):
            pass

    def _change_something(self, client: WireClient) -> None:
        name = self._random.choice(_NAMES)
        topic = self._topics.get(name)
        if topic is None:
            self._create(client, name)
        else:
            self._random.choice([self._write, self._grow, self._alter, self._delete])(client, name, topic)
        take_producer_id(client, self._ledger)
        self.acknowledged += 1

    def _begin(self, name: str, after: Topic | None) -> Change:
        self._change = Change(name, self._topics.get(name), after)
        return self._change

    def _done(self, change: Change, error_code: int, topic_id: bytes | None = None) -> None:
        assert error_code == 0, f"{change}: {ErrorCode(error_code).name}"
        after = change.after
        if after is not None and topic_id is not None:
            after = replace(after, topic_id=topic_id)
        self._set(change.name, after)
        self._change = None

    def _set(self, name: str, topic: Topic | None) -> None:
        if topic is None:
            del self._topics[name]
            return
        before = self._topics.get(name)
        if before is None:
            assert topic.topic_id not in self._used_ids, f"the topic id of {name} was used before"
            self._used_ids.add(topic.topic_id)
        self._topics[name] = topic

    def _create(self, client: WireClient, name: str) -> None:
        topic = Topic(ZERO_UUID, self._random.randint(1, 3), str(self._random.randint(10**9, 10**10)))
        change = self._begin(name, topic)
        result = create_topic_result(
            client, name, topic.partitions, {_SETTING: topic.retention_ms, **self._settings}
        )
        self._done(change, result.error_code, result.topic_id)

    def _write(self, client: WireClient, name: str, topic: Topic) -> None:
        payload = f"{name}:{self._written}".encode()
        self._written += 1
        change = self._begin(name, replace(topic, payloads=(*topic.payloads, payload)))
        self._done(change, write(client, name, payload))

    def _grow(self, client: WireClient, name: str, topic: Topic) -> None:
        change = self._begin(name, replace(topic, partitions=topic.partitions + 1))
        wanted = CreatePartitionsTopic(name, topic.partitions + 1, None)
        (result,) = client.call(CreatePartitionsRequest([wanted], timeout_ms=30_000)).results
        self._done(change, result.error_code)

    def _alter(self, client: WireClient, name: str, topic: Topic) -> None:
        change = self._begin(name, replace(topic, retention_ms=str(self._random.randint(10**9, 10**10))))
        assert change.after is not None
        setting = AlterableConfig(_SETTING, 0, change.after.retention_ms)
        resource = AlterConfigsResource(ConfigResourceType.TOPIC, name, [setting])
        (result,) = client.call(IncrementalAlterConfigsRequest([resource])).responses
        self._done(change, result.error_code)

    def _delete(self, client: WireClient, name: str, topic: Topic) -> None:
        change = self._begin(name, None)
        self._done(change, delete_topic(client, name))

    # ---- afterwards

    def check(self, client: WireClient, broker: Broker) -> None:
        """Compare with what the broker knows and what lies in its folder; settle what was not answered."""
        described = {topic.name: topic for topic in client.call(MetadataRequest(topics=None)).topics}
        self._settle(client, described)
        found = {name for name in described if name in _NAMES}
        assert found == set(self._topics), f"{found} exist, not {set(self._topics)}"
        for name, topic in self._topics.items():
            observed = self._observe(client, described[name])
            assert observed == topic, f"{name} is {observed}, not {topic}"
        check_folders(client, broker)

    def _settle(self, client: WireClient, described: Mapping[str, Any]) -> None:
        """The change that a crash interrupted has happened as a whole or not at all."""
        change, self._change = self._change, None
        if change is None:
            return
        settled = self._observe(client, described[change.name]) if change.name in described else None
        allowed = [change.before, change.after]
        if change.before is None and settled is not None and change.after is not None:
            allowed.append(replace(change.after, topic_id=settled.topic_id))
        assert settled in allowed, f"{change} left {settled}"
        if settled != change.before:
            self._set(change.name, settled)

    def _observe(self, client: WireClient, described: Any) -> Topic:
        retention_ms = topic_setting(client, described.name, _SETTING)
        payloads = payloads_in(client, described.name)
        return Topic(described.topic_id, len(described.partitions), retention_ms, payloads)


def create_topic_result(
    client: WireClient, name: str, partitions: int, configs: Mapping[str, str] | None = None
) -> CreatableTopicResult:
    settings = [CreatableTopicConfig(key, value) for key, value in (configs or {}).items()]
    topic = CreatableTopic(name, partitions, -1, configs=settings)
    result: CreatableTopicResult = client.call(CreateTopicsRequest([topic])).topics[0]
    return result


def create_topic(
    client: WireClient, name: str, partitions: int, configs: Mapping[str, str] | None = None
) -> None:
    result = create_topic_result(client, name, partitions, configs)
    assert result.error_code == 0, result.error_message


def delete_topic(client: WireClient, name: str) -> int:
    request = DeleteTopicsRequest([DeleteTopicState(name=name)], timeout_ms=30_000)
    error_code: int = client.call(request).responses[0].error_code
    return error_code


def topic_setting(client: WireClient, topic: str, setting: str) -> str:
    resource = DescribeConfigsResource(ConfigResourceType.TOPIC, topic, [setting])
    (result,) = client.call(DescribeConfigsRequest([resource])).results
    assert result.error_code == 0, result.error_message
    value: str = result.configs[0].value
    return value


def write(client: WireClient, topic: str, payload: bytes, partition: int = 0) -> int:
    """Write one record with acks=all; returns the error code."""
    data = build_batch([Record(0, -1, None, payload)])
    answer = client.call(produce_request(topic, data, partition=partition), _PRODUCE_BY_NAME)
    error_code: int = answer.responses[0].partition_responses[0].error_code
    return error_code


def payloads_in(client: WireClient, topic: str) -> tuple[bytes, ...]:
    return tuple(record.value or b"" for record in read_all(client, topic, 0))


def check_folders(client: WireClient, broker: Broker) -> None:
    """Every partition has its folder, and every folder its partition."""
    expected = {
        f"{topic.name}-{partition.partition_index}"
        for topic in client.call(MetadataRequest(topics=None)).topics
        for partition in topic.partitions
    }
    folders = partition_folders(broker)
    assert folders == expected, f"too many: {folders - expected}; missing: {expected - folders}"


def partition_folders(broker: Broker) -> set[str]:
    """The names of the folders that count as partitions of users' topics."""
    folders = {path.name for path in broker.data_dir.iterdir() if path.is_dir()}
    return {
        name
        for name in folders
        if not name.startswith("__cluster_metadata") and not name.endswith(("-delete", "-stray"))
    }
