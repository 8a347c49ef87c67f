"""The metrics of the cluster as this node knows it: the quorum, who leads what, whose copies lag.

All of it follows from the metadata, which every node has. What is true of the whole cluster is told by the
active controller alone, so that a sum over all nodes is right; what is true of a partition, by its leader.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from mainstem.broker.monitoring.scrape import Collector
from mainstem.cluster.delta import MetadataChanges
from mainstem.cluster.image import NO_LEADER, MetadataImage, PartitionImage, TopicImage
from mainstem.metrics import Exposition

if TYPE_CHECKING:
    from mainstem.broker.shared_server import SharedServer

_TOPICS_PER_STEP: Final = 16
_MIN_ISR: Final = "min.insync.replicas"
_RECOVERING: Final = 1  # an unclean election chose the leader


class _Counts:
    """What an image says of its partitions: of those that this node leads, and of all."""

    __slots__ = (
        "all",
        "all_not_preferred",
        "all_offline",
        "all_under_min_isr",
        "all_under_replicated",
        "at_min_isr",
        "led",
        "under_min_isr",
        "under_replicated",
    )

    def __init__(self) -> None:
        self.led = self.under_replicated = self.under_min_isr = self.at_min_isr = 0
        self.all = self.all_offline = self.all_under_replicated = 0
        self.all_under_min_isr = self.all_not_preferred = 0

    def add(self, topic: TopicImage, node_id: int, min_isr: int) -> None:
        for partition in topic.partitions:
            isr, copies, leader = len(partition.isr), len(partition.replicas), partition.leader
            needed = min(min_isr, copies)
            lacks, refuses = isr < copies, isr < needed or leader == NO_LEADER
            self.all += 1
            self.all_offline += leader == NO_LEADER
            self.all_under_replicated += lacks
            self.all_under_min_isr += refuses
            self.all_not_preferred += leader not in (NO_LEADER, partition.replicas[0])
            if leader == node_id:
                self.led += 1
                self.under_replicated += lacks
                self.under_min_isr += refuses
                self.at_min_isr += isr == needed


class ClusterEvents:
    """Counts what changes, as the last of the publishers of the metadata."""

    def __init__(self, node_id: int) -> None:
        self._node_id = node_id
        self._known: Mapping[bytes, TopicImage] = {}
        self.shrinks = self.expands = 0
        self.elections = self.unclean_elections = 0

    async def publish(self, image: MetadataImage, changes: MetadataChanges) -> None:
        for topic in changes.topics:
            former = self._known.get(topic.topic_id)
            if former is not None:
                for old, new in zip(former.partitions, topic.partitions, strict=False):
                    if old is not new:
                        self._changed(old, new)
        self._known = image.topics_by_id

    def _changed(self, old: PartitionImage, new: PartitionImage) -> None:
        if new.leader == self._node_id != old.leader:
            self.elections += 1
            self.unclean_elections += new.leader_recovery_state == _RECOVERING
        if self._node_id in (new.leader, old.leader if new.leader == NO_LEADER else NO_LEADER):
            self.shrinks += not set(old.isr) <= set(new.isr)
            self.expands += not set(new.isr) <= set(old.isr)


def cluster(server: "SharedServer", events: ClusterEvents) -> Collector:
    """The partitions. Counted anew only when the metadata is other than at the last scrape."""
    counted: tuple[Mapping[bytes, TopicImage], _Counts] | None = None

    def collect(out: Exposition) -> Iterator[None]:
        nonlocal counted
        image = server.image
        if counted is None or counted[0] is not image.topics_by_id:
            counts = _Counts()
            default = server.config.get(_MIN_ISR)
            for number, topic in enumerate(image.topics_by_id.values()):
                if number % _TOPICS_PER_STEP == 0:
                    yield
                own = image.topic_config(topic.name).get(_MIN_ISR)
                counts.add(topic, server.node_id, default if own is None else int(own))
            counted = image.topics_by_id, counts
        _led(out, counted[1])
        _changes(out, events)
        _of_all(out, server, image, counted[1])
        yield

    return collect


def _led(out: Exposition, counts: _Counts) -> None:
    out.gauge("mainstem_partitions_led", "Partitions that this node leads.").add(counts.led)
    out.gauge(
        "mainstem_partitions_under_replicated", "Partitions led here with a replica that is not in sync."
    ).add(counts.under_replicated)
    out.gauge(
        "mainstem_partitions_under_min_isr",
        "Partitions led here with fewer replicas in sync than min.insync.replicas: acks=all is refused.",
    ).add(counts.under_min_isr)
    out.gauge("mainstem_partitions_at_min_isr", "Partitions led here with just as many.").add(
        counts.at_min_isr
    )


def _changes(out: Exposition, events: ClusterEvents) -> None:
    out.counter("mainstem_isr_shrinks_total", "Replicas fell out of sync with partitions led here.").add(
        events.shrinks
    )
    out.counter("mainstem_isr_expands_total", "Replicas came into sync with partitions led here.").add(
        events.expands
    )
    out.counter("mainstem_leader_elections_total", "Times that this node became a leader.").add(
        events.elections
    )
    out.counter(
        "mainstem_unclean_elections_total", "Of these, times when records may have been lost by it."
    ).add(events.unclean_elections)


def _of_all(out: Exposition, server: "SharedServer", image: MetadataImage, counts: _Counts) -> None:
    """The families are there on every node, their values where the active controller is."""
    offline = out.gauge("mainstem_cluster_partitions_offline", "Partitions that nobody leads.")
    lacking = out.gauge("mainstem_cluster_partitions_under_replicated", "With a replica that is not in sync.")
    refusing = out.gauge("mainstem_cluster_partitions_under_min_isr", "With fewer than min.insync.replicas.")
    elsewhere = out.gauge(
        "mainstem_cluster_partitions_not_preferred", "Not led by the first of their replicas."
    )
    total = out.gauge("mainstem_cluster_partitions", "Partitions of the cluster.")
    active = out.gauge("mainstem_cluster_brokers_active", "Brokers that the controller hears.")
    fenced = out.gauge("mainstem_cluster_brokers_fenced", "Brokers that it does not hear.")
    if server.is_active_controller:
        offline.add(counts.all_offline)
        lacking.add(counts.all_under_replicated)
        refusing.add(counts.all_under_min_isr)
        elsewhere.add(counts.all_not_preferred)
        total.add(counts.all)
        silent = sum(broker.fenced for broker in image.brokers.values())
        active.add(len(image.brokers) - silent)
        fenced.add(silent)


def quorum(server: "SharedServer") -> Collector:
    """The metadata quorum as this node sees it, be it a voter or an observer."""

    def collect(out: Exposition) -> Iterator[None]:
        state = server.quorum
        out.gauge("mainstem_active_controller", "1 on the node that decides on the metadata.").add(
            int(server.is_active_controller)
        )
        out.gauge("mainstem_quorum_leader_id", "The node that leads the quorum; -1: none is known.").add(
            state.leader_id
        )
        out.gauge("mainstem_quorum_epoch", "The epoch of that leader.").add(state.epoch)
        out.gauge("mainstem_quorum_high_watermark", "Metadata is committed up to here.").add(
            state.high_watermark
        )
        out.gauge(
            "mainstem_quorum_lag_records", "Committed records of metadata that this node has not applied."
        ).add(max(0, state.high_watermark - 1 - server.image.offset))
        yield

    return collect
