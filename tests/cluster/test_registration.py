"""What a registration decides for partitions that Apache Kafka left without a leader."""

from mainstem.cluster.records import PartitionChangeRecord, PartitionRecord, TopicRecord
from mainstem.cluster.registration import register_broker
from tests.cluster.cluster_model import apply, cluster_of, registration

TOPIC_ID = b"\x44" * 16


def test_an_eligible_leader_replica_leads_again_when_nobody_is_in_sync() -> None:
    """Apache Kafka 4 empties the in-sync replicas of a node that shuts down, and keeps it as eligible."""
    image = apply(
        cluster_of((1, 2)),
        [
            TopicRecord("orders", TOPIC_ID),
            PartitionRecord(
                0, TOPIC_ID, replicas=[2, 1], isr=[2, 1], leader=2, leader_epoch=4, partition_epoch=7
            ),
            PartitionChangeRecord(
                0, TOPIC_ID, isr=[], leader=-1, eligible_leader_replicas=[1], last_known_elr=[1]
            ),
        ],
    )
    (before,) = image.topics_by_name["orders"].partitions
    _, records = register_broker(image, registration(1))
    (after,) = apply(image, records).topics_by_name["orders"].partitions
    assert (after.leader, after.isr) == (1, (1,))
    assert (after.eligible_leader_replicas, after.last_known_elr) == ((), ())
    assert after.leader_epoch == before.leader_epoch + 1
