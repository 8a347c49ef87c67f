"""Reassignments: new replicas come first, those that leave stay until all others are in sync."""

import pytest

from mainstem.protocol.apis.k45_alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from mainstem.protocol.apis.k46_list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from mainstem.protocol.errors import ErrorCode
from tests.cluster.cluster_model import Cluster
from tests.cluster.controller.test_alter_partition import alter


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster((1, 2, 3, 4), node_id=9)
    made.create("orders", (1, 2))
    return made


def reassign(cluster: Cluster, replicas: list[int] | None, *, resize: bool = True, number: int = 0) -> int:
    topic = ReassignableTopic("orders", [ReassignablePartition(number, replicas)])
    request = AlterPartitionReassignmentsRequest(allow_replication_factor_change=resize, topics=[topic])
    response, records = cluster.controller.alter_partition_reassignments(request)
    cluster.apply(records)
    return response.responses[0].partitions[0].error_code


def under_way(cluster: Cluster) -> list[tuple[list[int], list[int], list[int]]]:
    """What is under way, however it is asked for."""
    listed = cluster.controller.list_partition_reassignments
    everything = listed(ListPartitionReassignmentsRequest(topics=None))
    named = [ListPartitionReassignmentsTopics(name, [0, 7]) for name in ("orders", "none")]
    assert listed(ListPartitionReassignmentsRequest(topics=named)).topics == everything.topics
    parts = [part for topic in everything.topics for part in topic.partitions]
    return [(part.replicas, part.adding_replicas, part.removing_replicas) for part in parts]


def test_a_partition_moves_when_its_new_replicas_are_in_sync(cluster: Cluster) -> None:
    assert reassign(cluster, [3, 4]) == ErrorCode.NONE
    found = cluster.partition("orders")
    assert (found.replicas, found.isr, found.leader) == ((3, 4, 1, 2), (1, 2), 1)
    assert under_way(cluster) == [([3, 4, 1, 2], [3, 4], [1, 2])]
    alter(cluster, [1, 2, 3])
    assert cluster.partition("orders").leader == 1, "not yet"
    last = alter(cluster, [1, 2, 3, 4])
    assert last.error_code == ErrorCode.NEW_LEADER_ELECTED
    moved = cluster.partition("orders")
    assert (moved.replicas, moved.isr, moved.leader, moved.leader_epoch) == ((3, 4), (3, 4), 3, 1)
    assert under_way(cluster) == []


def test_another_order_is_there_at_once(cluster: Cluster) -> None:
    assert reassign(cluster, [2, 1]) == ErrorCode.NONE
    found = cluster.partition("orders")
    assert (found.replicas, found.leader, found.leader_epoch) == ((2, 1), 1, 0)
    assert under_way(cluster) == []


def test_fewer_replicas_begin_a_new_epoch(cluster: Cluster) -> None:
    assert reassign(cluster, [1]) == ErrorCode.NONE
    found = cluster.partition("orders")
    assert (found.replicas, found.isr, found.leader, found.leader_epoch) == ((1,), (1,), 1, 1)


def test_a_reassignment_can_be_taken_back(cluster: Cluster) -> None:
    assert reassign(cluster, None) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    reassign(cluster, [1, 3])
    alter(cluster, [1, 2])
    assert reassign(cluster, None) == ErrorCode.NONE
    found = cluster.partition("orders")
    assert (found.replicas, found.isr, found.leader) == ((1, 2), (1, 2), 1)
    assert under_way(cluster) == []


def test_it_is_not_taken_back_to_replicas_that_lack_something(cluster: Cluster) -> None:
    """KAFKA-14424: nobody of the originals is alive."""
    reassign(cluster, [3])
    alter(cluster, [1, 2])
    alter(cluster, [1])
    cluster.heartbeat(2, want_fence=True)
    # The new replica is the only one in sync, but not yet all that is wanted.
    assert reassign(cluster, [3, 4]) == ErrorCode.NONE
    alter(cluster, [1, 3])
    cluster.heartbeat(1, want_fence=True)
    assert (cluster.partition("orders").leader, cluster.partition("orders").isr) == (3, (3,))
    assert reassign(cluster, None) == ErrorCode.INVALID_REPLICA_ASSIGNMENT


@pytest.mark.parametrize(
    ("replicas", "said", "code"),
    [
        ([], {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([5], {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([3, 3], {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([3], {"resize": False}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ([3, 4], {"number": 1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_what_cannot_be_is_refused(
    cluster: Cluster, replicas: list[int], said: dict[str, int], code: ErrorCode
) -> None:
    before = cluster.image
    resize, number = bool(said.get("resize", True)), said.get("number", 0)
    assert reassign(cluster, replicas, resize=resize, number=number) == code
    assert cluster.image is before
