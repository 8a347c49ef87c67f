"""Small clusters for tests: images made by replaying records, never put together by hand."""

from collections.abc import Callable, Iterable

from mainstem.cluster.controller import Controller
from mainstem.cluster.delta import MetadataDelta
from mainstem.cluster.features import bootstrap_records
from mainstem.cluster.image import Endpoint, MetadataImage
from mainstem.cluster.records import MetadataRecord
from mainstem.cluster.registration import BrokerRegistration, register_broker
from mainstem.config import BrokerConfig


def counted_uuids() -> Callable[[], bytes]:
    """Ids 1, 2, 3, ... with a mark in front, so that they are never reserved ones."""
    issued = 0

    def new_uuid() -> bytes:
        nonlocal issued
        issued += 1
        return b"\x11" + issued.to_bytes(15)

    return new_uuid


def apply(image: MetadataImage, records: Iterable[MetadataRecord]) -> MetadataImage:
    records = list(records)
    delta = MetadataDelta(image)
    delta.replay_all(records)
    return delta.build(image.offset + len(records), 1, 1_000)


def registration(broker_id: int, rack: str | None = None) -> BrokerRegistration:
    return BrokerRegistration(
        broker_id,
        incarnation_id=b"\x22" + broker_id.to_bytes(15),
        endpoints=[Endpoint("PLAINTEXT", "127.0.0.1", 9000 + broker_id)],
        log_dirs=[b"\x33" + broker_id.to_bytes(15)],
        rack=rack,
    )


def cluster_of(broker_ids: Iterable[int] = (1,)) -> MetadataImage:
    image = apply(MetadataImage(cluster_id="test-cluster"), bootstrap_records())
    for broker_id in broker_ids:
        _, records = register_broker(image, registration(broker_id))
        image = apply(image, records)
    return image


class Cluster:
    """A controller whose decisions take effect at once."""

    def __init__(self, broker_ids: Iterable[int] = (1,), static: dict[str, str] | None = None) -> None:
        self.image = cluster_of(broker_ids)
        config = BrokerConfig(static or {})
        self.controller = Controller(1, config, counted_uuids(), lambda: self.image)

    def apply(self, records: Iterable[MetadataRecord]) -> None:
        self.image = apply(self.image, records)
