"""The metrics of groups and transactions: lag, members, rebalances, what is open and for how long."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from mainstem.broker.clock import Clock
from mainstem.broker.monitoring.scrape import Collector
from mainstem.coordinator.group.lag import partition_lag
from mainstem.metrics import Exposition, Family, label

if TYPE_CHECKING:
    from mainstem.broker.coordination.node_coordinators import NodeCoordinators
    from mainstem.broker.logs.replicas import Replicas
    from mainstem.coordinator.group.offset_store import TopicOffsets

_OFFSETS_PER_STEP: Final = 32


def groups(node_coordinators: "NodeCoordinators", replicas: "Replicas") -> Collector:
    """Of the groups that this node coordinates. Nothing is loaded for it."""

    def collect(out: Exposition) -> Iterator[None]:
        lag = out.gauge(
            "mainstem_group_lag_records", "Records between a group's committed offset and the end of the log."
        )
        members = out.gauge("mainstem_group_members", "Members of a group.")
        rebalances = out.counter(
            "mainstem_group_rebalances_total",
            "Rebalances that a group has completed since this node leads it.",
        )
        seconds = out.counter("mainstem_group_rebalance_seconds_total", "What they took together.")
        count = 0
        coordinators = node_coordinators.loaded_groups
        for machine in coordinators.shell.machines() if coordinators is not None else ():
            for group_id, group in list(machine.state.groups.items()):
                count += 1
                name = label("group", group_id)
                members.add(len(group.members), name)
                rebalances.add(group.rebalances.completed, name)
                seconds.add(group.rebalances.total_ms / 1000, name)
                for topic, offsets in list(machine.offsets.store.of_group(group_id).items()):
                    yield from _lags(replicas, lag, f"{name},{label('topic', topic)}", topic, offsets)
                yield
        out.gauge("mainstem_groups", "Groups that this node coordinates.").add(count)

    return collect


def _lags(
    replicas: "Replicas", lag: Family, labels: str, topic: str, offsets: "TopicOffsets"
) -> Iterator[None]:
    for number, (index, committed) in enumerate(list(offsets.partitions.items())):
        if number % _OFFSETS_PER_STEP == _OFFSETS_PER_STEP - 1:
            yield
        partition = replicas.find(topic, index)
        if partition is None:
            continue  # it was deleted, or another node leads it and knows its end
        log, end_offset = partition.log, partition.high_watermark
        behind = partition_lag(committed.offset, log.log_start_offset, end_offset, None, 0).records
        if behind is not None:
            lag.add(behind, f'{labels},partition="{index}"')


def transactions(node_coordinators: "NodeCoordinators", clock: Clock) -> Collector:
    def collect(out: Exposition) -> Iterator[None]:
        coordinators = node_coordinators.loaded_transactions
        now = out.gauge("mainstem_transactions_open", "Transactions that have begun and not ended.")
        age = out.gauge(
            "mainstem_transaction_oldest_age_seconds",
            "For how long the oldest of them is open; 0 without any.",
        )
        ended = out.counter(
            "mainstem_transactions_ended_total", "Transactions ended since this node leads them."
        )
        yield
        if coordinators is None:
            now.add(0)
            age.add(0)
            return
        counts = coordinators.counts()
        now.add(counts.open)
        since_ms = counts.oldest_started_ms
        age.add(0 if since_ms is None else max(0, clock.now_ms() - since_ms) / 1000)
        ended.add(counts.committed, 'outcome="committed"')
        ended.add(counts.aborted, 'outcome="aborted"')

    return collect
