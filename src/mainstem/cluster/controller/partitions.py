"""Partitions: the records of new ones, and CreatePartitions.

Decides from an image and returns records; it must never change the image.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from mainstem.cluster.controller.placement import place_replicas
from mainstem.cluster.directories import default_directory
from mainstem.cluster.image import BrokerImage, MetadataImage, TopicImage
from mainstem.cluster.records import MetadataRecord, PartitionRecord
from mainstem.protocol.apis.k37_create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from mainstem.protocol.errors import ErrorCode, KafkaError

# Kafka's bound for one request: what it makes must fit into one step of the controller.
PARTITIONS_PER_REQUEST_MAX = 10_000


def new_partition(
    brokers: Mapping[int, BrokerImage], topic_id: bytes, partition: int, replicas: Sequence[int]
) -> PartitionRecord:
    """The record of a new partition; its in-sync replicas are those that can serve now."""
    isr = [replica for replica in replicas if brokers[replica].active]
    if not isr:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Partition {partition} would have no leader: all its brokers are fenced or shutting down.",
        )
    return PartitionRecord(
        partition_id=partition,
        topic_id=topic_id,
        replicas=list(replicas),
        isr=isr,
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=[default_directory(brokers[replica]) for replica in replicas],
    )


def check_manual_assignment(
    brokers: Mapping[int, BrokerImage], replicas: Sequence[int], replication_factor: int | None
) -> None:
    """Refuse replicas that a client chose badly; `replication_factor` is that of the partitions before."""
    if not replicas:
        raise _bad_assignment("A manual assignment names no brokers for a partition.")
    for broker_id in sorted(replicas):
        if broker_id not in brokers:
            raise _bad_assignment(f"A manual assignment names broker {broker_id}, which is not registered.")
    if len(set(replicas)) != len(replicas):
        raise _bad_assignment(f"A manual assignment names a broker more than once: {list(replicas)}.")
    if replication_factor is not None and len(replicas) != replication_factor:
        raise _bad_assignment(
            f"A manual assignment gives a partition {len(replicas)} replicas where others have "
            f"{replication_factor}."
        )


def _bad_assignment(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)


def create_partitions(
    image: MetadataImage, request: CreatePartitionsRequest
) -> tuple[CreatePartitionsResponse, list[MetadataRecord]]:
    """Grow topics. Each topic stands or falls alone."""
    times_named = Counter(topic.name for topic in request.topics)
    results: list[CreatePartitionsTopicResult] = []
    records: list[MetadataRecord] = []
    for topic in {topic.name: topic for topic in request.topics}.values():
        try:
            if times_named[topic.name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"Topic {topic.name} is in the request twice.")
            records += _grow(image, topic, PARTITIONS_PER_REQUEST_MAX - len(records))
            results.append(CreatePartitionsTopicResult(name=topic.name))
        except KafkaError as error:
            results.append(CreatePartitionsTopicResult(topic.name, error.code, error.message))
    return CreatePartitionsResponse(results=results), [] if request.validate_only else records


def _grow(image: MetadataImage, request: CreatePartitionsTopic, room: int) -> list[MetadataRecord]:
    topic = image.topics_by_name.get(request.name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {request.name}.")
    have = len(topic.partitions)
    if request.count <= have:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"Topic {topic.name} has {have} partitions already; {request.count} would not be an increase.",
        )
    added = request.count - have
    if added > room:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"One request can add at most {PARTITIONS_PER_REQUEST_MAX} partitions.",
        )
    replication_factor = len(topic.partitions[0].replicas)
    if request.assignments is None:
        placed = place_replicas(
            image.brokers.values(), added, replication_factor, start_place(topic.topic_id), have
        )
    else:
        placed = _manual(image, topic, request, added, replication_factor)
    return [
        new_partition(image.brokers, topic.topic_id, have + index, replicas)
        for index, replicas in enumerate(placed)
    ]


def _manual(
    image: MetadataImage,
    topic: TopicImage,
    request: CreatePartitionsTopic,
    added: int,
    replication_factor: int,
) -> list[tuple[int, ...]]:
    assignments = request.assignments or []
    if len(assignments) != added:
        raise _bad_assignment(
            f"Topic {topic.name} gets {added} more partitions, but {len(assignments)} assignments were given."
        )
    for assignment in assignments:
        check_manual_assignment(image.brokers, assignment.broker_ids, replication_factor)
    return [tuple(assignment.broker_ids) for assignment in assignments]


def start_place(topic_id: bytes) -> int:
    """Where a topic's first partition starts among the brokers: as random as the id, and always the same."""
    return int.from_bytes(topic_id[-4:])
