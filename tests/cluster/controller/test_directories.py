"""Log directories: where replicas are, and what it costs when one fails."""

from msgspec.structs import replace

from mainstem.cluster.directories import LOST_DIRECTORY, UNASSIGNED_DIRECTORY
from mainstem.protocol.apis.k56_alter_partition import AlterPartitionRequest, BrokerState
from mainstem.protocol.apis.k56_alter_partition import PartitionData as AlteredPartition
from mainstem.protocol.apis.k56_alter_partition import TopicData as AlteredTopic
from mainstem.protocol.apis.k73_assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    DirectoryData,
    PartitionData,
    TopicData,
)
from mainstem.protocol.errors import ErrorCode
from tests.cluster.cluster_model import Cluster, registration

FIRST, SECOND, STRANGE = b"\x66" * 16, b"\x67" * 16, b"\x68" * 16


def cluster_with_two_directories() -> Cluster:
    """Broker 1 has two of them, and orders-0 and orders-1 are in one each."""
    cluster = Cluster((), node_id=9)
    cluster.join(replace(registration(1), log_dirs=[FIRST, SECOND]))
    cluster.join(registration(2))
    cluster.create("orders", (1, 2), (1, 2))
    assert cluster.partition("orders").directories[0] == UNASSIGNED_DIRECTORY, "the broker chooses"
    assert assign(cluster, FIRST, 0) == [ErrorCode.NONE]
    assert assign(cluster, SECOND, 1) == [ErrorCode.NONE]
    return cluster


def assign(cluster: Cluster, directory: bytes, *partitions: int, topic_id: bytes | None = None) -> list[int]:
    topic_id = topic_id or cluster.image.topics_by_name["orders"].topic_id
    place = DirectoryData(directory, [TopicData(topic_id, [PartitionData(number) for number in partitions])])
    request = AssignReplicasToDirsRequest(1, cluster.image.brokers[1].epoch, [place])
    response, records = cluster.controller.assign_replicas_to_dirs(request)
    cluster.apply(records)
    return [answer.error_code for answer in response.directories[0].topics[0].partitions]


def test_a_broker_says_where_its_replicas_are() -> None:
    cluster = cluster_with_two_directories()
    assert [cluster.partition("orders", n).directories[0] for n in (0, 1)] == [FIRST, SECOND]
    before = cluster.partition("orders")
    assert assign(cluster, FIRST, 0) == [ErrorCode.NONE]
    assert cluster.partition("orders") is before, "nothing is new"


def test_what_a_broker_does_not_have_is_nowhere() -> None:
    cluster = cluster_with_two_directories()
    cluster.create("others", (2,))
    others = cluster.image.topics_by_name["others"].topic_id
    assert assign(cluster, FIRST, 0, topic_id=others) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert assign(cluster, FIRST, 2, -1) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2
    assert assign(cluster, FIRST, 0, topic_id=STRANGE) == [ErrorCode.UNKNOWN_TOPIC_ID]


def test_a_failed_directory_costs_its_replicas_and_no_others() -> None:
    cluster = cluster_with_two_directories()
    cluster.heartbeat(1, offline_log_dirs=[FIRST])
    assert cluster.image.brokers[1].log_dirs == (SECOND,)
    lost, kept = cluster.partition("orders", 0), cluster.partition("orders", 1)
    assert (lost.leader, lost.isr, kept.leader, kept.isr) == (2, (2,), 1, (1, 2))
    offset = cluster.image.offset
    cluster.heartbeat(1, offline_log_dirs=[FIRST])
    assert cluster.image.offset == offset, "it is known"


def test_a_replica_in_a_failed_directory_is_not_let_into_sync() -> None:
    """Its leader may not have heard yet of what has failed."""
    cluster = cluster_with_two_directories()
    cluster.heartbeat(1, offline_log_dirs=[FIRST])

    def grow(number: int, leader: int) -> int:
        topic, part = cluster.image.topics_by_name["orders"], cluster.partition("orders", number)
        epochs = {broker_id: cluster.image.brokers[broker_id].epoch for broker_id in (1, 2)}
        data = AlteredPartition(
            number,
            part.leader_epoch,
            new_isr_with_epochs=[BrokerState(*known) for known in epochs.items()],
            partition_epoch=part.partition_epoch,
        )
        request = AlterPartitionRequest(leader, epochs[leader], [AlteredTopic(topic.topic_id, [data])])
        response, records = cluster.controller.alter_partition(request, 3)
        cluster.apply(records)
        return response.topics[0].partitions[0].error_code

    assert grow(0, leader=2) == ErrorCode.INELIGIBLE_REPLICA
    assert assign(cluster, SECOND, 0) == [ErrorCode.NONE]
    assert grow(0, leader=2) == ErrorCode.NONE
    assert cluster.partition("orders").isr == (2, 1) or cluster.partition("orders").isr == (1, 2)


def test_a_replica_in_a_failed_directory_never_leads() -> None:
    cluster = cluster_with_two_directories()
    cluster.heartbeat(1, offline_log_dirs=[FIRST])
    cluster.heartbeat(2, want_fence=True)
    assert [cluster.partition("orders", number).leader for number in (0, 1)] == [-1, 1]


def test_a_replica_that_is_lost_leads_nothing_any_more() -> None:
    cluster = cluster_with_two_directories()
    assert assign(cluster, LOST_DIRECTORY, 1) == [ErrorCode.NONE]
    found = cluster.partition("orders", 1)
    assert (found.leader, found.isr, found.directories[0]) == (2, (2,), LOST_DIRECTORY)


def test_cordoned_directories_are_put_on_record_and_get_no_new_replicas() -> None:
    cluster = cluster_with_two_directories()
    cluster.heartbeat(1, cordoned_log_dirs=[FIRST, SECOND])
    assert cluster.image.brokers[1].wholly_cordoned
    cluster.heartbeat(1, cordoned_log_dirs=[])
    assert not cluster.image.brokers[1].wholly_cordoned
