"""Random histories of a cluster: records that fit together, as a controller would have written them."""

from hypothesis import strategies as st

from mainstem.cluster.controller.facts import Facts
from mainstem.cluster.controller.partition_index import PartitionIndex
from mainstem.cluster.controller.registration import register_broker
from mainstem.cluster.image import MetadataImage
from mainstem.cluster.records import (
    AccessControlEntryRecord,
    BrokerRegistrationChangeRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EntityData,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterControllerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UserScramCredentialRecord,
)
from mainstem.cluster.releases import bootstrap_records
from mainstem.config import BrokerConfig
from tests.cluster.cluster_model import apply, registration

_NAMES = ("a", "b", "a.b", "a_b", "c-1")


@st.composite
def histories(draw: st.DrawFn) -> list[list[MetadataRecord]]:
    """Changes, each a list of records, that can be replayed one after the other on an empty image."""
    changes = [bootstrap_records()]
    image = apply(MetadataImage(), changes[0])
    for _ in range(draw(st.integers(0, 12))):
        records = draw(_change(image))
        if records:
            image = apply(image, records)
            changes.append(records)
    return changes


@st.composite
def _change(draw: st.DrawFn, image: MetadataImage) -> list[MetadataRecord]:
    kind = draw(st.sampled_from(("broker", "topic", "partitions", "leader", "remove", "config", "other")))
    topics = list(image.topics_by_name.values())
    if kind == "broker":
        rack = draw(st.sampled_from((None, "rack")))
        request = registration(draw(st.integers(0, 3)), rack, incarnation=image.offset)
        facts, index = Facts(image, BrokerConfig()), PartitionIndex(image)
        return register_broker(facts, index, request, stands_alone=draw(st.booleans()))[1]
    if kind == "topic":
        free = [name for name in _NAMES if name not in image.topics_by_name]
        if not free:
            return []
        topic_id = b"\x11" + (image.offset + 100).to_bytes(15)
        topic = TopicRecord(draw(st.sampled_from(free)), topic_id)
        return [topic, *_partitions(draw, topic_id, 0)]
    if kind == "config":
        key = draw(st.sampled_from(((2, "a"), (4, ""), (4, "1"))))
        value = draw(st.sampled_from((None, "1", "")))
        return [ConfigRecord(*key, draw(st.sampled_from(("x", "y"))), value)]
    if kind == "other":
        return [draw(_other(image))]
    if not topics:
        return []
    chosen = draw(st.sampled_from(topics))
    if kind == "partitions":
        return _partitions(draw, chosen.topic_id, len(chosen.partitions))
    if kind == "remove":
        return [RemoveTopicRecord(chosen.topic_id)]
    partition = draw(st.integers(0, len(chosen.partitions) - 1))
    isr = draw(st.sampled_from((None, [1], [1, 2])))
    return [PartitionChangeRecord(partition, chosen.topic_id, isr, draw(st.sampled_from((-2, -1, 1))))]


def _partitions(draw: st.DrawFn, topic_id: bytes, first: int) -> list[MetadataRecord]:
    count = draw(st.integers(1, 3))
    return [
        PartitionRecord(index, topic_id, [1, 2], [1], [], [], 1, 0, 0, 0, [topic_id, bytes(16)])
        for index in range(first, first + count)
    ]


def _other(image: MetadataImage) -> st.SearchStrategy[MetadataRecord]:
    simple: list[MetadataRecord] = [
        FeatureLevelRecord("group.version", 1),
        FeatureLevelRecord("group.version", 0),
        ProducerIdsRecord(1, 0, image.next_producer_id + 1000),
        ClientQuotaRecord([EntityData("user", None)], "producer_byte_rate", 1.5),
        ClientQuotaRecord([EntityData("user", None)], "producer_byte_rate", remove=True),
        AccessControlEntryRecord(b"\x44" * 16, 2, "t", 3, "User:a", "*", 2, 3),
        UserScramCredentialRecord("u", 1, b"salt", b"stored", b"server", 4096),
        DelegationTokenRecord("o", "r", ["n"], 1, 2, 3, "token"),
        RegisterControllerRecord(1, b"\x55" * 16),
        *(
            BrokerRegistrationChangeRecord(broker.broker_id, broker.epoch, fenced=1, cordoned_log_dirs=[])
            for broker in image.brokers.values()
        ),
    ]
    return st.sampled_from(simple)
