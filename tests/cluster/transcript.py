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

from mainstem.cluster.controller.configs import ConfigOperation
from mainstem.cluster.features import ELIGIBLE_LEADER_REPLICAS_VERSION
from mainstem.cluster.records import MetadataRecord
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
from mainstem.protocol.apis.k43_elect_leaders import ElectLeadersRequest, TopicPartitions
from mainstem.protocol.apis.k45_alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from mainstem.protocol.apis.k56_alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from mainstem.protocol.apis.k57_update_features import FeatureUpdateKey, UpdateFeaturesRequest
from mainstem.protocol.apis.k63_broker_heartbeat import BrokerHeartbeatRequest
from mainstem.protocol.apis.k64_unregister_broker import UnregisterBrokerRequest
from mainstem.protocol.apis.k67_allocate_producer_ids import AllocateProducerIdsRequest
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import ConfigResourceType
from tests.cluster.cluster_model import CLUSTER_ID, Cluster, registration
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
        """`cluster-of 1 2 3 setting=value elr`: a new cluster of these brokers; the controller is none of
        them where its id is given as `controller=9`.
        """
        brokers = [int(option) for option in options if option.isdigit()]
        fields = _fields(option for option in options if "=" in option)
        node_id = int(fields.pop("controller", "1"))
        features = {ELIGIBLE_LEADER_REPLICAS_VERSION: 1} if "elr" in options else {}
        self._cluster = Cluster(brokers, fields, features=features, node_id=node_id)
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
        request = AllocateProducerIdsRequest(1, self._cluster.image.brokers[1].epoch)
        block, records = self._cluster.controller.allocate_producer_ids(request)
        yield f"{block.producer_id_start} to {block.producer_id_start + block.producer_id_len - 1}"
        yield from self._apply(records)

    def _register(self, options: list[str], _lines: list[list[str]]) -> Iterator[str]:
        """`register 2 clean`: a new process of a broker, whose last one ended well or not."""
        cluster, broker_id = self._cluster, int(options[0])
        previous = cluster.image.brokers[broker_id].epoch if "clean" in options else -1
        request = registration(broker_id, incarnation=cluster.image.offset, previous_epoch=previous)
        response, records = cluster.controller.register_broker(
            request, CLUSTER_ID, cluster.now_ms, is_own=broker_id == cluster.controller.node_id
        )
        yield f"broker epoch {response.broker_epoch}"
        yield from self._apply(records)

    def _heartbeat(self, options: list[str], _lines: list[list[str]]) -> Iterator[str]:
        """`heartbeat 2 want-fence want-shut-down lost=#2 at=17`"""
        cluster, broker_id = self._cluster, int(options[0])
        fields = _fields(option for option in options if "=" in option)
        request = BrokerHeartbeatRequest(
            broker_id,
            cluster.image.brokers[broker_id].epoch,
            int(fields.get("at", cluster.image.offset)),
            "want-fence" in options,
            "want-shut-down" in options,
            [b"\x33" + bytes.fromhex(fields["lost"].rjust(30, "0"))] if "lost" in fields else [],
        )
        response, records = cluster.controller.heartbeat(request, cluster.now_ms)
        said = [name for name in response.__struct_fields__[2:] if getattr(response, name)]
        yield " ".join(said) or "nothing"
        yield from self._apply(records)

    def _wait(self, options: list[str], _lines: list[list[str]]) -> Iterator[str]:
        """`wait 9000`: this many milliseconds pass."""
        self._cluster.now_ms += int(options[0])
        while records := self._cluster.controller.time_passed(self._cluster.now_ms).records:
            yield from self._apply(records)

    def _lost(self, options: list[str], _lines: list[list[str]]) -> Iterator[str]:
        """`lost 2`: the connection of its heartbeats is gone, and nobody listens at its address."""
        cluster, broker_id = self._cluster, int(options[0])
        cluster.controller.connection_lost(broker_id, cluster.image.brokers[broker_id].epoch, cluster.now_ms)
        for probe in cluster.controller.time_passed(cluster.now_ms).probes:
            yield f"probes {probe.host}:{probe.port}"
            yield from self._apply(cluster.controller.refused(probe, cluster.now_ms))
        yield from self._wait(["0"], [])

    def _isr(self, options: list[str], _lines: list[list[str]]) -> Iterator[str]:
        """`isr orders-0 by 1: 1,2`: a leader's AlterPartition, with the epochs that it should have."""
        cluster = self._cluster
        name, number = options[0].rsplit("-", 1)
        topic, leader = cluster.image.topics_by_name[name], int(options[2].rstrip(":"))
        part = topic.partitions[int(number)]
        isr = [BrokerState(b, cluster.image.brokers[b].epoch) for b in _assignments(options[3])[0]]
        data = PartitionData(part.partition, part.leader_epoch, [], isr, 0, part.partition_epoch)
        request = AlterPartitionRequest(
            leader, cluster.image.brokers[leader].epoch, [TopicData(topic.topic_id, [data])]
        )
        response, records = cluster.controller.alter_partition(request, 3)
        answer = response.topics[0].partitions[0]
        outcome = (
            f"isr={answer.isr} partition_epoch={answer.partition_epoch}" if not answer.error_code else ""
        )
        yield f"{_ERROR_NAMES[answer.error_code]} {outcome}".rstrip()
        yield from self._apply(records)

    def _elect(self, options: list[str], lines: list[list[str]]) -> Iterator[str]:
        """`elect preferred` or `elect unclean`, with lines of a topic and its partitions, or none for all."""
        wishes = [TopicPartitions(line[0], [int(number) for number in line[1:]]) for line in lines]
        request = ElectLeadersRequest(int(options[0] == "unclean"), wishes or None)
        response, records = self._cluster.controller.elect_leaders(request)
        for topic in response.replica_election_results:
            for result in topic.partition_result:
                yield f"{topic.topic}-{result.partition_id}: {_ERROR_NAMES[result.error_code]}"
        yield from self._apply(records)

    def _unregister(self, options: list[str], _lines: list[list[str]]) -> Iterator[str]:
        _, records = self._cluster.controller.unregister_broker(UnregisterBrokerRequest(int(options[0])))
        yield from self._apply(records)

    def _reassign(self, _options: list[str], lines: list[list[str]]) -> Iterator[str]:
        """Lines of a partition and its new replicas, or `cancel`."""
        topics = []
        for partition, replicas in lines:
            name, number = partition.rsplit("-", 1)
            ids = None if replicas == "cancel" else _assignments(replicas)[0]
            topics.append(ReassignableTopic(name, [ReassignablePartition(int(number), ids)]))
        request = AlterPartitionReassignmentsRequest(topics=topics)
        response, records = self._cluster.controller.alter_partition_reassignments(request)
        for topic in response.responses:
            for result in topic.partitions:
                code = _ERROR_NAMES[result.error_code]
                message = result.error_message or ""
                yield f"{topic.name}-{result.partition_index}: {code} {message}".rstrip()
        yield from self._apply(records)

    def _features(self, options: list[str], lines: list[list[str]]) -> Iterator[str]:
        """Lines of a feature and its level; `downgrade` or `unsafe-downgrade` as the way."""
        kind = 3 if "unsafe-downgrade" in options else 2 if "downgrade" in options else 1
        updates = [FeatureUpdateKey(name, int(level), upgrade_type=kind) for name, level in lines]
        response, records = self._cluster.controller.update_features(
            UpdateFeaturesRequest(feature_updates=updates), 2
        )
        yield f"{_ERROR_NAMES[response.error_code]} {response.error_message or ''}".rstrip()
        yield from self._apply(records)

    def _show(self, _options: list[str], _lines: list[list[str]]) -> Iterator[str]:
        for topic in self._cluster.image.topics_by_name.values():
            for p in topic.partitions:
                epochs = f"leader_epoch={p.leader_epoch} partition_epoch={p.partition_epoch}"
                replicas = f"replicas={list(p.replicas)} isr={list(p.isr)}"
                line = f"{topic.name}-{p.partition} leader={p.leader} {epochs} {replicas}"
                if p.eligible_leader_replicas or p.last_known_elr:
                    line += f" elr={list(p.eligible_leader_replicas)} last_known_elr={list(p.last_known_elr)}"
                if p.adding_replicas or p.removing_replicas:
                    line += f" adding={list(p.adding_replicas)} removing={list(p.removing_replicas)}"
                yield line + (" recovering" if p.leader_recovery_state else "")
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
