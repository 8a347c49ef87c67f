"""A cluster of brokers around one controller: they start, die, write, and say what leaders say, in any order.

The world knows what no controller can know: which replicas have everything that was ever committed. A broker
loses the end of its logs when its power fails. Requests are made at one time and decided at another.
"""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from msgspec import Struct

from mainstem.cluster.controller.controller import SLICE
from mainstem.cluster.controller.elect_leaders import ElectionType
from mainstem.cluster.controller.partition_index import Key, PartitionIndex
from mainstem.cluster.features import ELIGIBLE_LEADER_REPLICAS_VERSION
from mainstem.cluster.image import NO_LEADER, MetadataImage, PartitionImage
from mainstem.cluster.records import MetadataRecord
from mainstem.protocol.apis.k20_delete_topics import DeleteTopicsRequest
from mainstem.protocol.apis.k43_elect_leaders import ElectLeadersRequest
from mainstem.protocol.apis.k45_alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from mainstem.protocol.apis.k56_alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from mainstem.protocol.apis.k63_broker_heartbeat import BrokerHeartbeatRequest
from mainstem.protocol.apis.k64_unregister_broker import UnregisterBrokerRequest
from mainstem.protocol.errors import ErrorCode, KafkaError
from tests.cluster.cluster_model import CLUSTER_ID, Cluster, apply, registration
from tests.sim.seeds import Violation

BROKERS = (1, 2, 3, 4)
SESSION_MS = 9_000
_RECOVERING = 1


class Process(Struct):
    """One broker's: what it knows of itself."""

    incarnation: int = 0
    epoch: int = -1
    is_alive: bool = False
    # What it finds on its disk: the epoch that it had when it ended well.
    clean_epoch: int = -1
    wants_to_end: bool = False
    # Whether its power failed: its next incarnation lacks the end of its logs.
    has_lost: bool = False


class ControllerWorld:
    """Made from a seed; `act` does something, after which everything is checked."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.keeps_elr = self.random.random() < 0.7
        features = {ELIGIBLE_LEADER_REPLICAS_VERSION: int(self.keeps_elr)}
        self.cluster = Cluster((), features=features, node_id=9)
        self._first_image = self.cluster.image
        self.history: list[MetadataRecord] = []
        self.processes = {broker_id: Process() for broker_id in BROKERS}
        # The replicas of each partition that have all that was committed.
        self.holders: dict[Key, set[int]] = {}
        self._under_way: list[AlterPartitionRequest] = []
        self._topics_made = 0
        for broker_id in BROKERS:
            self._start(broker_id)
            self._heartbeat(broker_id)

    # ---- what happens

    def act(self) -> None:
        """One thing, chosen by the seed."""
        actions: list[tuple[int, Callable[[], None]]] = [
            (6, lambda: self._heartbeat(self._any_broker())),
            (6, self._leader_asks),
            (4, self._answer_leader),
            (6, self.write),
            (3, lambda: self._die(self._any_broker())),
            (4, lambda: self._start(self._any_broker())),
            (3, self._restart),
            (1, self._ask_to_end),
            (2, self._create_topic),
            (1, self._delete_topic),
            (2, self._reassign),
            (1, self._elect),
            (1, self._unregister),
            (1, lambda: self.cluster.change_controller(9)),
            (4, lambda: self.pass_time(self.random.choice((0, 10, 1_000, 5_000, SESSION_MS + 1)))),
        ]
        weights, does = zip(*actions, strict=True)
        self.random.choices(does, weights)[0]()
        self.check()

    def pass_time(self, ms: int) -> None:
        self.cluster.now_ms += ms
        while True:
            work = self.cluster.controller.time_passed(self.cluster.now_ms)
            if len(work.records) > SLICE + 1:
                raise Violation("too much at once")
            self._apply(work.records)
            for probe in work.probes:
                if self.processes[probe.broker_id].is_alive or self.random.random() < 0.2:
                    self.cluster.controller.not_refused(probe, self.cluster.now_ms)
                else:
                    self._apply(self.cluster.controller.refused(probe, self.cluster.now_ms))
            if not work.records:
                return

    def settle(self) -> None:
        """Everybody comes back, and all is quiet for a while."""
        for _ in range(6):
            for broker_id in BROKERS:
                self._start(broker_id)
                self._heartbeat(broker_id, promptly=True)
            self.pass_time(SESSION_MS // 2)
            for key in list(self.holders):
                request = self._request_of_leader(key, set(self._partition(key).replicas))
                if request is not None:
                    self._under_way.append(request)
            while self._under_way:
                self._answer_leader()
                self.check()

    def _start(self, broker_id: int) -> None:
        process = self.processes[broker_id]
        if process.is_alive:
            return
        process.incarnation += 1
        held = [holders for holders in self.holders.values() if process.has_lost and broker_id in holders]
        for holders in held:
            holders.discard(broker_id)
        request = registration(broker_id, incarnation=process.incarnation, previous_epoch=process.clean_epoch)
        decided = self._decide(
            lambda: self.cluster.controller.register_broker(request, CLUSTER_ID, self.cluster.now_ms)
        )
        if decided is not None:
            process.is_alive, process.epoch, process.clean_epoch = True, decided.broker_epoch, -1
            process.has_lost = False
            return
        # Its former incarnation is still the one that everybody speaks of.
        for holders in held:
            holders.add(broker_id)

    def _heartbeat(self, broker_id: int, *, promptly: bool = False) -> None:
        process = self.processes[broker_id]
        if not process.is_alive:
            return
        behind = 0 if promptly else self.random.choice((0, 0, 1, 5))
        request = BrokerHeartbeatRequest(
            broker_id,
            process.epoch,
            self.cluster.image.offset - behind,
            not promptly and self.random.random() < 0.1,
            process.wants_to_end,
        )
        answer = self._decide(lambda: self.cluster.controller.heartbeat(request, self.cluster.now_ms))
        if answer is None:
            # It was taken out of the cluster, and begins again.
            process.is_alive = False
        elif answer.should_shut_down and process.wants_to_end:
            process.is_alive, process.wants_to_end = False, False
            process.clean_epoch = process.epoch

    def _die(self, broker_id: int) -> None:
        process = self.processes[broker_id]
        if not process.is_alive:
            return
        process.is_alive = process.wants_to_end = False
        if self.random.random() < 0.7:
            self.cluster.controller.connection_lost(broker_id, process.epoch, self.cluster.now_ms)
        process.has_lost = self.keeps_elr and self.random.random() < 0.5

    def _restart(self) -> None:
        """Of somebody of whom a leader has just spoken, where there is one."""
        spoken_of = [
            state.broker_id
            for request in self._under_way
            for state in request.topics[0].partitions[0].new_isr_with_epochs
            if state.broker_id != request.broker_id
        ]
        broker_id = self.random.choice(spoken_of or BROKERS)
        self._die(broker_id)
        self._start(broker_id)
        self._heartbeat(broker_id, promptly=True)

    def _ask_to_end(self) -> None:
        self.processes[self._any_broker()].wants_to_end = True

    def _unregister(self) -> None:
        broker_id = self._any_broker()
        if not self.processes[broker_id].is_alive:
            request = UnregisterBrokerRequest(broker_id)
            self._decide(lambda: self.cluster.controller.unregister_broker(request))

    def _create_topic(self) -> None:
        there = [b.broker_id for b in self.cluster.image.brokers.values() if b.active]
        if not there or len(self.cluster.image.topics_by_name) > 3:
            return
        self._topics_made += 1
        name = self.random.choice(("t", "__internal")) + str(self._topics_made)
        ids = [self.random.sample(there, self.random.randint(1, len(there))) for _ in range(2)]
        settings = {"min_insync_replicas": str(self.random.randint(1, 2))}
        before = self.cluster.image
        self.cluster.create(name, *[ids[0], self.random.sample(ids[0], len(ids[0]))], **settings)
        self.history += self._created(before, name)
        topic = self.cluster.image.topics_by_name[name]
        for part in topic.partitions:
            self.holders[topic.topic_id, part.partition] = set(part.replicas)

    def _created(self, before: MetadataImage, name: str) -> list[MetadataRecord]:
        """The records that made a topic, from the difference that they made."""
        from mainstem.cluster.snapshot_records import snapshot_records

        known = {repr(record) for record in snapshot_records(before)}
        return [record for record in snapshot_records(self.cluster.image) if repr(record) not in known]

    def _delete_topic(self) -> None:
        names = list(self.cluster.image.topics_by_name)
        if len(names) > 2:
            request = DeleteTopicsRequest(topic_names=[self.random.choice(names)])
            self._decide(lambda: self.cluster.controller.delete_topics(request, 5))
            self.holders = {
                key: holders
                for key, holders in self.holders.items()
                if key[0] in self.cluster.image.topics_by_id
            }

    def _reassign(self) -> None:
        key = self._any_partition()
        if key is None:
            return
        name = self.cluster.image.topics_by_id[key[0]].name
        known = list(self.cluster.image.brokers)
        ids = self.random.sample(known, self.random.randint(1, len(known)))
        wish = ReassignablePartition(key[1], self.random.choice((None, ids)))
        request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name, [wish])])
        self._decide(lambda: self.cluster.controller.alter_partition_reassignments(request))

    def _elect(self) -> None:
        request = ElectLeadersRequest(ElectionType.PREFERRED, None)
        self._decide(lambda: self.cluster.controller.elect_leaders(request))

    # ---- what leaders do

    def write(self) -> None:
        """A record is committed where all take it that are in sync, or that the leader has proposed, and
        those in sync are not too few.
        """
        for key, holders in self.holders.items():
            part = self._partition(key)
            proposed = list(self._proposed(key, part))
            needed = [self.processes[r] for r in (*part.isr, *(state.broker_id for state in proposed))]
            is_led = part.leader != NO_LEADER and all(process.is_alive for process in needed)
            is_led = is_led and all(map(self._is_same, proposed))
            if is_led and (not self.keeps_elr or len(part.isr) >= self._min_isr(key, part)):
                holders.intersection_update(part.isr)

    def _proposed(self, key: Key, part: PartitionImage) -> Iterator[BrokerState]:
        """Those whom the leader would have in sync, and has to wait for as if they were."""
        for request in self._under_way:
            for topic in request.topics:
                for data in topic.partitions:
                    is_this = (topic.topic_id, data.partition_index) == key
                    if is_this and data.partition_epoch == part.partition_epoch:
                        yield from data.new_isr_with_epochs

    def _leader_asks(self) -> None:
        key = self._any_partition()
        if key is not None:
            replicas = self._partition(key).replicas
            chosen = {replica for replica in replicas if self.random.random() < 0.7}
            request = self._request_of_leader(key, chosen)
            if request is not None:
                self._under_way.append(request)

    def _request_of_leader(self, key: Key, wanted: set[int]) -> AlterPartitionRequest | None:
        """What the leader says now: those of the wanted that are alive have all that it has."""
        part = self._partition(key)
        leader = self.processes.get(part.leader)
        if leader is None or not leader.is_alive:
            return None
        wanted = {replica for replica in wanted if self.processes[replica].is_alive} | {part.leader}
        if part.leader_recovery_state == _RECOVERING:
            wanted = {part.leader}
        isr = [BrokerState(replica, self.processes[replica].epoch) for replica in sorted(wanted)]
        data = PartitionData(part.partition, part.leader_epoch, [], isr, 0, part.partition_epoch)
        return AlterPartitionRequest(part.leader, leader.epoch, [TopicData(key[0], [data])])

    def _answer_leader(self) -> None:
        """The controller comes to a request. Who was proposed has what was committed since, as long as it has
        not begun anew.
        """
        if not self._under_way:
            return
        request = self._under_way.pop(self.random.randrange(len(self._under_way)))
        (topic,) = request.topics
        (data,) = topic.partitions
        key = topic.topic_id, data.partition_index
        holders = self.holders.get(key, set())
        proposed = {s.broker_id for s in data.new_isr_with_epochs if self._is_same(s)} - holders
        if request.broker_id in holders:
            holders |= proposed
        response = self._decide(lambda: self.cluster.controller.alter_partition(request, 3))
        code = -1 if response is None else response.topics[0].partitions[0].error_code
        if code not in (ErrorCode.NONE, ErrorCode.NEW_LEADER_ELECTED):
            holders -= proposed

    def _is_same(self, state: BrokerState) -> bool:
        """Whether the incarnation is still there that was meant."""
        return self.processes[state.broker_id].epoch == state.broker_epoch

    # ---- what must be

    def check(self) -> None:
        image = self.cluster.image
        for key in self.holders:
            part = self._partition(key)
            if len(set(part.isr)) < len(part.isr) or not set(part.isr) <= set(part.replicas):
                raise Violation(f"in sync {part.isr} of {part.replicas}")
            if not set(part.eligible_leader_replicas) <= set(part.replicas) - set(part.isr):
                raise Violation(f"eligible {part.eligible_leader_replicas} beside {part.isr}")
            if not part.isr and not self.keeps_elr:
                raise Violation("nobody is left in sync")
            if part.leader not in (NO_LEADER, *part.isr):
                raise Violation(f"leader {part.leader} is not in sync: {part.isr}")
        self._check_index(image)

    def _check_index(self, image: MetadataImage) -> None:
        index, scanned = self.cluster.controller._index, PartitionIndex(image)
        if not index.describes(image):
            raise Violation("the index is of another image")
        for broker_id in (*BROKERS, *index.brokers()):
            for look in ("led_by", "in_sync_with", "eligible_with"):
                if dict(getattr(index, look)(broker_id)) != dict(getattr(scanned, look)(broker_id)):
                    raise Violation(f"the index is wrong about {look} {broker_id}")
        for name in ("leaderless", "not_preferred", "reassigning"):
            if getattr(index, name) != getattr(scanned, name):
                raise Violation(f"the index is wrong about {name}")

    def check_replay(self) -> None:
        """Whoever replays the records sees the same cluster."""
        if apply(self._first_image, self.history).topics_by_name != self.cluster.image.topics_by_name:
            raise Violation("a replay gives another cluster")

    def check_calm(self) -> None:
        for key in self.holders:
            part = self._partition(key)
            last_known = set(part.last_known_elr) - set(part.replicas)
            if part.leader == NO_LEADER and self.holders[key] and not last_known:
                raise Violation(f"no leader, and {self.holders[key]} have everything of {part}")
            if part.leader != NO_LEADER and set(part.isr) != set(part.replicas):
                raise Violation(f"in sync {part.isr} of {part.replicas} after a calm")

    # ---- deciding

    def _decide(self, decide: Callable[[], tuple[Any, list[MetadataRecord]]]) -> Any:
        """The answer, when its records are applied; None when it is refused."""
        try:
            response, records = decide()
        except KafkaError:
            return None
        self._apply(records)
        return response

    def _apply(self, records: list[MetadataRecord]) -> None:
        before = self.cluster.image
        self.cluster.apply(records)
        self.history += records
        for key in self.holders:
            if key[0] in self.cluster.image.topics_by_id:
                self._check_change(before.topics_by_id[key[0]].partitions[key[1]], self._partition(key), key)

    def _check_change(self, old: PartitionImage, new: PartitionImage, key: Key) -> None:
        if new.leader_epoch < old.leader_epoch or new.partition_epoch < old.partition_epoch:
            raise Violation("an epoch went back")
        if new is not old and new.partition_epoch == old.partition_epoch:
            raise Violation("a change without a partition epoch")
        if new.leader == old.leader:
            return
        if new.leader_epoch == old.leader_epoch:
            raise Violation("a leader without an epoch of its own")
        is_clean = new.leader_recovery_state != _RECOVERING
        if new.leader != NO_LEADER and is_clean and new.leader not in self.holders[key]:
            raise Violation(f"{new.leader} leads without having all: {old} -> {new}")
        if not is_clean and new.leader != NO_LEADER:
            self.holders[key] = {new.leader}

    def _partition(self, key: Key) -> PartitionImage:
        return self.cluster.image.topics_by_id[key[0]].partitions[key[1]]

    def _min_isr(self, key: Key, part: PartitionImage) -> int:
        name = self.cluster.image.topics_by_id[key[0]].name
        return min(int(self.cluster.image.topic_config(name)["min.insync.replicas"]), len(part.replicas))

    def _any_broker(self) -> int:
        return self.random.choice(BROKERS)

    def _any_partition(self) -> Key | None:
        return self.random.choice(list(self.holders)) if self.holders else None
