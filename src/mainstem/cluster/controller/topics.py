"""CreateTopics: which topics may be made, and the records that make them.

Each topic of a request stands or falls alone, except that a request which asks for too much is refused whole.
Checks come in Kafka's order, because the first failure is the one that a client sees.
"""

from collections import Counter
from collections.abc import Callable, Mapping

from msgspec import Struct

from mainstem.cluster.controller.partitions import (
    PARTITIONS_PER_REQUEST_MAX,
    check_manual_assignment,
    new_partition,
    start_place,
)
from mainstem.cluster.controller.placement import place_replicas
from mainstem.cluster.image import MetadataImage
from mainstem.cluster.records import ConfigRecord, MetadataRecord, TopicRecord
from mainstem.cluster.topic_names import CLUSTER_METADATA_TOPIC, colliding_name, name_problem
from mainstem.config import BrokerConfig, ConfigError, validate_topic_configs
from mainstem.config.describe import describe_topic
from mainstem.config.topic import canonical_topic_name
from mainstem.protocol.apis.k19_create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.protocol.resources import ConfigResourceType

USE_DEFAULT = -1


class _Plan(Struct):
    """A topic that can be made."""

    topic_id: bytes
    replicas: list[tuple[int, ...]]
    configs: Mapping[str, str]


def create_topics(
    image: MetadataImage, config: BrokerConfig, request: CreateTopicsRequest, new_uuid: Callable[[], bytes]
) -> tuple[CreateTopicsResponse, list[MetadataRecord]]:
    """The answers, and the records that make the topics; no records when it was only a check."""
    times_named = Counter(topic.name for topic in request.topics)
    asked_for = sum(max(_partition_count(topic, config), 0) for topic in request.topics)
    too_many = asked_for > PARTITIONS_PER_REQUEST_MAX
    results: list[CreatableTopicResult] = []
    records: list[MetadataRecord] = []
    for topic in {topic.name: topic for topic in request.topics}.values():
        try:
            if times_named[topic.name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"Topic {topic.name} is in the request twice.")
            if too_many:
                raise KafkaError(
                    ErrorCode.POLICY_VIOLATION,
                    f"One request can create at most {PARTITIONS_PER_REQUEST_MAX} partitions.",
                )
            plan = _plan(image, config, topic, new_uuid)
            records += _records(image, topic.name, plan)
            results.append(_success(config, topic.name, plan))
        except KafkaError as error:
            results.append(
                CreatableTopicResult(name=topic.name, error_code=error.code, error_message=error.message)
            )
    return CreateTopicsResponse(topics=results), [] if request.validate_only else records


def _partition_count(topic: CreatableTopic, config: BrokerConfig) -> int:
    if topic.assignments:
        return len(topic.assignments)
    default: int = config.get("num.partitions")
    return default if topic.num_partitions == USE_DEFAULT else topic.num_partitions


def _plan(
    image: MetadataImage, config: BrokerConfig, topic: CreatableTopic, new_uuid: Callable[[], bytes]
) -> _Plan:
    _check_name(image, topic.name)
    configs = _checked_configs(config, topic)
    if topic.assignments:
        replicas = _manual_replicas(image, topic)
        return _Plan(_unused_id(image, new_uuid), replicas, configs)
    partition_count = _partition_count(topic, config)
    replication_factor = topic.replication_factor
    if replication_factor == USE_DEFAULT:
        replication_factor = config.get("default.replication.factor")
    if replication_factor <= 0:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor cannot be {replication_factor}; give 1 or more, or -1 for the default.",
        )
    if partition_count <= 0:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"A topic cannot have {partition_count} partitions; give 1 or more, or -1 for the default.",
        )
    topic_id = _unused_id(image, new_uuid)
    placed = place_replicas(
        image.brokers.values(), partition_count, replication_factor, start_place(topic_id)
    )
    return _Plan(topic_id, placed, configs)


def _check_name(image: MetadataImage, name: str) -> None:
    if name == CLUSTER_METADATA_TOPIC:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name} is the cluster's own and cannot be created.")
    problem = name_problem(name)
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    if name in image.topics_by_name:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic {name} exists already.")
    other = colliding_name(name, image.names_by_normal_form)
    if other is not None:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic {name} would share its metrics with the existing topic {other}: "
            "names must differ in more than '.' and '_'.",
        )


def _checked_configs(config: BrokerConfig, topic: CreatableTopic) -> dict[str, str]:
    configs: dict[str, str] = {}
    for entry in topic.configs:
        if entry.value is None:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"The setting {entry.name} was given without a value.")
        configs[canonical_topic_name(entry.name)] = entry.value
    try:
        validate_topic_configs(configs, config)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, error.message) from error
    return configs


def _manual_replicas(image: MetadataImage, topic: CreatableTopic) -> list[tuple[int, ...]]:
    if topic.replication_factor != USE_DEFAULT:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Topic {topic.name} has a manual assignment, so its replication factor must be -1.",
        )
    if topic.num_partitions != USE_DEFAULT:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Topic {topic.name} has a manual assignment, so its number of partitions must be -1.",
        )
    by_partition: dict[int, tuple[int, ...]] = {}
    replication_factor: int | None = None
    for assignment in topic.assignments:
        if assignment.partition_index in by_partition:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Partition {assignment.partition_index} has more than one manual assignment.",
            )
        check_manual_assignment(image.brokers, assignment.broker_ids, replication_factor)
        replication_factor = len(assignment.broker_ids)
        by_partition[assignment.partition_index] = tuple(assignment.broker_ids)
    if sorted(by_partition) != list(range(len(by_partition))):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"The assigned partitions of {topic.name} must be numbered from 0 without a gap.",
        )
    return [by_partition[index] for index in range(len(by_partition))]


def _unused_id(image: MetadataImage, new_uuid: Callable[[], bytes]) -> bytes:
    while (topic_id := new_uuid()) in image.topics_by_id:
        pass
    return topic_id


def _records(image: MetadataImage, name: str, plan: _Plan) -> list[MetadataRecord]:
    records: list[MetadataRecord] = [TopicRecord(name, plan.topic_id)]
    # Settings come before the partitions, as in Kafka, so that whoever opens a log has them.
    records += [
        ConfigRecord(ConfigResourceType.TOPIC, name, key, value) for key, value in plan.configs.items()
    ]
    records += [
        new_partition(image.brokers, plan.topic_id, index, replicas)
        for index, replicas in enumerate(plan.replicas)
    ]
    return records


def _success(config: BrokerConfig, name: str, plan: _Plan) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=name,
        topic_id=plan.topic_id,
        error_code=ErrorCode.NONE,
        error_message=None,
        num_partitions=len(plan.replicas),
        replication_factor=len(plan.replicas[0]),
        configs=[
            CreatableTopicConfigs(
                name=entry.name,
                value=None if entry.sensitive else entry.value,
                read_only=entry.read_only,
                config_source=entry.source,
                is_sensitive=entry.sensitive,
            )
            for entry in describe_topic(config, plan.configs)
        ],
    )
