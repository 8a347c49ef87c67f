"""Small clusters for tests: images made by replaying records, never put together by hand."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from mainstem.cluster.controller.controller import Controller
from mainstem.cluster.controller.probes import Probe
from mainstem.cluster.delta import MetadataDelta
from mainstem.cluster.features import SUPPORTED_FEATURES
from mainstem.cluster.image import MetadataImage, PartitionImage
from mainstem.cluster.records import FeatureLevelRecord, MetadataRecord
from mainstem.cluster.releases import bootstrap_records
from mainstem.config import BrokerConfig
from mainstem.protocol.apis.k19_create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from mainstem.protocol.apis.k62_broker_registration import BrokerRegistrationRequest, Feature, Listener
from mainstem.protocol.apis.k63_broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse


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


CLUSTER_ID = "test-cluster"


def registration(
    broker_id: int, rack: str | None = None, *, incarnation: int = 0, previous_epoch: int = -1
) -> BrokerRegistrationRequest:
    """What a broker says that starts for the first time, or, with an `incarnation`, again."""
    return BrokerRegistrationRequest(
        broker_id,
        CLUSTER_ID,
        incarnation_id=b"\x22" + (1000 * incarnation + broker_id).to_bytes(15),
        listeners=[Listener("PLAINTEXT", "127.0.0.1", 9000 + broker_id)],
        features=[Feature(name, levels.first, levels.last) for name, levels in SUPPORTED_FEATURES.items()],
        rack=rack,
        log_dirs=[b"\x33" + broker_id.to_bytes(15)],
        previous_broker_epoch=previous_epoch,
    )


class Cluster:
    """A controller whose decisions take effect at once, and brokers that do as they should. The controller is
    a node of its own unless `node_id` says that it is one of the brokers.
    """

    def __init__(
        self,
        broker_ids: Iterable[int] = (1,),
        static: dict[str, str] | None = None,
        *,
        racks: Mapping[int, str] = MappingProxyType({}),
        features: Mapping[str, int] = MappingProxyType({}),
        node_id: int = 1,
    ) -> None:
        self.image = apply(MetadataImage(cluster_id=CLUSTER_ID), bootstrap_records())
        self.apply_records(FeatureLevelRecord(name, level) for name, level in features.items())
        self.now_ms = 1_000_000
        self._config = BrokerConfig(static or {})
        self._new_uuid = counted_uuids()
        self.change_controller(node_id)
        for broker_id in broker_ids:
            self.join(registration(broker_id, racks.get(broker_id)))

    def change_controller(self, node_id: int, voters: Collection[int] = ()) -> None:
        """Another node takes over, knowing what is on record and nothing else."""
        self.controller = Controller(
            node_id, self._config, self._new_uuid, lambda: self.image, lambda: voters, self.now_ms
        )

    def apply_records(self, records: Iterable[MetadataRecord]) -> None:
        records = list(records)
        if records:
            self.image = apply(self.image, records)

    def apply(self, records: Iterable[MetadataRecord]) -> None:
        """Append the records of a decision."""
        records, before = list(records), self.image
        self.apply_records(records)
        self.controller.appended(records, before, self.image, self.now_ms)

    def register(self, request: BrokerRegistrationRequest, *, is_own: bool = False) -> int:
        """The broker's epoch."""
        response, records = self.controller.register_broker(request, CLUSTER_ID, self.now_ms, is_own=is_own)
        self.apply(records)
        return response.broker_epoch

    def heartbeat(self, broker_id: int, **said: Any) -> BrokerHeartbeatResponse:
        """One of a broker that has applied everything, unless it says something else."""
        said = {"current_metadata_offset": self.image.offset} | said
        request = BrokerHeartbeatRequest(broker_id, self.image.brokers[broker_id].epoch, **said)
        response, records = self.controller.heartbeat(request, self.now_ms)
        self.apply(records)
        return response

    def join(self, request: BrokerRegistrationRequest) -> None:
        """Register a broker and have it unfenced, as its own node does it."""
        if self.register(request, is_own=request.broker_id == self.controller.node_id):
            self.heartbeat(request.broker_id)

    def pass_time(self, ms: int = 0) -> list[Probe]:
        """Do all that is due; the probes that were wanted."""
        self.now_ms += ms
        probes: list[Probe] = []
        while True:
            work = self.controller.time_passed(self.now_ms)
            probes += work.probes
            if not work.records:
                return probes
            self.apply(work.records)

    def partition(self, topic: str, number: int = 0) -> PartitionImage:
        return self.image.topics_by_name[topic].partitions[number]

    def create(self, topic: str, *assignments: Sequence[int], **configs: str) -> None:
        """A topic with these replicas for each of its partitions."""
        request = CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    topic,
                    -1,
                    -1,
                    [CreatableReplicaAssignment(n, list(ids)) for n, ids in enumerate(assignments)],
                    [CreatableTopicConfig(name.replace("_", "."), value) for name, value in configs.items()],
                )
            ]
        )
        response, records = self.controller.create_topics(request)
        assert response.topics[0].error_code == 0, response.topics[0].error_message
        self.apply(records)


def cluster_of(broker_ids: Iterable[int] = (1,)) -> MetadataImage:
    """The metadata of a cluster with these brokers, all of them unfenced."""
    return Cluster(broker_ids).image
