"""AlterPartition: a leader says who is in sync with it, and the controller writes it down, or says why not.

The partition epoch makes it a compare-and-set: a leader that has not seen the newest state of its partition
is refused. Nobody gets into the set who is fenced, about to end, another incarnation than the leader has
heard of (KIP-841, KIP-903), or without the directory that its replica is in.
"""

from collections.abc import Sequence

from mainstem.cluster.controller.facts import Facts
from mainstem.cluster.controller.partition_change import RECOVERED, RECOVERING, Election
from mainstem.cluster.directories import directory_of, is_online
from mainstem.cluster.image import PartitionImage, TopicImage
from mainstem.cluster.records import MetadataRecord, PartitionChangeRecord
from mainstem.cluster.topics_delta import LEADER_UNCHANGED
from mainstem.protocol.apis.k56_alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    ResponsePartitionData,
    ResponseTopicData,
)
from mainstem.protocol.errors import ErrorCode

_EPOCHS_SINCE = 3
_ANY_EPOCH = -1


def alter_partition(
    facts: Facts, request: AlterPartitionRequest, api_version: int
) -> tuple[AlterPartitionResponse, list[MetadataRecord]]:
    """The answers, and the records of what is accepted. A partition that is named twice is altered once."""
    response = AlterPartitionResponse()
    changes: dict[tuple[bytes, int], PartitionChangeRecord] = {}
    for wish in request.topics:
        topic = facts.image.topics_by_id.get(wish.topic_id)
        answers: list[ResponsePartitionData] = []
        for data in wish.partitions:
            if topic is None:
                answers.append(_refused(data, ErrorCode.UNKNOWN_TOPIC_ID))
                continue
            isr = _wanted_isr(data, api_version)
            key = wish.topic_id, data.partition_index
            error = ErrorCode.INVALID_UPDATE_VERSION if key in changes else None
            error = error or _problem(facts, request.broker_id, topic, data, isr)
            if error is not None:
                answers.append(_refused(data, error))
                continue
            answer, change = _alter(facts, request.broker_id, topic, data, isr)
            answers.append(answer)
            if change is not None:
                changes[key] = change
        response.topics.append(ResponseTopicData(wish.topic_id, answers))
    return response, list(changes.values())


def _wanted_isr(data: PartitionData, api_version: int) -> Sequence[BrokerState]:
    if api_version >= _EPOCHS_SINCE:
        return data.new_isr_with_epochs
    return [BrokerState(broker_id, _ANY_EPOCH) for broker_id in data.new_isr]


def _problem(
    facts: Facts, broker_id: int, topic: TopicImage, data: PartitionData, isr: Sequence[BrokerState]
) -> ErrorCode | None:
    """Why the leader's wish cannot be fulfilled, in Kafka's order of looking."""
    if not 0 <= data.partition_index < len(topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    partition = topic.partitions[data.partition_index]
    if data.leader_epoch > partition.leader_epoch or data.partition_epoch > partition.partition_epoch:
        # Somebody else has decided that: this is not the active controller any more.
        return ErrorCode.NOT_CONTROLLER
    if data.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if broker_id != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if data.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    if not _is_sound(partition, data, [state.broker_id for state in isr]):
        return ErrorCode.INVALID_REQUEST
    if not all(_is_eligible(facts, partition, state) for state in isr):
        return ErrorCode.INELIGIBLE_REPLICA
    return None


def _is_sound(partition: PartitionImage, data: PartitionData, isr: Sequence[int]) -> bool:
    """Whether the set is one that a partition can have; while a leader recovers from an unclean election, it
    is alone in it.
    """
    if len(set(isr)) < len(isr) or not set(isr) <= set(partition.replicas) or partition.leader not in isr:
        return False
    if data.leader_recovery_state == RECOVERING:
        return len(isr) == 1 and partition.leader_recovery_state == RECOVERING
    return data.leader_recovery_state == RECOVERED


def _is_eligible(facts: Facts, partition: PartitionImage, state: BrokerState) -> bool:
    broker = facts.brokers.get(state.broker_id)
    if broker is None or not broker.active:
        return False
    directory = directory_of(partition, state.broker_id)
    if directory is not None and not is_online(broker, directory):
        return False
    return state.broker_epoch in (_ANY_EPOCH, broker.epoch)


def _alter(
    facts: Facts, broker_id: int, topic: TopicImage, data: PartitionData, isr: Sequence[BrokerState]
) -> tuple[ResponsePartitionData, PartitionChangeRecord | None]:
    partition = topic.partitions[data.partition_index]
    change = facts.change(topic, partition)
    change.isr = [state.broker_id for state in isr]
    change.recovery = data.leader_recovery_state
    if facts.allows_unclean_election(topic.name):
        change.election = Election.UNCLEAN
    record = change.record()
    if record is not None and record.leader not in (LEADER_UNCHANGED, broker_id):
        # That the set is complete has ended a reassignment, and with it the leader's time.
        return _refused(data, ErrorCode.NEW_LEADER_ELECTED), record
    begins_epoch = record is not None and record.leader != LEADER_UNCHANGED
    answer = ResponsePartitionData(
        partition_index=data.partition_index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch + begins_epoch,
        isr=list(partition.isr if record is None or record.isr is None else record.isr),
        leader_recovery_state=data.leader_recovery_state,
        partition_epoch=partition.partition_epoch + (record is not None),
    )
    return answer, record


def _refused(data: PartitionData, code: ErrorCode) -> ResponsePartitionData:
    return ResponsePartitionData(data.partition_index, code)
