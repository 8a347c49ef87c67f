"""Everything but topics as records change it, and what a delta says it changed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainstem.cluster.delta import MetadataChanges, MetadataDelta
from mainstem.cluster.image import MetadataImage
from mainstem.cluster.records import (
    AccessControlEntryRecord,
    BrokerRegistrationChangeRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EntityData,
    FeatureLevelRecord,
    FenceBrokerRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
    ZkMigrationStateRecord,
)
from mainstem.cluster.topics_delta import ReplayError
from mainstem.protocol.resources import ConfigResourceType
from tests.cluster.cluster_model import apply, cluster_of
from tests.cluster.metadata_strategies import histories

ID = b"\x11" * 16


def test_settings_are_set_and_taken_away() -> None:
    image = apply(MetadataImage(), [ConfigRecord(2, "t", "a", "1"), ConfigRecord(2, "t", "b", "2")])
    assert image.config(ConfigResourceType.TOPIC, "t") == {"a": "1", "b": "2"}
    image = apply(image, [ConfigRecord(2, "t", "a", None)])
    assert image.topic_config("t") == {"b": "2"}
    assert not apply(image, [ConfigRecord(2, "t", "b", None)]).configs


def test_a_topics_settings_go_with_it() -> None:
    made = [TopicRecord("t", ID), ConfigRecord(2, "t", "a", "1"), PartitionRecord(0, ID, [1], [1])]
    image = apply(MetadataImage(), made)
    assert not apply(image, [RemoveTopicRecord(ID)]).configs


def test_a_broker_is_fenced_and_unfenced() -> None:
    image = cluster_of((1,))
    epoch = image.brokers[1].epoch
    assert image.brokers[1].active
    for fence, unfence in (
        (FenceBrokerRecord(1, epoch), UnfenceBrokerRecord(1, epoch)),
        (
            BrokerRegistrationChangeRecord(1, epoch, fenced=1),
            BrokerRegistrationChangeRecord(1, epoch, fenced=-1),
        ),
    ):
        fenced = apply(image, [fence])
        assert not fenced.brokers[1].active
        assert apply(fenced, [unfence]).brokers == image.brokers


def test_a_broker_that_shuts_down_is_not_active() -> None:
    image = cluster_of((1,))
    change = BrokerRegistrationChangeRecord(1, image.brokers[1].epoch, in_controlled_shutdown=1)
    assert not apply(image, [change]).brokers[1].active


def test_what_a_registration_change_leaves_out_stays() -> None:
    image = cluster_of((1,))
    epoch = image.brokers[1].epoch
    changed = apply(image, [BrokerRegistrationChangeRecord(1, epoch, cordoned_log_dirs=[ID])]).brokers[1]
    assert changed.cordoned_log_dirs == (ID,)
    assert changed.log_dirs == image.brokers[1].log_dirs


def test_an_unregistered_broker_is_gone() -> None:
    image = cluster_of((1, 2))
    assert list(apply(image, [UnregisterBrokerRecord(1, image.brokers[1].epoch)]).brokers) == [2]


@pytest.mark.parametrize(
    ("record", "what"),
    [
        (FenceBrokerRecord(9, 1), "broker 9, which is not registered"),
        (UnfenceBrokerRecord(1, 99), "epoch 99 of broker 1"),
        (UnregisterBrokerRecord(1, 99), "epoch 99"),
        (BrokerRegistrationChangeRecord(1, 99), "epoch 99"),
    ],
)
def test_a_record_about_another_broker_epoch_is_an_error(record: MetadataRecord, what: str) -> None:
    with pytest.raises(ReplayError, match=what):
        apply(cluster_of((1,)), [record])


def test_producer_ids_never_go_back() -> None:
    image = apply(MetadataImage(), [ProducerIdsRecord(1, 0, 2000)])
    assert image.next_producer_id == 2000
    with pytest.raises(ReplayError, match="goes back from 2000 to 1000"):
        apply(image, [ProducerIdsRecord(1, 0, 1000)])


def test_a_feature_at_level_zero_is_off() -> None:
    image = apply(MetadataImage(), [FeatureLevelRecord("group.version", 1)])
    assert image.features == {"group.version": 1}
    assert not apply(image, [FeatureLevelRecord("group.version", 0)]).features


def test_quotas_acls_credentials_and_tokens_come_and_go() -> None:
    entity = [EntityData("user", None), EntityData("client-id", "c")]
    image = apply(
        MetadataImage(),
        [
            ClientQuotaRecord(entity, "producer_byte_rate", 10.0),
            AccessControlEntryRecord(ID, resource_name="t"),
            UserScramCredentialRecord("u", 1, b"s"),
            DelegationTokenRecord("o", token_id="k"),
            RegisterControllerRecord(3, ID),
        ],
    )
    assert image.quotas == {(("client-id", "c"), ("user", None)): {"producer_byte_rate": 10.0}}
    assert image.acls[ID].resource_name == "t"
    assert image.scram_credentials[1, "u"].salt == b"s"
    assert image.delegation_tokens["k"].owner == "o"
    assert image.controllers[3].incarnation_id == ID
    image = apply(
        image,
        [
            ClientQuotaRecord(entity, "producer_byte_rate", remove=True),
            RemoveAccessControlEntryRecord(ID),
            RemoveUserScramCredentialRecord("u", 1),
            RemoveDelegationTokenRecord("k"),
        ],
    )
    left = [image.quotas, image.acls, image.scram_credentials, image.delegation_tokens]
    assert left == [{}, {}, {}, {}]


def test_records_without_a_meaning_change_nothing_but_the_offset() -> None:
    image = cluster_of((1,))
    after = apply(image, [NoOpRecord(), ZkMigrationStateRecord(3)])
    assert after.offset == image.offset + 2
    assert after.brokers is image.brokers
    assert after.topics_by_name is image.topics_by_name


def test_a_delta_tells_what_it_changed() -> None:
    made = [TopicRecord("gone", ID), PartitionRecord(0, ID, [1], [1])]
    image = apply(cluster_of((1,)), made)
    delta = MetadataDelta(image)
    new_id = b"\x12" * 16
    delta.replay_all(
        [
            RemoveTopicRecord(ID),
            TopicRecord("new", new_id),
            PartitionRecord(0, new_id, [1], [1]),
            ConfigRecord(4, "", "a", "1"),
            FenceBrokerRecord(1, image.brokers[1].epoch),
        ]
    )
    changes = delta.changes(delta.build(9, 1, 0))
    assert [topic.name for topic in changes.topics] == ["new"]
    assert [topic.name for topic in changes.removed_topics] == ["gone"]
    assert changes.configs == {(4, "")}
    assert changes.brokers == {1}


@given(histories(), st.integers(0, 30))
def test_the_changes_between_two_images_are_those_of_the_records_between_them(
    history: list[list[MetadataRecord]], count: int
) -> None:
    """Some that were undone again, or changed nothing, the records name besides."""
    image = MetadataImage()
    for change in history[:count]:
        image = apply(image, change)
    delta = MetadataDelta(image)
    for change in history[count:]:
        delta.replay_all(change)
    after = delta.build(image.offset + 1, 1, 1)
    named, found = delta.changes(after), MetadataChanges.between(image, after)
    assert {topic.topic_id for topic in found.topics} <= {topic.topic_id for topic in named.topics}
    assert set(found.removed_topics) == set(named.removed_topics)
    assert found.configs <= named.configs
    assert found.brokers <= named.brokers
    for topic in (*named.topics, *(topic for topic in after.topics_by_id.values())):
        is_other = image.topics_by_id.get(topic.topic_id) != topic
        assert is_other == (topic in found.topics)
    for broker_id in named.brokers - found.brokers:
        assert image.brokers.get(broker_id) == after.brokers.get(broker_id)
    for key in named.configs - found.configs:
        assert image.configs.get(key) == after.configs.get(key)
