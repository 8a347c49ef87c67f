"""ElectLeaders: a client asks for the preferred leaders, or for leaders that may lack something."""

from collections.abc import Iterable
from enum import IntEnum

from mainstem.cluster.controller.facts import Facts
from mainstem.cluster.controller.partition_change import Election
from mainstem.cluster.image import NO_LEADER
from mainstem.cluster.records import MetadataRecord, PartitionChangeRecord
from mainstem.protocol.apis.k43_elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from mainstem.protocol.errors import ErrorCode, KafkaError


class ElectionType(IntEnum):
    """As ElectLeaders names them."""

    PREFERRED = 0
    UNCLEAN = 1


def elect_leaders(
    facts: Facts, request: ElectLeadersRequest
) -> tuple[ElectLeadersResponse, list[MetadataRecord]]:
    """The elections that are asked for; where all partitions are meant, those that need none are left out."""
    if request.election_type not in ElectionType._value2member_map_:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{request.election_type} is not a type of election.")
    kind = ElectionType(request.election_type)
    wishes = request.topic_partitions
    if wishes is None:
        asked: Iterable[tuple[str, Iterable[int]]] = (
            (topic.name, range(len(topic.partitions))) for topic in facts.image.topics_by_name.values()
        )
    else:
        asked = ((wish.topic, wish.partitions) for wish in wishes)
    response = ElectLeadersResponse()
    records: list[MetadataRecord] = []
    for name, partitions in asked:
        results = []
        for number in partitions:
            code, message, record = _elect(facts, name, number, kind)
            if record is not None:
                records.append(record)
            if wishes is not None or code != ErrorCode.ELECTION_NOT_NEEDED:
                results.append(PartitionResult(number, code, message))
        response.replica_election_results.append(ReplicaElectionResult(name, results))
    return response, records


def _elect(
    facts: Facts, name: str, number: int, kind: ElectionType
) -> tuple[ErrorCode, str | None, PartitionChangeRecord | None]:
    topic = facts.image.topics_by_name.get(name)
    if topic is None or not 0 <= number < len(topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {name}-{number}.", None
    partition = topic.partitions[number]
    preferred = kind is ElectionType.PREFERRED
    is_well = partition.leader == partition.replicas[0] if preferred else partition.leader != NO_LEADER
    if is_well:
        code = ErrorCode.ELECTION_NOT_NEEDED
        return code, code.message, None
    change = facts.change(topic, partition)
    change.election = Election.PREFERRED if preferred else Election.UNCLEAN
    record = change.record()
    if record is None:
        code = (
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
            if preferred
            else ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        )
        return code, code.message, None
    return ErrorCode.NONE, None, record
