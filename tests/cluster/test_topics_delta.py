"""Topics and partitions as records change them."""

import pytest

from mainstem.cluster.image import MetadataImage, PartitionImage
from mainstem.cluster.records import (
    ClearElrRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from mainstem.cluster.topics_delta import ReplayError
from tests.cluster.cluster_model import apply

ID = b"\x11" * 16
OTHER_ID = b"\x12" * 16
DIRECTORY = b"\x33" * 16


def topic(name: str = "t", topic_id: bytes = ID, partitions: int = 2) -> list[MetadataRecord]:
    return [
        TopicRecord(name, topic_id),
        *(
            PartitionRecord(index, topic_id, [1, 2], [1, 2], [], [], 1, 0, 5, 7, [DIRECTORY, DIRECTORY])
            for index in range(partitions)
        ),
    ]


def image_of(*records: MetadataRecord) -> MetadataImage:
    return apply(MetadataImage(), [*topic(), *records])


def first_partition(*records: MetadataRecord) -> PartitionImage:
    partition = image_of(*records).partition("t", 0)
    assert partition is not None
    return partition


def test_a_topic_is_found_by_name_and_by_id() -> None:
    image = image_of()
    assert image.topics_by_name["t"] is image.topics_by_id[ID]
    assert [p.partition for p in image.topics_by_name["t"].partitions] == [0, 1]
    assert image.partition("t", 2) is None
    assert image.partition("t", -1) is None
    assert image.partition("u", 0) is None


def test_equal_replica_lists_are_kept_once() -> None:
    first, second = image_of().topics_by_name["t"].partitions
    assert first.replicas is second.replicas is first.isr


def test_naming_the_same_leader_begins_a_new_leader_epoch() -> None:
    partition = first_partition(PartitionChangeRecord(0, ID, leader=1))
    assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (1, 6, 8)


def test_a_change_of_the_isr_alone_keeps_the_leader_epoch() -> None:
    partition = first_partition(PartitionChangeRecord(0, ID, isr=[1]))
    assert (partition.isr, partition.leader_epoch, partition.partition_epoch) == ((1,), 5, 8)


def test_replicas_that_stay_keep_their_directories_and_new_ones_have_none_yet() -> None:
    partition = first_partition(PartitionChangeRecord(0, ID, replicas=[3, 1]))
    assert partition.replicas == (3, 1)
    assert partition.directories == (bytes(16), DIRECTORY)


def test_partitions_of_records_without_directories_have_unknown_ones() -> None:
    image = apply(MetadataImage(), [TopicRecord("t", ID), PartitionRecord(0, ID, [1], [1])])
    partition = image.partition("t", 0)
    assert partition is not None
    assert partition.directories == (bytes(16),)


def test_a_removed_topic_is_gone_and_its_name_is_free() -> None:
    image = apply(image_of(), [RemoveTopicRecord(ID), *topic("t", OTHER_ID, 1)])
    assert image.topics_by_name["t"].topic_id == OTHER_ID
    assert list(image.topics_by_id) == [OTHER_ID]


def test_a_topic_that_is_made_and_removed_in_one_change_leaves_nothing() -> None:
    image = apply(MetadataImage(), [*topic("a.b"), RemoveTopicRecord(ID)])
    assert not image.topics_by_name
    assert not image.names_by_normal_form


def test_names_that_can_collide_are_known_by_their_normal_form() -> None:
    image = apply(image_of(), [*topic("a.b", OTHER_ID), *topic("a_b", b"\x13" * 16)])
    assert image.names_by_normal_form == {"a_b": ("a.b", "a_b")}
    image = apply(image, [RemoveTopicRecord(OTHER_ID)])
    assert image.names_by_normal_form == {"a_b": ("a_b",)}


def test_an_image_does_not_change_when_a_later_one_is_made_of_it() -> None:
    before = image_of()
    after = apply(before, [PartitionChangeRecord(0, ID, leader=2), *topic("u", OTHER_ID)])
    assert list(before.topics_by_name) == ["t"]
    assert before.topics_by_name["t"].partitions[0].leader == 1
    assert after.topics_by_name["t"].partitions[1] is before.topics_by_name["t"].partitions[1]


@pytest.mark.parametrize("name", ["t", ""])
def test_eligible_leader_replicas_are_cleared_for_one_topic_or_for_all(name: str) -> None:
    image = image_of(PartitionChangeRecord(0, ID, eligible_leader_replicas=[2], last_known_elr=[1]))
    cleared = apply(image, [ClearElrRecord(name)]).partition("t", 0)
    assert cleared is not None
    assert (cleared.eligible_leader_replicas, cleared.last_known_elr) == ((), ())


@pytest.mark.parametrize(
    ("record", "what"),
    [
        (TopicRecord("t", OTHER_ID), "t is created, but it exists"),
        (TopicRecord("u", ID), "in use"),
        (PartitionRecord(0, OTHER_ID), "does not exist"),
        (PartitionRecord(5, ID), "gaps"),
        (PartitionChangeRecord(2, ID), "t-2 changes, but it does not exist"),
        (RemoveTopicRecord(OTHER_ID), "does not exist"),
        (ClearElrRecord("u"), "topic u, which does not exist"),
    ],
)
def test_a_record_that_contradicts_the_log_before_it_is_an_error(record: MetadataRecord, what: str) -> None:
    with pytest.raises(ReplayError, match=what):
        image_of(record)
