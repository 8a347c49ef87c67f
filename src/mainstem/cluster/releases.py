"""Kafka's releases as levels of `metadata.version`, and at which levels other features begin with a release.

A new cluster is formatted for a release; its features are finalized as Kafka of that release would do it, as
far as this version of Mainstem supports them.
"""

from collections.abc import Mapping

from mainstem.cluster.features import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    GROUP_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    METADATA_VERSION_LEVEL,
    SUPPORTED_FEATURES,
    TRANSACTION_VERSION,
)
from mainstem.cluster.records import FeatureLevelRecord, MetadataRecord

_FIRST_LEVEL = 7
# From that level on, in their order.
_NAMES = (
    "3.3-IV3", "3.4-IV0", "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2", "3.7-IV0",
    "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0", "4.0-IV0", "4.0-IV1", "4.0-IV2",
    "4.0-IV3", "4.1-IV0", "4.1-IV1", "4.2-IV0", "4.2-IV1", "4.3-IV0",
)  # fmt: skip
_LEVELS = {name: level for level, name in enumerate(_NAMES, _FIRST_LEVEL)}
# The level of metadata.version from which on a new cluster begins with a level of the feature.
_BEGINS_WITH = {
    GROUP_VERSION: ((_LEVELS["4.0-IV0"], 1),),
    TRANSACTION_VERSION: ((_LEVELS["4.0-IV2"], 2),),
    ELIGIBLE_LEADER_REPLICAS_VERSION: ((_LEVELS["4.1-IV0"], 1),),
}


def release_level(release: str) -> int | None:
    """The level of `4.3-IV0`, or the last one of `4.3`; None for a release that there is not."""
    if release in _LEVELS:
        return _LEVELS[release]
    of_release = [level for name, level in _LEVELS.items() if name.partition("-")[0] == release]
    return max(of_release, default=None)


def release_name(level: int) -> str:
    """What Kafka calls a level of metadata.version."""
    return _NAMES[level - _FIRST_LEVEL]


def first_levels(metadata_version: int = METADATA_VERSION_LEVEL) -> dict[str, int]:
    """The levels with which a new cluster at this metadata.version begins, those of 0 left out."""
    levels = {METADATA_VERSION: metadata_version}
    for name in SUPPORTED_FEATURES:
        if name not in (METADATA_VERSION, KRAFT_VERSION):
            found = [level for since, level in _BEGINS_WITH.get(name, ()) if since <= metadata_version]
            if found:
                levels[name] = found[-1]
    return levels


def standalone_levels() -> dict[str, int]:
    """Those of a node that formats itself: on one node there are no other replicas to be eligible."""
    levels = first_levels()
    levels.pop(ELIGIBLE_LEADER_REPLICAS_VERSION, None)
    return levels


def bootstrap_records(levels: Mapping[str, int] | None = None) -> list[MetadataRecord]:
    """The first records of a new cluster with these levels, by default as a node that formats itself has
    them; metadata.version comes before all else, as Kafka wants it.
    """
    found = dict(standalone_levels() if levels is None else levels)
    records: list[MetadataRecord] = [FeatureLevelRecord(METADATA_VERSION, found.pop(METADATA_VERSION))]
    # The quorum's own level stands in its control records.
    records += (FeatureLevelRecord(name, found[name]) for name in sorted(found) if name != KRAFT_VERSION)
    return records
