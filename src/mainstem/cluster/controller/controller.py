"""The controller: it decides every change of the cluster's metadata.

It takes a request and the newest image and returns the answer with the records to append; the change happens
when these are durable and replayed, and only then. No clock, no randomness, no I/O: what it needs of these is
handed to it. Every rule lives in the file of its concern; this class holds what they share, and what only the
active controller knows: when brokers were last heard of, which partitions each of them leads, and what is
still to be done for those that came or went. All of that is made anew by `activate`, from the image alone.

Whoever appends the records says so by `appended`, before the next decision.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from mainstem.cluster.controller import (
    configs,
    elections,
    heartbeats,
    partitions,
    producer_ids,
    registration,
    topic_deletion,
    topics,
)
from mainstem.cluster.controller.contacts import Contacts
from mainstem.cluster.controller.facts import UNCLEAN_LEADER_ELECTION, Facts
from mainstem.cluster.controller.heartbeats import BrokerState
from mainstem.cluster.controller.partition_index import Key, PartitionIndex
from mainstem.cluster.controller.probes import Probe, Probes
from mainstem.cluster.image import BrokerImage, MetadataImage
from mainstem.cluster.records import ConfigRecord, MetadataRecord, RegisterBrokerRecord
from mainstem.config import BrokerConfig
from mainstem.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from mainstem.protocol.apis.k19_create_topics import CreateTopicsRequest, CreateTopicsResponse
    from mainstem.protocol.apis.k20_delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
    from mainstem.protocol.apis.k33_alter_configs import AlterConfigsRequest, AlterConfigsResponse
    from mainstem.protocol.apis.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
    from mainstem.protocol.apis.k43_elect_leaders import ElectLeadersRequest, ElectLeadersResponse
    from mainstem.protocol.apis.k44_incremental_alter_configs import (
        IncrementalAlterConfigsRequest,
        IncrementalAlterConfigsResponse,
    )
    from mainstem.protocol.apis.k45_alter_partition_reassignments import (
        AlterPartitionReassignmentsRequest,
        AlterPartitionReassignmentsResponse,
    )
    from mainstem.protocol.apis.k46_list_partition_reassignments import (
        ListPartitionReassignmentsRequest,
        ListPartitionReassignmentsResponse,
    )
    from mainstem.protocol.apis.k56_alter_partition import AlterPartitionRequest, AlterPartitionResponse
    from mainstem.protocol.apis.k57_update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
    from mainstem.protocol.apis.k62_broker_registration import (
        BrokerRegistrationRequest,
        BrokerRegistrationResponse,
    )
    from mainstem.protocol.apis.k63_broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
    from mainstem.protocol.apis.k64_unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
    from mainstem.protocol.apis.k67_allocate_producer_ids import (
        AllocateProducerIdsRequest,
        AllocateProducerIdsResponse,
    )
    from mainstem.protocol.apis.k70_controller_registration import (
        ControllerRegistrationRequest,
        ControllerRegistrationResponse,
    )
    from mainstem.protocol.apis.k73_assign_replicas_to_dirs import (
        AssignReplicasToDirsRequest,
        AssignReplicasToDirsResponse,
    )

# How many partitions are changed by one append: others have their turn in between.
SLICE = 1000
# How the names of topics begin that nodes keep for themselves.
_INTERNAL = "__"


class Work(Struct, frozen=True):
    """What is to be done now: records to append, and addresses to dial."""

    records: list[MetadataRecord]
    probes: list[Probe]


class Controller:
    """Decides on what `newest_image` gives, which must hold every record that was ever appended.

    `config` is replaced when the broker's settings are altered; `new_uuid` gives ids that are unused. All
    times are of a clock that is never set.
    """

    def __init__(
        self,
        node_id: int,
        config: BrokerConfig,
        new_uuid: Callable[[], bytes],
        newest_image: Callable[[], MetadataImage],
        voters: Callable[[], Collection[int]] = tuple,
        now_ms: int = 0,
    ) -> None:
        self.node_id = node_id
        self.config = config
        self._new_uuid = new_uuid
        self._newest_image = newest_image
        self._voters = voters
        self.activate(now_ms)

    def activate(self, now_ms: int) -> None:
        """Begin as the active controller of the newest image: nobody is known to be silent, and everybody may
        be dead.
        """
        image = self._newest_image()
        self._index = PartitionIndex(image)
        session_timeout_ms: int = self.config.get("broker.session.timeout.ms")
        self._contacts = Contacts(self.node_id, session_timeout_ms, image.brokers.values(), now_ms)
        self._probes = Probes(self.config.get("inter.broker.listener.name"), session_timeout_ms)
        # Partitions that somebody has to look at, because of brokers that came or went.
        self._unsettled: deque[Key] = deque()
        self._balance_ms: int | None = None
        self._plan_balance(now_ms)
        for broker in image.brokers.values():
            if not broker.fenced and broker.broker_id != self.node_id:
                self._probes.want(broker.broker_id, now_ms)
        # What the former controller has begun.
        for broker_id in self._index.brokers():
            broker_or_none = image.brokers.get(broker_id)
            if broker_or_none is None or not broker_or_none.active:
                self._unsettle(self._index.rests_on(broker_id))

    def appended(
        self, records: Sequence[MetadataRecord], before: MetadataImage, image: MetadataImage, now_ms: int
    ) -> None:
        """The records of a decision have led from one image to the next, which is the newest."""
        if self._index.describes(before):
            self._index.follow(records, image)
        else:
            self._index = PartitionIndex(image)
        for record in records:
            if isinstance(record, RegisterBrokerRecord):
                self._contacts.touch(record.broker_id, record.broker_epoch, now_ms)
            elif isinstance(record, ConfigRecord) and record.name == UNCLEAN_LEADER_ELECTION:
                self._unsettle(self._index.leaderless)
        for broker in image.brokers.values():
            if broker.in_controlled_shutdown and not broker.fenced:
                self._note_handed_over(broker, image)
        self._plan_balance(now_ms)

    # ---- what happens by itself

    def deadline_ms(self) -> int | None:
        """When there may be something to do again; None while nothing can happen by time alone."""
        deadlines = [
            self._contacts.deadline_ms(self._newest_image().brokers.values()),
            self._probes.deadline_ms(),
            self._balance_ms,
            0 if self._unsettled else None,
        ]
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def time_passed(self, now_ms: int) -> Work:
        """What is to be done at this time. Each call gives a part that is small enough for one turn."""
        facts = self._facts()
        records = self._settle_some(facts)
        if not records:
            stale = self._contacts.stale(facts.brokers.values(), now_ms)
            records = self._fence(facts, stale) if stale is not None else self._balance(facts, now_ms)
        probes = [
            probe
            for broker_id, attempt in self._probes.due(now_ms)
            if (broker := facts.brokers.get(broker_id)) is not None
            and not broker.fenced
            and (probe := self._probes.probe(broker, attempt, now_ms)) is not None
        ]
        return Work(records, probes)

    def _settle_some(self, facts: Facts) -> list[MetadataRecord]:
        """The next of the partitions that were waiting."""
        records: list[MetadataRecord] = []
        while self._unsettled and not records:
            keys = [self._unsettled.popleft() for _ in range(min(SLICE, len(self._unsettled)))]
            records += _present(elections.settled(facts, key) for key in keys)
        return records

    def _unsettle(self, keys: Iterable[Key]) -> None:
        """Have partitions looked at soon, those of internal topics first: clients cannot do without them."""
        by_id = self._newest_image().topics_by_id
        for key in keys:
            topic = by_id.get(key[0])
            if topic is not None and topic.name.startswith(_INTERNAL):
                self._unsettled.appendleft(key)
            else:
                self._unsettled.append(key)

    def _settle(self, facts: Facts, keys: list[Key]) -> list[MetadataRecord]:
        """The changes of partitions, as far as one append goes; the others follow at once."""
        if len(keys) > SLICE:
            self._unsettle(keys)
            return []
        return _present(elections.settled(facts, key) for key in keys)

    def _fence(self, facts: Facts, broker: BrokerImage) -> list[MetadataRecord]:
        facts.fence(broker.broker_id)
        keys = self._index.rests_on(broker.broker_id)
        return [heartbeats.fence_record(broker), *self._settle(facts, keys)]

    def _plan_balance(self, now_ms: int) -> None:
        """Look at the preferred leaders after a while, as long as others lead in their place."""
        if not self._index.not_preferred:
            self._balance_ms = None
        elif self._balance_ms is None:
            self._balance_ms = now_ms + 1000 * self.config.get("leader.imbalance.check.interval.seconds")

    def _balance(self, facts: Facts, now_ms: int) -> list[MetadataRecord]:
        """Give leadership back to the preferred leaders, now and then."""
        if self._balance_ms is None or now_ms < self._balance_ms:
            return []
        records: list[MetadataRecord] = []
        if self.config.get("auto.leader.rebalance.enable"):
            records = elections.rebalanced(facts, self._index, SLICE)
        if len(records) < SLICE:
            self._balance_ms = None
            self._plan_balance(now_ms)
        return records

    # ---- brokers come and go

    def register_broker(
        self, request: "BrokerRegistrationRequest", cluster_id: str, now_ms: int, *, is_own: bool = False
    ) -> tuple["BrokerRegistrationResponse", list[MetadataRecord]]:
        """The records must be the next ones in the log. `is_own`: it is the broker of this very process that
        asks, so that whoever had its id before is gone.
        """
        facts = self._facts()
        registration.check_request(facts.image, cluster_id, request, is_own=is_own)
        existing = facts.brokers.get(request.broker_id)
        if not is_own and request.broker_id == self.node_id:
            raise _duplicate(request.broker_id)
        if not is_own and existing is not None and existing.incarnation_id != request.incarnation_id:
            self._check_gone(existing, request, now_ms)
        stands_alone = is_own and facts.brokers.keys() <= {request.broker_id}
        return registration.register_broker(facts, self._index, request, stands_alone=stands_alone)

    def _check_gone(self, existing: BrokerImage, request: "BrokerRegistrationRequest", now_ms: int) -> None:
        """Refuse a second broker under an id that is in use. One that was killed begins again at once: its
        connection is lost, and its address is the new one's (KAFKA-19047).
        """
        if existing.in_controlled_shutdown or not self._contacts.has_session(existing, now_ms):
            return
        contact = self._contacts.get(existing.broker_id, existing.epoch)
        if contact is None or not contact.is_connected:
            if registration.serves_at_same_address(existing, request):
                return
            self._probes.want(existing.broker_id, now_ms)
        raise _duplicate(request.broker_id)

    def heartbeat(
        self, request: "BrokerHeartbeatRequest", now_ms: int
    ) -> tuple["BrokerHeartbeatResponse", list[MetadataRecord]]:
        facts = self._facts()
        broker = self._checked_broker(facts, request.broker_id, request.broker_epoch)
        contact = self._contacts.touch(broker.broker_id, broker.epoch, now_ms)
        contact.metadata_offset = request.current_metadata_offset
        if broker.in_controlled_shutdown:
            self._note_handed_over(broker, facts.image)
        state = heartbeats.next_state(
            broker,
            contact,
            request,
            leads=bool(self._index.led_by(broker.broker_id)),
            others_offset=self._contacts.lowest_offset(facts.brokers.values()),
        )
        records = self._enter(facts, broker, state)
        lost = heartbeats.directories_record(
            broker, facts.level, request.offline_log_dirs, request.cordoned_log_dirs
        )
        if lost is not None:
            records.append(lost)
            if lost.log_dirs:
                records += self._lose_directories(facts, broker.broker_id, lost.log_dirs)
        return heartbeats.heartbeat_response(broker, request, state), records

    def _enter(self, facts: Facts, broker: BrokerImage, state: BrokerState) -> list[MetadataRecord]:
        """The records that bring a broker into a state, with what follows for the partitions."""
        record = heartbeats.state_record(broker, state)
        if record is None:
            return []
        if state is BrokerState.UNFENCED:
            facts.put_broker(replace(broker, fenced=False))
            waiting = [key for key in self._index.leaderless if _has_replica(facts, key, broker.broker_id)]
            return [record, *self._settle(facts, waiting)]
        if state.is_fenced:
            return self._fence(facts, broker)
        facts.put_broker(replace(broker, in_controlled_shutdown=True))
        return [record, *self._settle(facts, self._index.rests_on(broker.broker_id))]

    def _lose_directories(
        self, facts: Facts, broker_id: int, online: Sequence[bytes]
    ) -> list[MetadataRecord]:
        if broker_id not in facts.brokers:
            return []
        facts.put_broker(replace(facts.brokers[broker_id], log_dirs=tuple(online)))
        return self._settle(
            facts, list({**self._index.led_by(broker_id), **self._index.in_sync_with(broker_id)})
        )

    def _note_handed_over(self, broker: BrokerImage, image: MetadataImage) -> None:
        """A broker that shuts down leads nothing any more: it ends when all others have seen that."""
        contact = self._contacts.get(broker.broker_id, broker.epoch)
        if contact is not None and contact.shutdown_offset < 0 and not self._index.led_by(broker.broker_id):
            contact.shutdown_offset = image.offset

    def connection_lost(self, broker_id: int, epoch: int, now_ms: int) -> None:
        """The connection is gone on which the broker sent its last heartbeat: a hint that it may be dead."""
        contact = self._contacts.get(broker_id, epoch)
        if contact is not None:
            contact.is_connected = False
            self._probes.want(broker_id, now_ms)

    def _in_doubt(self, facts: Facts, probe: Probe) -> BrokerImage | None:
        """The probed broker, if it is not fenced and nothing was heard of it since."""
        broker = facts.brokers.get(probe.broker_id)
        contact = self._contacts.get(probe.broker_id, probe.epoch)
        if broker is None or contact is None or broker.epoch != probe.epoch or broker.fenced:
            return None
        return broker if contact.last_ms <= probe.asked_ms else None

    def not_refused(self, probe: Probe, now_ms: int) -> None:
        """Its address does not say that it is dead, not yet: it is dialled until the broker is heard of."""
        if self._in_doubt(self._facts(), probe) is not None:
            self._probes.want_again(probe, now_ms)

    def refused(self, probe: Probe, now_ms: int) -> list[MetadataRecord]:
        """Nobody listens at a broker's address: what it led is led by others from now on, and it is fenced
        unless it is the last one that has everything of a partition.
        """
        facts = self._facts()
        broker = self._in_doubt(facts, probe)
        if broker is None or not self._probes.may_fence(probe.broker_id, probe.epoch, now_ms):
            return []
        after = self._facts()
        after.fence(probe.broker_id)
        led = self._index.led_by(probe.broker_id)
        stuck = {key for key in led if not elections.can_lead_elsewhere(after, key)}
        if not stuck:
            return self._fence(facts, broker)
        others = [key for key in self._index.rests_on(probe.broker_id) if key not in stuck]
        return _present(elections.settled(after, key) for key in others)

    def unregister_broker(
        self, request: "UnregisterBrokerRequest"
    ) -> tuple["UnregisterBrokerResponse", list[MetadataRecord]]:
        return registration.unregister_broker(self._facts(), self._index, request)

    def register_controller(
        self, request: "ControllerRegistrationRequest"
    ) -> tuple["ControllerRegistrationResponse", list[MetadataRecord]]:
        return registration.register_controller(self._facts(), request)

    # ---- what brokers ask for

    def alter_partition(
        self, request: "AlterPartitionRequest", api_version: int
    ) -> tuple["AlterPartitionResponse", list[MetadataRecord]]:
        from mainstem.cluster.controller import alter_partition  # only in a cluster

        facts = self._facts()
        self._checked_broker(facts, request.broker_id, request.broker_epoch)
        return alter_partition.alter_partition(facts, request, api_version)

    def assign_replicas_to_dirs(
        self, request: "AssignReplicasToDirsRequest"
    ) -> tuple["AssignReplicasToDirsResponse", list[MetadataRecord]]:
        from mainstem.cluster.controller import directories  # only in a cluster

        facts = self._facts()
        broker = self._checked_broker(facts, request.broker_id, request.broker_epoch)
        return directories.assign_replicas_to_dirs(facts, broker, request)

    def allocate_producer_ids(
        self, request: "AllocateProducerIdsRequest"
    ) -> tuple["AllocateProducerIdsResponse", list[MetadataRecord]]:
        facts = self._facts()
        broker = self._checked_broker(facts, request.broker_id, request.broker_epoch)
        return producer_ids.allocate_producer_ids(facts.image, broker)

    # ---- what clients ask for

    def create_topics(
        self, request: "CreateTopicsRequest"
    ) -> tuple["CreateTopicsResponse", list[MetadataRecord]]:
        return topics.create_topics(self._image_for_placement(), self.config, request, self._new_uuid)

    def delete_topics(
        self, request: "DeleteTopicsRequest", api_version: int
    ) -> tuple["DeleteTopicsResponse", list[MetadataRecord]]:
        return topic_deletion.delete_topics(self._newest_image(), self.config, request, api_version)

    def create_partitions(
        self, request: "CreatePartitionsRequest"
    ) -> tuple["CreatePartitionsResponse", list[MetadataRecord]]:
        return partitions.create_partitions(self._image_for_placement(), request)

    def _image_for_placement(self) -> MetadataImage:
        """The newest image. This node's own broker counts as its settings are now, without a record of it."""
        image = self._newest_image()
        broker = image.brokers.get(self.node_id)
        if broker is None or not self.config.cordoned_log_dirs() >= set(self.config.log_dirs()):
            return image
        cordoned = replace(broker, cordoned_log_dirs=broker.log_dirs)
        return replace(image, brokers={**image.brokers, self.node_id: cordoned})

    def incremental_alter_configs(
        self, request: "IncrementalAlterConfigsRequest"
    ) -> tuple["IncrementalAlterConfigsResponse", list[MetadataRecord]]:
        return configs.incremental_alter_configs(self._newest_image(), self.config, self.node_id, request)

    def alter_configs(
        self, request: "AlterConfigsRequest"
    ) -> tuple["AlterConfigsResponse", list[MetadataRecord]]:
        return configs.alter_configs(self._newest_image(), self.config, self.node_id, request)

    def elect_leaders(
        self, request: "ElectLeadersRequest"
    ) -> tuple["ElectLeadersResponse", list[MetadataRecord]]:
        from mainstem.cluster.controller import elect_leaders  # only in a cluster

        return elect_leaders.elect_leaders(self._facts(), request)

    def update_features(
        self, request: "UpdateFeaturesRequest", api_version: int
    ) -> tuple["UpdateFeaturesResponse", list[MetadataRecord]]:
        from mainstem.cluster.controller import feature_updates  # only in a cluster

        return feature_updates.update_features(
            self._facts(), request, api_version, self.node_id, self._voters()
        )

    def alter_partition_reassignments(
        self, request: "AlterPartitionReassignmentsRequest"
    ) -> tuple["AlterPartitionReassignmentsResponse", list[MetadataRecord]]:
        from mainstem.cluster.controller import reassignment  # only in a cluster

        return reassignment.alter_partition_reassignments(self._facts(), request)

    def list_partition_reassignments(
        self, request: "ListPartitionReassignmentsRequest"
    ) -> "ListPartitionReassignmentsResponse":
        from mainstem.cluster.controller import reassignment  # only in a cluster

        return reassignment.list_partition_reassignments(self._facts(), self._index, request)

    # ---- what decisions rest on

    def _facts(self) -> Facts:
        image = self._newest_image()
        if not self._index.describes(image):
            # Something was taken back, or came from elsewhere.
            self._index = PartitionIndex(image)
        return Facts(image, self.config)

    @staticmethod
    def _checked_broker(facts: Facts, broker_id: int, epoch: int) -> BrokerImage:
        """The broker that asks, if it is the incarnation that is registered."""
        broker = facts.brokers.get(broker_id)
        if broker is None or broker.epoch != epoch:
            known = "is not registered" if broker is None else f"is registered with epoch {broker.epoch}"
            raise KafkaError(
                ErrorCode.STALE_BROKER_EPOCH, f"Broker {broker_id} asks with epoch {epoch}, and {known}."
            )
        return broker


def _present(changes: Iterable[MetadataRecord | None]) -> list[MetadataRecord]:
    return [change for change in changes if change is not None]


def _has_replica(facts: Facts, key: Key, broker_id: int) -> bool:
    found = elections.find(facts.image, key)
    return found is not None and broker_id in found[1].replicas


def _duplicate(broker_id: int) -> KafkaError:
    return KafkaError(
        ErrorCode.DUPLICATE_BROKER_REGISTRATION,
        f"Another process is broker {broker_id}, and was heard of within broker.session.timeout.ms.",
    )
