"""Controller transcripts: requests in words, and the answers and records that came out, as text.

A file holds paragraphs. Each is a command with its arguments, a line of dashes, and what came out:

    create-topics
      orders partitions=2 retention.ms=1000
    ----
    orders: NONE partitions=2 factor=1
    + TopicRecord name=orders topic_id=#1
    ...

To write the outcomes anew, run the test with MAINSTEM_RECORD_TRANSCRIPTS=1, and read the difference.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from mainstem.cluster.configs import ConfigOperation
from mainstem.cluster.records import MetadataRecord
from mainstem.cluster.registration import register_broker
from mainstem.protocol.apis import k33_alter_configs as legacy
from mainstem.protocol.apis import k44_incremental_alter_configs as incremental
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
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import ConfigResourceType
from tests.cluster.cluster_model import Cluster, registration
from tests.support.played_transcript import PlayedSession

_RESOURCES = {"topic": ConfigResourceType.TOPIC, "broker": ConfigResourceType.BROKER}
_ERROR_NAMES = {code.value: code.name for code in ErrorCode}


class ControllerSession(PlayedSession):
    def __init__(self) -> None:
        self._cluster = Cluster()

    def outcome(self, command: str) -> Iterable[str]:
        words, *lines = command.splitlines()
        name, *options = words.split()
        outcome: Iterable[str] = getattr(self, f"_{name.replace('-', '_')}")(
            options, [line.split() for line in lines]
        )
        return outcome

    def _cluster_of(self, options: list[str], _lines: list[list[str]]) -> Iterator[str]:
        """`cluster-of 1 2 3 setting=value`: a new cluster of these brokers."""
        brokers = [int(option) for option in options if "=" not in option]
        self._cluster = Cluster(brokers, dict(option.split("=") for option in options if "=" in option))
        yield f"brokers {brokers}"

    def _create_topics(self, options: list[str], lines: list[list[str]]) -> Iterator[str]:
        request = CreateTopicsRequest(
            topics=[_creatable(line) for line in lines], validate_only="validate-only" in options
        )
        response, records = self._cluster.controller.create_topics(request)
        for topic in response.topics:
            outcome = f"partitions={topic.num_partitions} factor={topic.replication_factor}"
            if topic.error_code:
                outcome = topic.error_message or ""
            yield f"{topic.name}: {_ERROR_NAMES[topic.error_code]} {outcome}"
        yield from self._apply(records)

    def _delete_topics(self, options: list[str], lines: list[list[str]]) -> Iterator[str]:
        wishes = [_fields(line) for line in lines]
        request = DeleteTopicsRequest(
            [DeleteTopicState(wish.get("name"), _uuid(wish.get("id", "#0"))) for wish in wishes]
        )
        version = next((int(option[1:]) for option in options), 6)
        response, records = self._cluster.controller.delete_topics(request, version)
        for result in response.responses:
            code = _ERROR_NAMES[result.error_code]
            yield f"{result.name} {_text(result.topic_id)}: {code} {result.error_message or ''}".rstrip()
        yield from self._apply(records)

    def _create_partitions(self, options: list[str], lines: list[list[str]]) -> Iterator[str]:
        topics = []
        for name, *rest in lines:
            fields = _fields(rest)
            replicas = _assignments(fields["assign"]) if "assign" in fields else None
            assignments = None if replicas is None else [CreatePartitionsAssignment(ids) for ids in replicas]
            topics.append(CreatePartitionsTopic(name, int(fields["count"]), assignments))
        request = CreatePartitionsRequest(topics, validate_only="validate-only" in options)
        response, records = self._cluster.controller.create_partitions(request)
        for result in response.results:
            yield f"{result.name}: {_ERROR_NAMES[result.error_code]} {result.error_message or ''}".rstrip()
        yield from self._apply(records)

    def _alter(self, options: list[str], lines: list[list[str]]) -> Iterator[str]:
        resources = []
        for kind, name, *changes in lines:
            configs = []
            for change in changes:
                operation, _, setting = change.partition(":")
                key, given, value = setting.partition("=")
                number = ConfigOperation[operation.upper()] if operation.isalpha() else int(operation)
                configs.append(incremental.AlterableConfig(key, number, value if given else None))
            resources.append(incremental.AlterConfigsResource(_resource(kind), _name(name), configs))
        request = incremental.IncrementalAlterConfigsRequest(resources, "validate-only" in options)
        response, records = self._cluster.controller.incremental_alter_configs(request)
        yield from _resource_results(response.responses)
        yield from self._apply(records)

    def _replace(self, options: list[str], lines: list[list[str]]) -> Iterator[str]:
        resources = []
        for kind, name, *settings in lines:
            pairs = [setting.partition("=") for setting in settings]
            configs = [legacy.AlterableConfig(key, value if given else None) for key, given, value in pairs]
            resources.append(legacy.AlterConfigsResource(_resource(kind), _name(name), configs))
        request = legacy.AlterConfigsRequest(resources, "validate-only" in options)
        response, records = self._cluster.controller.alter_configs(request)
        yield from _resource_results(response.responses)
        yield from self._apply(records)

    def _producer_ids(self, _options: list[str], _lines: list[list[str]]) -> Iterator[str]:
        block, records = self._cluster.controller.allocate_producer_ids()
        yield f"{block.first_id} to {block.first_id + block.size - 1}"
        yield from self._apply(records)

    def _register(self, options: list[str], _lines: list[list[str]]) -> Iterator[str]:
        broker = registration(int(options[0]))
        epoch, records = register_broker(self._cluster.image, broker, fenced="fenced" in options)
        yield f"broker epoch {epoch}"
        yield from self._apply(records)

    def _show(self, _options: list[str], _lines: list[list[str]]) -> Iterator[str]:
        for topic in self._cluster.image.topics_by_name.values():
            for p in topic.partitions:
                epochs = f"leader_epoch={p.leader_epoch} partition_epoch={p.partition_epoch}"
                replicas = f"replicas={list(p.replicas)} isr={list(p.isr)}"
                yield f"{topic.name}-{p.partition} leader={p.leader} {epochs} {replicas}"
        for (kind, name), settings in self._cluster.image.configs.items():
            yield f"settings of {ConfigResourceType(kind).name.lower()} {name!r}: {settings}"

    def _apply(self, records: list[MetadataRecord]) -> Iterator[str]:
        self._cluster.apply(records)
        for record in records:
            yield f"+ {_record(record)}"


def _creatable(line: list[str]) -> CreatableTopic:
    name, *rest = line
    fields = _fields(rest)
    assignments = [
        CreatableReplicaAssignment(index, ids)
        for index, ids in enumerate(_assignments(fields.pop("assign", "")), int(fields.pop("from", "0")))
    ]
    return CreatableTopic(
        _name(name),
        int(fields.pop("partitions", "-1")),
        int(fields.pop("factor", "-1")),
        assignments,
        [CreatableTopicConfig(key, value) for key, value in fields.items()],
    )


def _fields(words: Iterable[str]) -> dict[str, str]:
    return dict(word.split("=", 1) for word in words)


def _assignments(text: str) -> list[list[int]]:
    return [[int(broker) for broker in part.split(",") if broker] for part in text.split(";")] if text else []


def _name(text: str) -> str:
    return "" if text == "''" else text


def _resource(kind: str) -> int:
    return _RESOURCES[kind] if kind in _RESOURCES else int(kind)


def _uuid(text: str) -> bytes:
    number = int(text.removeprefix("#"))
    return b"\x11" + number.to_bytes(15) if number else bytes(16)


def _resource_results(responses: Iterable[Any]) -> Iterator[str]:
    for result in responses:
        resource = f"{result.resource_type} {result.resource_name!r}"
        yield f"{resource}: {_ERROR_NAMES[result.error_code]} {result.error_message or ''}".rstrip()


def _record(record: MetadataRecord) -> str:
    """The fields that differ from their defaults, and those that a reader wants to see anyway."""
    parts = [type(record).__name__]
    for field in msgspec.structs.fields(record):
        value = getattr(record, field.name)
        default = field.default if field.default is not msgspec.NODEFAULT else None
        if value != default and value not in ([], b""):
            parts.append(f"{field.name}={_text(value)}")
    return " ".join(parts)


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return "#0" if value == bytes(16) else f"#{int.from_bytes(value[1:])}"
    if isinstance(value, list):
        return f"[{','.join(_text(element) for element in value)}]"
    if isinstance(value, msgspec.Struct):
        return ":".join(_text(getattr(value, field.name)) for field in msgspec.structs.fields(value))
    return str(value)
