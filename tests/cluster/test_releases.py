"""Releases of Kafka as levels of features."""

import pytest

from mainstem.cluster.features import METADATA_VERSION_LEVEL, SUPPORTED_FEATURES
from mainstem.cluster.records import FeatureLevelRecord
from mainstem.cluster.releases import bootstrap_records, first_levels, release_level, release_name


def test_a_release_is_its_last_step() -> None:
    assert release_level("3.3-IV3") == release_level("3.3") == 7
    assert (release_level("3.7"), release_level("3.7-IV2")) == (19, 17)
    assert release_level("4.3") == METADATA_VERSION_LEVEL
    assert release_level("4.3-IV7") is release_level("2.8") is None
    assert release_name(METADATA_VERSION_LEVEL) == "4.3-IV0"


@pytest.mark.parametrize(("level", "group", "transaction"), [(21, 0, 0), (22, 1, 0), (24, 1, 2), (30, 1, 2)])
def test_features_begin_with_their_release(level: int, group: int, transaction: int) -> None:
    levels = first_levels(level)
    assert levels["metadata.version"] == level
    assert levels.get("group.version", 0) == group
    assert levels.get("transaction.version", 0) == transaction
    assert levels.keys() <= SUPPORTED_FEATURES.keys()


def test_the_first_record_tells_the_metadata_version() -> None:
    records = bootstrap_records({"group.version": 1, "kraft.version": 1, "metadata.version": 22})
    assert records == [FeatureLevelRecord("metadata.version", 22), FeatureLevelRecord("group.version", 1)]
