"""BrokerRegistration, UnregisterBroker and ControllerRegistration: nodes join the cluster, and leave it for
good.

Each start of a broker's process is a new incarnation with a new broker epoch. What its former incarnation led
and was in sync with goes to others in the same change that registers it: nobody may take the new one for the
old one, which may have had more on its disk. It is fenced until it has seen its own registration.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mainstem.cluster.controller.elections import renewed, settled, withdrawn
from mainstem.cluster.controller.facts import Facts
from mainstem.cluster.controller.partition_index import PartitionIndex
from mainstem.cluster.features import KRAFT_VERSION, METADATA_VERSION, SUPPORTED_FEATURES
from mainstem.cluster.image import BrokerImage, Endpoint, FeatureRange, MetadataImage
from mainstem.cluster.records import (
    BrokerEndpoint,
    BrokerFeature,
    ControllerEndpoint,
    ControllerFeature,
    MetadataRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnregisterBrokerRecord,
)
from mainstem.cluster.records.versions import has_controller_registrations, has_directories
from mainstem.protocol.apis.k62_broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.protocol.uuids import is_reserved, uuid_to_text

if TYPE_CHECKING:
    from mainstem.protocol.apis.k64_unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
    from mainstem.protocol.apis.k70_controller_registration import (
        ControllerRegistrationRequest,
        ControllerRegistrationResponse,
    )

# What a broker supports that says nothing about metadata.version.
_OLDEST_METADATA_VERSION = FeatureRange(1, 1)
_OFF = FeatureRange(0, 0)


def check_request(
    image: MetadataImage, cluster_id: str, request: BrokerRegistrationRequest, *, is_own: bool
) -> None:
    """KafkaError for a broker that does not belong here. The one of this very process may: its controller
    leads the cluster as it is, perhaps with features that Apache Kafka began it with.
    """
    if request.cluster_id != cluster_id:
        raise KafkaError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"Broker {request.broker_id} is of the cluster {request.cluster_id}, and this is {cluster_id}.",
        )
    if request.is_migrating_zk_broker:
        raise KafkaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED, "Brokers that still use ZooKeeper cannot be registered."
        )
    if has_directories(image.features.get(METADATA_VERSION, 0)):
        _check_directories(image, request.broker_id, request.log_dirs)
    if not is_own:
        _check_features(image, request)


def _check_features(image: MetadataImage, request: BrokerRegistrationRequest) -> None:
    supported = {
        feature.name: FeatureRange(feature.min_supported_version, feature.max_supported_version)
        for feature in request.features
    }
    supported.setdefault(METADATA_VERSION, _OLDEST_METADATA_VERSION)
    # Older brokers do not speak of the quorum's own level, which they follow as observers.
    supported.setdefault(KRAFT_VERSION, SUPPORTED_FEATURES[KRAFT_VERSION])
    for name, level in image.features.items():
        levels = supported.get(name, _OFF)
        if not levels.first <= level <= levels.last:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"Broker {request.broker_id} supports {name} from {levels.first} to {levels.last}, and the "
                f"cluster is at {level}.",
            )


def _check_directories(image: MetadataImage, broker_id: int, directories: Sequence[bytes]) -> None:
    if not directories:
        raise _invalid(f"Broker {broker_id} names no log directories.")
    if any(is_reserved(directory) for directory in directories):
        raise _invalid(f"Broker {broker_id} names a log directory by a reserved id.")
    if len(set(directories)) < len(directories):
        raise _invalid(f"Broker {broker_id} names a log directory twice.")
    for other in image.brokers.values():
        if other.broker_id != broker_id:
            for directory in set(directories).intersection(other.log_dirs):
                raise _invalid(
                    f"Broker {broker_id} names the log directory {uuid_to_text(directory)}, which is "
                    f"broker {other.broker_id}'s."
                )


def register_broker(
    facts: Facts, index: PartitionIndex, request: BrokerRegistrationRequest, *, stands_alone: bool
) -> tuple[BrokerRegistrationResponse, list[MetadataRecord]]:
    """The answer, and the records that register a broker and see to what its former incarnation led.

    The epoch is the offset that the first of these records will have: they must be the next to be appended.
    A broker that stands alone, and shares the process with its controller, has seen all that there is: it
    leads at once.
    """
    existing = facts.image.brokers.get(request.broker_id)
    is_amended = existing is not None and existing.incarnation_id == request.incarnation_id
    record = _record(facts, request)
    if existing is not None and is_amended:
        record.broker_epoch = existing.epoch
        record.fenced, record.in_controlled_shutdown = existing.fenced, existing.in_controlled_shutdown
        return BrokerRegistrationResponse(broker_epoch=existing.epoch), [record]
    record.broker_epoch = facts.image.offset + 1
    record.fenced = not stands_alone
    facts.put_broker(_image(record))
    changes: list[PartitionChangeRecord | None]
    if stands_alone:
        keys = (*index.led_by(request.broker_id), *index.leaderless)
        changes = [renewed(facts, key) for key in keys]
    else:
        was_clean = existing is not None and existing.epoch == request.previous_broker_epoch
        changes = [
            withdrawn(facts, key, request.broker_id, damaged=not was_clean)
            for key in index.rests_on(request.broker_id)
        ]
    response = BrokerRegistrationResponse(broker_epoch=record.broker_epoch)
    return response, [record, *(change for change in changes if change is not None)]


def _record(facts: Facts, request: BrokerRegistrationRequest) -> RegisterBrokerRecord:
    features = [
        BrokerFeature(feature.name, feature.min_supported_version, feature.max_supported_version)
        for feature in request.features
    ]
    if all(feature.name != METADATA_VERSION for feature in features):
        oldest = _OLDEST_METADATA_VERSION
        features.append(BrokerFeature(METADATA_VERSION, oldest.first, oldest.last))
    return RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        end_points=[
            BrokerEndpoint(end.name, end.host, end.port, end.security_protocol) for end in request.listeners
        ],
        features=features,
        rack=request.rack,
        log_dirs=list(request.log_dirs) if has_directories(facts.level) else [],
    )


def _image(record: RegisterBrokerRecord) -> BrokerImage:
    """The broker as the record makes it, as far as elections look at it."""
    return BrokerImage(
        record.broker_id,
        record.incarnation_id,
        record.broker_epoch,
        {},
        {},
        record.rack,
        record.fenced,
        log_dirs=tuple(record.log_dirs),
    )


def serves_at_same_address(broker: BrokerImage, request: BrokerRegistrationRequest) -> bool:
    """Whether the successor of a broker's process asks: no two processes can listen on one address."""
    listeners = {
        end.name: Endpoint(end.name, end.host, end.port, end.security_protocol) for end in request.listeners
    }
    return dict(broker.endpoints) == listeners


def unregister_broker(
    facts: Facts, index: PartitionIndex, request: "UnregisterBrokerRequest"
) -> tuple["UnregisterBrokerResponse", list[MetadataRecord]]:
    """The records that take a broker out; it comes back as one that is new."""
    from mainstem.protocol.apis.k64_unregister_broker import UnregisterBrokerResponse  # only in a cluster

    broker = facts.brokers.get(request.broker_id)
    if broker is None:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker {request.broker_id} is not registered.")
    facts.remove_broker(broker.broker_id)
    changes = [settled(facts, key) for key in index.rests_on(broker.broker_id)]
    return UnregisterBrokerResponse(error_message=None), [
        *(change for change in changes if change is not None),
        UnregisterBrokerRecord(broker.broker_id, broker.epoch),
    ]


def register_controller(
    facts: Facts, request: "ControllerRegistrationRequest"
) -> tuple["ControllerRegistrationResponse", list[MetadataRecord]]:
    """A controller says where it is reached, and which levels it supports."""
    from mainstem.protocol.apis.k70_controller_registration import ControllerRegistrationResponse

    if not has_controller_registrations(facts.level):
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"Controllers are not registered at metadata.version {facts.level}.",
        )
    record = RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        zk_migration_ready=False,
        end_points=[
            ControllerEndpoint(end.name, end.host, end.port, end.security_protocol)
            for end in request.listeners
        ],
        features=[
            ControllerFeature(feature.name, feature.min_supported_version, feature.max_supported_version)
            for feature in request.features
        ],
    )
    return ControllerRegistrationResponse(error_message=None), [record]


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REGISTRATION, message)
