"""AlterPartition: what a leader may say about who is in sync, and what it is told otherwise."""

from typing import Any

import pytest

from mainstem.protocol.apis.k56_alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    ResponsePartitionData,
    TopicData,
)
from mainstem.protocol.errors import ErrorCode, KafkaError
from tests.cluster.cluster_model import Cluster, registration


@pytest.fixture
def cluster() -> Cluster:
    """Broker 1 leads orders-0, whose in-sync replicas are 1 and 2; broker 3 is another replica."""
    made = Cluster((1, 2, 3), node_id=9)
    made.create("orders", (1, 2, 3))
    alter(made, [1, 2])
    assert made.partition("orders").isr == (1, 2)
    return made


def alter(
    cluster: Cluster, isr: list[int], *, by: int = 1, epochs: dict[int, int] | None = None, **said: Any
) -> ResponsePartitionData:
    """What broker 1, or another one, says of orders-0, with what it should know unless it says otherwise."""
    topic = cluster.image.topics_by_name["orders"]
    part = topic.partitions[0]
    known = {broker.broker_id: broker.epoch for broker in cluster.image.brokers.values()} | (epochs or {})
    fields: dict[str, Any] = {
        "partition_index": 0,
        "leader_epoch": part.leader_epoch,
        "partition_epoch": part.partition_epoch,
        "new_isr_with_epochs": [BrokerState(broker_id, known.get(broker_id, -1)) for broker_id in isr],
    } | said
    request = AlterPartitionRequest(by, known[by], [TopicData(topic.topic_id, [PartitionData(**fields)])])
    response, records = cluster.controller.alter_partition(request, 3)
    cluster.apply(records)
    return response.topics[0].partitions[0]


def test_the_set_grows_and_shrinks_by_compare_and_set(cluster: Cluster) -> None:
    before = cluster.partition("orders")
    grown = alter(cluster, [1, 2, 3])
    assert (grown.error_code, grown.isr) == (ErrorCode.NONE, [1, 2, 3])
    after = cluster.partition("orders")
    assert after.isr == (1, 2, 3)
    assert (grown.leader_epoch, grown.partition_epoch) == (after.leader_epoch, after.partition_epoch)
    assert after.partition_epoch == before.partition_epoch + 1
    assert after.leader_epoch == before.leader_epoch, "a leader goes on in its epoch (KAFKA-15021)"
    late = alter(cluster, [1], partition_epoch=before.partition_epoch)
    assert late.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert alter(cluster, [1, 2, 3]).partition_epoch == after.partition_epoch, "nothing to change"


@pytest.mark.parametrize(
    ("isr", "said", "code"),
    [
        ([1, 2, 3], {"partition_index": 1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ([1, 2, 3], {"partition_index": -1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ([1, 2, 3], {"leader_epoch": 7}, ErrorCode.NOT_CONTROLLER),
        ([1, 2, 3], {"partition_epoch": 7}, ErrorCode.NOT_CONTROLLER),
        ([1, 2, 3], {"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        ([1, 2, 3], {"by": 2}, ErrorCode.INVALID_REQUEST),
        ([2, 3], {}, ErrorCode.INVALID_REQUEST),
        ([1, 1], {}, ErrorCode.INVALID_REQUEST),
        ([1, 4], {}, ErrorCode.INVALID_REQUEST),
        ([], {}, ErrorCode.INVALID_REQUEST),
        ([1], {"leader_recovery_state": 1}, ErrorCode.INVALID_REQUEST),
        ([1, 2, 3], {"epochs": {3: 1}}, ErrorCode.INELIGIBLE_REPLICA),
    ],
)
def test_what_cannot_be_is_refused(
    cluster: Cluster, isr: list[int], said: dict[str, Any], code: ErrorCode
) -> None:
    before = cluster.partition("orders")
    assert alter(cluster, isr, **said).error_code == code
    assert cluster.partition("orders") is before


def test_a_leader_that_does_not_know_the_epochs_of_others_may_say_so(cluster: Cluster) -> None:
    assert alter(cluster, [1, 2, 3], epochs={3: -1}).error_code == ErrorCode.NONE


def test_nobody_gets_in_who_is_fenced_or_about_to_end(cluster: Cluster) -> None:
    cluster.heartbeat(3, want_fence=True)
    assert alter(cluster, [1, 2, 3]).error_code == ErrorCode.INELIGIBLE_REPLICA
    cluster.heartbeat(3)
    cluster.create("other", (3, 1))
    cluster.heartbeat(3, want_shut_down=True)
    assert alter(cluster, [1, 2, 3]).error_code == ErrorCode.INELIGIBLE_REPLICA


def test_a_former_incarnation_of_the_leader_is_not_listened_to(cluster: Cluster) -> None:
    former = AlterPartitionRequest(1, cluster.image.brokers[1].epoch)
    cluster.heartbeat(1, want_fence=True)
    cluster.register(registration(1, incarnation=1))
    with pytest.raises(KafkaError) as error:
        cluster.controller.alter_partition(former, 3)
    assert error.value.code is ErrorCode.STALE_BROKER_EPOCH


def test_a_topic_that_is_gone_is_unknown_by_its_id(cluster: Cluster) -> None:
    request = AlterPartitionRequest(
        1, cluster.image.brokers[1].epoch, [TopicData(b"\x77" * 16, [PartitionData(3)])]
    )
    response, records = cluster.controller.alter_partition(request, 3)
    assert response.topics[0].partitions == [ResponsePartitionData(3, ErrorCode.UNKNOWN_TOPIC_ID)]
    assert records == []


def test_a_partition_that_is_named_twice_is_altered_once(cluster: Cluster) -> None:
    topic = cluster.image.topics_by_name["orders"]
    part = topic.partitions[0]
    data = PartitionData(0, part.leader_epoch, [], [BrokerState(1)], 0, part.partition_epoch)
    twice = TopicData(topic.topic_id, [data, data])
    request = AlterPartitionRequest(1, cluster.image.brokers[1].epoch, [twice])
    response, records = cluster.controller.alter_partition(request, 3)
    codes = [answer.error_code for answer in response.topics[0].partitions]
    assert codes == [ErrorCode.NONE, ErrorCode.INVALID_UPDATE_VERSION]
    assert len(records) == 1


def test_version_2_names_the_set_without_epochs(cluster: Cluster) -> None:
    topic = cluster.image.topics_by_name["orders"]
    part = topic.partitions[0]
    data = PartitionData(0, part.leader_epoch, [1, 2, 3], [], 0, part.partition_epoch)
    request = AlterPartitionRequest(1, cluster.image.brokers[1].epoch, [TopicData(topic.topic_id, [data])])
    response, records = cluster.controller.alter_partition(request, 2)
    cluster.apply(records)
    assert response.topics[0].partitions[0].isr == [1, 2, 3] == list(cluster.partition("orders").isr)


def test_a_leader_recovers_alone_from_an_unclean_election() -> None:
    cluster = Cluster((1, 2), node_id=9)
    cluster.create("orders", (1, 2), unclean_leader_election_enable="true")
    alter(cluster, [1])
    cluster.heartbeat(1, want_fence=True)
    found = cluster.partition("orders")
    assert (found.leader, found.isr, found.leader_recovery_state) == (2, (2,), 1)
    cluster.heartbeat(1)
    both = alter(cluster, [1, 2], by=2, leader_recovery_state=1)
    assert both.error_code == ErrorCode.INVALID_REQUEST
    assert alter(cluster, [2], by=2).error_code == ErrorCode.NONE
    assert cluster.partition("orders").leader_recovery_state == 0
    assert alter(cluster, [1, 2], by=2).isr == [1, 2]
