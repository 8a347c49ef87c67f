"""AlterPartitionReassignments and ListPartitionReassignments: partitions get other replicas.

New replicas are added first, and those that are to leave stay until all others are in sync: the change of a
partition ends the reassignment by itself when that is so. One that is under way can be taken back, unless
nobody of the former replicas is in sync any more (KAFKA-14424).
"""

from collections.abc import Iterable

from mainstem.cluster.controller.elections import find
from mainstem.cluster.controller.facts import Facts
from mainstem.cluster.controller.partition_change import Election
from mainstem.cluster.controller.partition_index import PartitionIndex
from mainstem.cluster.controller.partitions import check_manual_assignment
from mainstem.cluster.image import PartitionImage, TopicImage
from mainstem.cluster.records import MetadataRecord, PartitionChangeRecord
from mainstem.protocol.apis.k45_alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from mainstem.protocol.apis.k46_list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from mainstem.protocol.errors import ErrorCode, KafkaError


def alter_partition_reassignments(
    facts: Facts, request: AlterPartitionReassignmentsRequest
) -> tuple[AlterPartitionReassignmentsResponse, list[MetadataRecord]]:
    """Each partition stands or falls alone; one that is named twice is reassigned once."""
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change, error_message=None
    )
    changes: dict[tuple[str, int], PartitionChangeRecord | None] = {}
    for topic in request.topics:
        results = []
        for wish in topic.partitions:
            result = ReassignablePartitionResponse(partition_index=wish.partition_index, error_message=None)
            key = topic.name, wish.partition_index
            try:
                if key in changes:
                    raise KafkaError(
                        ErrorCode.INVALID_REQUEST, f"Partition {key[0]}-{key[1]} is in the request twice."
                    )
                changes[key] = _alter(
                    facts, topic.name, wish, may_resize=request.allow_replication_factor_change
                )
            except KafkaError as error:
                result.error_code, result.error_message = error.code, error.message or error.code.message
            results.append(result)
        response.responses.append(ReassignableTopicResponse(name=topic.name, partitions=results))
    return response, [change for change in changes.values() if change is not None]


def _alter(
    facts: Facts, name: str, wish: ReassignablePartition, *, may_resize: bool
) -> PartitionChangeRecord | None:
    topic = facts.image.topics_by_name.get(name)
    partition = facts.image.partition(name, wish.partition_index)
    if topic is None or partition is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {name}-{wish.partition_index}."
        )
    if wish.replicas is None:
        return _cancel(facts, topic, partition)
    check_manual_assignment(facts.brokers, wish.replicas, None)
    former = [replica for replica in partition.replicas if replica not in partition.adding_replicas]
    if not may_resize and len(wish.replicas) != len(former):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Partition {name}-{partition.partition} has {len(former)} replicas and would get "
            f"{len(wish.replicas)}, which the request does not allow.",
        )
    change = facts.change(topic, partition)
    change.adding = sorted(set(wish.replicas) - set(former))
    change.removing = sorted(set(partition.replicas) - set(wish.replicas))
    change.replicas = [*wish.replicas, *change.removing]
    return change.record()


def _cancel(facts: Facts, topic: TopicImage, partition: PartitionImage) -> PartitionChangeRecord | None:
    if not partition.adding_replicas and not partition.removing_replicas:
        code = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        raise KafkaError(code, code.message)
    change = facts.change(topic, partition)
    change.replicas = [replica for replica in partition.replicas if replica not in partition.adding_replicas]
    change.isr = [replica for replica in partition.isr if replica in change.replicas]
    change.adding, change.removing = [], []
    if facts.allows_unclean_election(topic.name):
        change.election = Election.UNCLEAN
    elif not set(change.replicas) & {*change.isr, *partition.eligible_leader_replicas}:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"None of the former replicas of {topic.name}-{partition.partition} is in sync: to go back "
            "to them could lose records. Set unclean.leader.election.enable for the topic to do so "
            "all the same.",
        )
    return change.record()


def list_partition_reassignments(
    facts: Facts, index: PartitionIndex, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """What is under way of the partitions that are asked for, or of all."""
    by_topic: dict[str, list[OngoingPartitionReassignment]] = {}
    for name, partition in _asked(facts, index, request):
        if partition.adding_replicas or partition.removing_replicas:
            by_topic.setdefault(name, []).append(
                OngoingPartitionReassignment(
                    partition.partition,
                    list(partition.replicas),
                    list(partition.adding_replicas),
                    list(partition.removing_replicas),
                )
            )
    topics = [OngoingTopicReassignment(name, partitions) for name, partitions in by_topic.items()]
    return ListPartitionReassignmentsResponse(error_message=None, topics=topics)


def _asked(
    facts: Facts, index: PartitionIndex, request: ListPartitionReassignmentsRequest
) -> Iterable[tuple[str, PartitionImage]]:
    if request.topics is None:
        for key in index.reassigning:
            found = find(facts.image, key)
            if found is not None:
                yield found[0].name, found[1]
        return
    for topic in request.topics:
        for number in topic.partition_indexes:
            partition = facts.image.partition(topic.name, number)
            if partition is not None:
                yield topic.name, partition
