"""UpdateFeatures: the cluster's levels go up, and down where nothing is lost.

A level is finalized only when every broker and every voter supports it. All updates of a request are done, or
none. The quorum's own level, `kraft.version`, is only checked here: the quorum itself writes it.
"""

from collections.abc import Collection, Iterator, Mapping
from enum import IntEnum

from mainstem.cluster.controller.facts import MIN_INSYNC_REPLICAS, Facts
from mainstem.cluster.features import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    SUPPORTED_FEATURES,
    metadata_version,
)
from mainstem.cluster.image import FeatureRange, MetadataImage
from mainstem.cluster.records import ConfigRecord, FeatureLevelRecord, MetadataRecord
from mainstem.cluster.records.versions import (
    changes_metadata,
    has_controller_registrations,
    has_eligible_leader_replicas,
)
from mainstem.protocol.apis.k57_update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import ConfigResourceType

_OFF = FeatureRange(0, 0)
_RESULTS_UNTIL = 1


class UpgradeType(IntEnum):
    """What may be done to a level, as the request names it."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


def update_features(
    facts: Facts, request: UpdateFeaturesRequest, api_version: int, node_id: int, voters: Collection[int]
) -> tuple[UpdateFeaturesResponse, list[MetadataRecord]]:
    """The answer, and the records of all updates."""
    image = facts.image
    records: list[MetadataRecord] = []
    levels = {**image.features, **{u.feature: u.max_version_level for u in request.feature_updates}}
    for update in request.feature_updates:
        problem = _problem(image, update, api_version, levels, node_id, voters)
        if problem is not None:
            return (
                UpdateFeaturesResponse(
                    error_code=ErrorCode.INVALID_UPDATE_VERSION,
                    error_message=f"Nothing was updated: {update.feature} cannot be set to "
                    f"{update.max_version_level}. {problem}",
                ),
                [],
            )
        if update.feature != KRAFT_VERSION:
            records.append(FeatureLevelRecord(update.feature, update.max_version_level))
    if _turns_on_elr(image, levels):
        records += elr_safety_records(facts)
    response = UpdateFeaturesResponse(error_message=None)
    if api_version <= _RESULTS_UNTIL:
        response.results = [
            UpdatableFeatureResult(update.feature, error_message=None) for update in request.feature_updates
        ]
    return response, [] if request.validate_only else records


def _problem(
    image: MetadataImage,
    update: FeatureUpdateKey,
    api_version: int,
    levels: Mapping[str, int],
    node_id: int,
    voters: Collection[int],
) -> str | None:
    """Why the update is not possible, as a sentence."""
    name, level = update.feature, update.max_version_level
    kind = _kind(update, api_version)
    if kind is None:
        return f"{update.upgrade_type} is not a type of upgrade (1 to 3 are)."
    if level < 0:
        return "A level is 0 or more."
    for who, supported in _supporters(image, name, node_id, voters):
        if supported is None:
            return f"{who} has not registered, and may not support it."
        if not supported.first <= level <= supported.last:
            return f"{who} supports {supported.first} to {supported.last}."
    current = image.features.get(name, 0)
    if level < current and kind is UpgradeType.UPGRADE:
        return f"It is at {current}, and to lower it needs a safe or an unsafe downgrade."
    if level > current and kind is not UpgradeType.UPGRADE:
        return f"It is at {current}, so that this would not be a downgrade."
    if name == KRAFT_VERSION and level < current:
        return "What the quorum has written at its level cannot be taken back."
    if name == METADATA_VERSION and changes_metadata(level, current):
        if kind is UpgradeType.UNSAFE_DOWNGRADE:
            return "Unsafe downgrades of metadata.version are not possible."
        return "Metadata that the lower level does not know could be lost."
    needs_level = levels.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) > 0
    if needs_level and not has_eligible_leader_replicas(levels.get(METADATA_VERSION, 0)):
        return f"{ELIGIBLE_LEADER_REPLICAS_VERSION} needs a later metadata.version."
    return None


def _kind(update: FeatureUpdateKey, api_version: int) -> UpgradeType | None:
    if api_version == 0:
        return UpgradeType.SAFE_DOWNGRADE if update.allow_downgrade else UpgradeType.UPGRADE
    return UpgradeType._value2member_map_.get(update.upgrade_type)  # type: ignore[return-value]


def _supporters(
    image: MetadataImage, name: str, node_id: int, voters: Collection[int]
) -> Iterator[tuple[str, FeatureRange | None]]:
    """Everybody who has to support a level, and the levels of whom are known."""
    yield f"Controller {node_id}", SUPPORTED_FEATURES.get(name, _OFF)
    for broker in image.brokers.values():
        yield f"Broker {broker.broker_id}", broker.features.get(name, _OFF)
    if has_controller_registrations(metadata_version(image)):
        for controller_id in sorted({*image.controllers, *voters} - {node_id}):
            controller = image.controllers.get(controller_id)
            supported = None if controller is None else controller.features.get(name, _OFF)
            yield f"Controller {controller_id}", supported


def _turns_on_elr(image: MetadataImage, levels: Mapping[str, int]) -> bool:
    is_on = image.features.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) > 0
    return not is_on and levels.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) > 0


def elr_safety_records(facts: Facts) -> list[MetadataRecord]:
    """Who is eligible follows from min.insync.replicas, which must therefore be the same for all brokers, and
    on record (KAFKA-16540).
    """
    kind, configs = int(ConfigResourceType.BROKER), facts.image.configs
    records: list[MetadataRecord] = []
    if MIN_INSYNC_REPLICAS not in facts.image.config(kind, ""):
        records.append(
            ConfigRecord(kind, "", MIN_INSYNC_REPLICAS, str(facts.config.get(MIN_INSYNC_REPLICAS)))
        )
    records += [
        ConfigRecord(kind, name, MIN_INSYNC_REPLICAS, None)
        for (resource_type, name), settings in configs.items()
        if resource_type == kind and name and MIN_INSYNC_REPLICAS in settings
    ]
    return records
