"""What is wrong with a cluster, in a line each, with what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mainstem.cli.cluster.status import METADATA_VERSION, ClusterStatus
from mainstem.cli.clusters.partition_health import PartitionHealth

_NAMED_MAX = 3


class Trouble(NamedTuple):
    """What is wrong, and what to do."""

    what: str
    what_to_do: str


def troubles(status: ClusterStatus) -> Iterator[Trouble]:
    """The worst first."""
    yield from _quorum(status)
    yield from _partitions(status)
    yield from _brokers(status)
    if status.elsewhere_led:
        yield Trouble(
            f"{_count(status.elsewhere_led, 'partition')} not led by the first of its replicas",
            "nothing is lost; `mainstem cluster elect-leaders --election-type preferred "
            "--all-topic-partitions` spreads the load again",
        )
    yield from _versions(status)


def _quorum(status: ClusterStatus) -> Iterator[Trouble]:
    voters = [follower for follower in status.followers if follower.role == "voter"]
    states = {node.node_id: node.state for node in status.nodes}
    ids = {follower.node_id for follower in voters}
    silent = [
        node.node_id for node in status.nodes if node.node_id in ids and node.state in ("silent", "fenced")
    ]
    if silent:
        left = len(voters) - len(silent) - (len(voters) // 2 + 1)
        risk = (
            f"{_count(left, 'more loss', 'more losses')} can be borne"
            if left > 0
            else "one more loss stops the quorum"
        )
        yield Trouble(
            f"{_nodes_text(silent)} of the quorum's {len(voters)} voters {_are(silent)} silent: {risk}",
            f"start {_nodes_text(silent)}, and look at the log there",
        )
    lagging = [node_id for node_id, state in states.items() if state == "lagging"]
    if lagging:
        yield Trouble(
            f"{_nodes_text(lagging)} {_are(lagging)} behind with the cluster's metadata",
            "it catches up by itself; if not, look at its disk, its network and its log",
        )


def _partitions(status: ClusterStatus) -> Iterator[Trouble]:
    if status.offline:
        holders = sorted({node for part in status.offline for node in part.replicas})
        yield Trouble(
            f"{_count(len(status.offline), 'partition')} without a leader: {_named(status.offline)}",
            f"start {_nodes_text(holders)}; with none of them left, `mainstem cluster elect-leaders "
            "--election-type unclean` takes a copy that may lack records",
        )
    if status.under_min_isr:
        missing = _missing(status.under_min_isr)
        yield Trouble(
            f"{_count(len(status.under_min_isr), 'partition')} with fewer copies in sync than "
            f"min.insync.replicas, so that acks=all is refused: {_named(status.under_min_isr)}",
            f"start {_nodes_text(missing)}" if missing else "add replicas, or lower min.insync.replicas",
        )
    if status.under_replicated:
        missing = _missing(status.under_replicated)
        yield Trouble(
            f"{_count(len(status.under_replicated), 'partition')} with copies that are not in sync: "
            f"{_named(status.under_replicated)}",
            f"see that {_nodes_text(missing)} {_are(missing)} up; the copies then catch up by themselves",
        )


def _brokers(status: ClusterStatus) -> Iterator[Trouble]:
    voters = {follower.node_id for follower in status.followers if follower.role == "voter"}
    fenced = [node.node_id for node in status.nodes if node.state == "fenced" and node.node_id not in voters]
    for node_id in fenced:
        yield Trouble(
            f"broker {node_id} is fenced: the controller does not hear it",
            f"start it; if it will never come back, `mainstem cluster unregister --id {node_id}`",
        )


def _versions(status: ClusterStatus) -> Iterator[Trouble]:
    levels = [node.metadata_version for node in status.nodes if node.metadata_version is not None]
    finalized = status.features.get(METADATA_VERSION)
    if levels and finalized is not None and min(levels) > finalized:
        yield Trouble(
            f"all brokers support {METADATA_VERSION} {min(levels)}, the cluster still runs at {finalized}",
            "`mainstem cluster upgrade --release-version` raises it, when you will not go back",
        )


def _missing(partitions: Sequence[PartitionHealth]) -> list[int]:
    return sorted({node for part in partitions for node in part.missing})


def _named(partitions: Sequence[PartitionHealth]) -> str:
    names = [f"{part.topic}-{part.partition}" for part in partitions]
    more = f" and {len(names) - _NAMED_MAX} more" if len(names) > _NAMED_MAX else ""
    return ", ".join(names[:_NAMED_MAX]) + more


def _nodes_text(node_ids: Sequence[int]) -> str:
    return f"node{'s' if len(node_ids) > 1 else ''} {', '.join(map(str, node_ids))}"


def _are(node_ids: Sequence[int]) -> str:
    return "are" if len(node_ids) > 1 else "is"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or f'{one}s'}"
