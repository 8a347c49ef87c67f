"""In which directory of a broker each of its replicas is: what the broker says about it, in records.

With that on record, a broker that starts without one of its directories knows which replicas it lacks, and
does not begin them again, empty, in another one (KIP-858). A replica in a directory that has failed leads
nothing and is in sync with nothing.
"""

from mainstem.cluster.controller.elections import find
from mainstem.cluster.controller.facts import Facts
from mainstem.cluster.controller.partition_change import Election
from mainstem.cluster.directories import is_online
from mainstem.cluster.image import BrokerImage
from mainstem.cluster.records import MetadataRecord, PartitionChangeRecord
from mainstem.cluster.records.versions import has_directories
from mainstem.protocol.apis.k73_assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    ResponseDirectoryData,
    ResponsePartitionData,
    ResponseTopicData,
)
from mainstem.protocol.errors import ErrorCode, KafkaError


def assign_replicas_to_dirs(
    facts: Facts, broker: BrokerImage, request: AssignReplicasToDirsRequest
) -> tuple[AssignReplicasToDirsResponse, list[MetadataRecord]]:
    """The answers, and the records that say where the broker's replicas are, as far as the image says
    something else.
    """
    if not has_directories(facts.level):
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION, f"Directories are not recorded at metadata.version {facts.level}."
        )
    # A replica that is named twice is where it was named last.
    changes: dict[tuple[bytes, int], PartitionChangeRecord | None] = {}
    response = AssignReplicasToDirsResponse()
    for place in request.directories:
        topics = []
        for wish in place.topics:
            partitions = []
            for part in wish.partitions:
                key = wish.topic_id, part.partition_index
                code = _problem(facts, broker.broker_id, key)
                if code is ErrorCode.NONE:
                    changes[key] = _moved(facts, broker, key, place.id)
                partitions.append(ResponsePartitionData(part.partition_index, code))
            topics.append(ResponseTopicData(wish.topic_id, partitions))
        response.directories.append(ResponseDirectoryData(place.id, topics))
    return response, [change for change in changes.values() if change is not None]


def _problem(facts: Facts, broker_id: int, key: tuple[bytes, int]) -> ErrorCode:
    topic_id, number = key
    if topic_id not in facts.image.topics_by_id:
        return ErrorCode.UNKNOWN_TOPIC_ID
    found = find(facts.image, key) if number >= 0 else None
    if found is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    is_replica = broker_id in found[1].replicas
    return ErrorCode.NONE if is_replica else ErrorCode.NOT_LEADER_OR_FOLLOWER


def _moved(
    facts: Facts, broker: BrokerImage, key: tuple[bytes, int], directory: bytes
) -> PartitionChangeRecord | None:
    found = find(facts.image, key)
    assert found is not None, "it was just looked up"
    topic, partition = found
    change = facts.change(topic, partition)
    change.directories[broker.broker_id] = directory
    if not is_online(broker, directory):
        change.isr = [replica for replica in partition.isr if replica != broker.broker_id]
        if facts.allows_unclean_election(topic.name):
            change.election = Election.UNCLEAN
    return change.record()
