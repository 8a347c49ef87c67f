"""A broker joins the cluster: each start of its process is a new incarnation with a new broker epoch."""

from collections.abc import Sequence

from msgspec import Struct

from mainstem.cluster.features import SUPPORTED_FEATURES
from mainstem.cluster.image import BrokerImage, Endpoint, MetadataImage
from mainstem.cluster.partitions import elections_after_registration
from mainstem.cluster.records import BrokerEndpoint, BrokerFeature, MetadataRecord, RegisterBrokerRecord


class BrokerRegistration(Struct, frozen=True):
    """What a starting broker says of itself."""

    broker_id: int
    incarnation_id: bytes
    endpoints: Sequence[Endpoint]
    log_dirs: Sequence[bytes]
    rack: str | None = None


def register_broker(
    image: MetadataImage, registration: BrokerRegistration, *, fenced: bool = False
) -> tuple[int, list[MetadataRecord]]:
    """The broker's epoch, and the records that register it and elect leaders where it was one or can be one.

    The epoch is the offset that the first of these records will have: they must be the next to be appended.
    """
    epoch = image.offset + 1
    record = RegisterBrokerRecord(
        broker_id=registration.broker_id,
        incarnation_id=registration.incarnation_id,
        broker_epoch=epoch,
        end_points=[
            BrokerEndpoint(end.name, end.host, end.port, end.security_protocol)
            for end in registration.endpoints
        ],
        features=[
            BrokerFeature(name, levels.first, levels.last) for name, levels in SUPPORTED_FEATURES.items()
        ],
        rack=registration.rack,
        fenced=fenced,
        log_dirs=list(registration.log_dirs),
    )
    registered = BrokerImage(
        registration.broker_id,
        registration.incarnation_id,
        epoch,
        {},
        {},
        registration.rack,
        fenced,
        log_dirs=tuple(registration.log_dirs),
    )
    brokers = {**image.brokers, registration.broker_id: registered}
    return epoch, [record, *elections_after_registration(image, brokers, registration.broker_id)]
