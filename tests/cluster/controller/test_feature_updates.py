"""UpdateFeatures: levels go up when everybody supports them, and down where nothing is lost."""

import pytest
from msgspec.structs import replace

from mainstem.cluster.features import ELIGIBLE_LEADER_REPLICAS_VERSION, METADATA_VERSION
from mainstem.protocol.apis.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from mainstem.protocol.apis.k57_update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
)
from mainstem.protocol.apis.k62_broker_registration import Feature
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import ConfigResourceType
from tests.cluster.cluster_model import Cluster, registration
from tests.cluster.controller.test_alter_partition import alter

UPGRADE, DOWNGRADE, UNSAFE = 1, 2, 3
ELR = ELIGIBLE_LEADER_REPLICAS_VERSION


def update(
    cluster: Cluster, name: str, level: int, kind: int = UPGRADE, *, validate_only: bool = False
) -> int:
    request = UpdateFeaturesRequest(
        feature_updates=[FeatureUpdateKey(name, level, upgrade_type=kind)], validate_only=validate_only
    )
    response, records = cluster.controller.update_features(request, 2)
    cluster.apply(records)
    assert bool(response.error_message) == bool(response.error_code)
    return response.error_code


def set_min_isr(cluster: Cluster, kind: int, name: str, value: str | None) -> int:
    setting = AlterableConfig("min.insync.replicas", int(value is None), value)
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(kind, name, [setting])])
    response, records = cluster.controller.incremental_alter_configs(request)
    cluster.apply(records)
    return response.responses[0].error_code


def test_a_level_goes_up_and_down_by_name() -> None:
    cluster = Cluster((1, 2))
    assert update(cluster, "group.version", 0) == ErrorCode.INVALID_UPDATE_VERSION, "that is a downgrade"
    assert update(cluster, "group.version", 0, DOWNGRADE, validate_only=True) == ErrorCode.NONE
    assert cluster.image.features["group.version"] == 1
    assert update(cluster, "group.version", 0, DOWNGRADE) == ErrorCode.NONE
    assert "group.version" not in cluster.image.features
    assert update(cluster, "group.version", 1, UNSAFE) == ErrorCode.INVALID_UPDATE_VERSION, "that is none"
    assert update(cluster, "group.version", 1) == ErrorCode.NONE


@pytest.mark.parametrize("kind", [DOWNGRADE, UNSAFE])
def test_metadata_version_goes_down_only_where_nothing_is_lost(kind: int) -> None:
    cluster = Cluster((1,))
    assert update(cluster, METADATA_VERSION, 29, kind) == ErrorCode.INVALID_UPDATE_VERSION
    older = Cluster((1,), features={METADATA_VERSION: 29})
    assert update(older, METADATA_VERSION, 24, kind) == ErrorCode.NONE
    assert update(older, METADATA_VERSION, 22, kind) == ErrorCode.INVALID_UPDATE_VERSION
    assert update(older, METADATA_VERSION, 30) == ErrorCode.NONE


@pytest.mark.parametrize(("name", "level"), [("group.version", 7), ("unknown", 1), (METADATA_VERSION, 3)])
def test_what_is_not_supported_is_refused(name: str, level: int) -> None:
    assert update(Cluster((1,)), name, level) == ErrorCode.INVALID_UPDATE_VERSION


def test_every_broker_and_voter_has_to_support_it() -> None:
    cluster = Cluster((1,))
    update(cluster, "group.version", 0, DOWNGRADE)
    old = registration(2)
    old.features = [f if f.name != "group.version" else Feature(f.name, 0, 0) for f in old.features]
    cluster.join(old)
    assert update(cluster, "group.version", 1) == ErrorCode.INVALID_UPDATE_VERSION
    cluster.join(replace(registration(2), incarnation_id=old.incarnation_id))
    cluster.change_controller(1, voters=(1, 5))
    assert update(cluster, "group.version", 1) == ErrorCode.INVALID_UPDATE_VERSION, "who is 5?"
    cluster.change_controller(1, voters=(1,))
    assert update(cluster, "group.version", 1) == ErrorCode.NONE


def test_the_level_of_the_quorum_is_checked_here_and_written_elsewhere() -> None:
    cluster = Cluster((1,))
    before = cluster.image
    assert update(cluster, "kraft.version", 1) == ErrorCode.NONE
    assert update(cluster, "kraft.version", 2) == ErrorCode.INVALID_UPDATE_VERSION
    assert cluster.image is before


def test_older_clients_get_a_result_for_each_feature() -> None:
    updates = [FeatureUpdateKey("group.version", 0, allow_downgrade=True)]
    response, _ = Cluster((1,)).controller.update_features(UpdateFeaturesRequest(feature_updates=updates), 0)
    assert response.results == [UpdatableFeatureResult("group.version", error_message=None)]


def test_eligible_leader_replicas_need_one_min_isr_for_all_brokers() -> None:
    """KAFKA-16540: who is eligible follows from it."""
    cluster = Cluster((1, 2), {"min.insync.replicas": "2"})
    update(cluster, ELR, 0, DOWNGRADE)
    assert update(cluster, ELR, 1) == ErrorCode.NONE
    broker, topic = int(ConfigResourceType.BROKER), int(ConfigResourceType.TOPIC)
    assert cluster.image.config(broker, "")["min.insync.replicas"] == "2"
    assert set_min_isr(cluster, broker, "", None) == ErrorCode.INVALID_CONFIG
    assert set_min_isr(cluster, broker, "1", "1") in (ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST)
    cluster.create("orders", (1, 2))
    alter(cluster, [1])
    assert cluster.partition("orders").eligible_leader_replicas == (2,)
    assert set_min_isr(cluster, topic, "orders", "1") == ErrorCode.NONE
    assert cluster.partition("orders").eligible_leader_replicas == (), "another rule begins anew"


def test_eligible_leader_replicas_need_a_metadata_version_that_knows_them() -> None:
    cluster = Cluster((1,), features={METADATA_VERSION: 22, ELR: 0})
    assert update(cluster, ELR, 1) == ErrorCode.INVALID_UPDATE_VERSION
