"""What is wrong with a cluster, in a line each, with what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mainstem.cli.cluster.status import (
    FENCED,
    LAGGING,
    METADATA_VERSION,
    NO_ANSWER,
    NOBODY,
    SILENT,
    UP,
    ClusterStatus,
    Follower,
)
from mainstem.cli.clusters.partition_health import PartitionHealth
from mainstem.cli.output.units import size_text

_NAMED_MAX = 3
# Less than this, or than a twentieth of a small disk, is no room: the next segment fills it.
_ROOM_MIN_BYTES = 64 * 1024 * 1024
_ROOM_MIN_SHARE = 20


class Trouble(NamedTuple):
    """What is wrong, and what to do."""

    what: str
    what_to_do: str


def troubles(status: ClusterStatus) -> Iterator[Trouble]:
    """The worst first."""
    yield from _quorum(status)
    yield from _partitions(status)
    yield from _disks(status)
    yield from _brokers(status)
    if status.elsewhere_led:
        yield Trouble(
            f"{_count(status.elsewhere_led, 'partition')} not led by the first of its replicas",
            "nothing is lost; `mainstem cluster elect-leaders --election-type preferred "
            "--all-topic-partitions` spreads the load again",
        )
    yield from _versions(status)


def _quorum(status: ClusterStatus) -> Iterator[Trouble]:
    if status.leader == NOBODY:
        yield _no_leader(status)
    voters = [follower for follower in status.followers if follower.role == "voter"]
    states = {node.node_id: node.state for node in status.nodes}
    silent = [
        voter for voter in voters if voter.state == SILENT or states.get(voter.node_id) in (SILENT, FENCED)
    ]
    if silent:
        ids = sorted(voter.node_id for voter in silent)
        left = len(voters) - len(silent) - (len(voters) // 2 + 1)
        risk = (
            f"{_count(left, 'more loss', 'more losses')} can be borne"
            if left > 0
            else "one more loss stops the quorum"
        )
        replaced = [voter for voter in silent if _has_new_directory(voter, status)]
        gone = sorted({*ids} - {voter.node_id for voter in replaced})
        steps = [f"start {_nodes_text(gone)}, and look at the log there"] if gone else []
        steps += [
            f"node {voter.node_id} has a new directory: `kafka-metadata-quorum remove-controller "
            f"--controller-id {voter.node_id} --controller-directory-id {voter.directory_id}`, then "
            "add-controller there"
            for voter in replaced
        ]
        yield Trouble(
            f"{_nodes_text(ids)} of the quorum's {len(voters)} voters {_are(ids)} silent: {risk}",
            "; ".join(steps),
        )
    lagging = [node_id for node_id, state in states.items() if state == LAGGING]
    if lagging:
        yield Trouble(
            f"{_nodes_text(lagging)} {_are(lagging)} behind with the cluster's metadata",
            "it catches up by itself; if not, look at its disk, its network and its log",
        )


def _no_leader(status: ClusterStatus) -> Trouble:
    """Who votes is not known either, so that all nodes are counted."""
    if status.quorum_refusal is not None:
        return Trouble(
            f"the quorum cannot be seen: {status.quorum_refusal}",
            "ask for the right to describe the cluster, or ask another broker with -b HOST:PORT",
        )
    missing = [node.node_id for node in status.nodes if node.state in (NO_ANSWER, FENCED)]
    answering = len(status.nodes) - len(missing)
    return Trouble(
        f"nobody leads the quorum: {answering} of {_count(len(status.nodes), 'node')} "
        f"{'answers' if answering == 1 else 'answer'}",
        f"start {_nodes_text(missing)}, and look at the log there; controllers that are no brokers may be "
        "missing as well"
        if missing
        else "start the controllers, and look at the log there",
    )


def _has_new_directory(voter: Follower, status: ClusterStatus) -> bool:
    """Whether the node of this voter is there, but with a directory that does not vote."""
    return any(
        other.role == "observer"
        and other.state == UP
        and (other.node_id, other.directory_id != voter.directory_id) == (voter.node_id, True)
        for other in status.followers
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
    fenced = [node.node_id for node in status.nodes if node.state == FENCED and node.node_id not in voters]
    for node_id in fenced:
        yield Trouble(
            f"broker {node_id} is fenced: the controller does not hear it",
            f"start it; if it will never come back, `mainstem cluster unregister --id {node_id}`",
        )
    hanging = [node.node_id for node in status.nodes if node.state == NO_ANSWER]
    if hanging and (status.leader != NOBODY or status.quorum_refusal is not None):
        yield Trouble(
            f"{_nodes_text(hanging)} {'do' if len(hanging) > 1 else 'does'} not answer",
            f"see that {_nodes_text(hanging)} can be reached from here; stop and start again what hangs",
        )


def _disks(status: ClusterStatus) -> Iterator[Trouble]:
    for it in status.directories:
        room_min = min(_ROOM_MIN_BYTES, it.total_bytes // _ROOM_MIN_SHARE)
        if it.is_lost:
            yield Trouble(
                f"node {it.node_id} has lost log directory {it.path}",
                f"look at that disk and at the log of node {it.node_id}, and start it again; its copies then "
                "come from other brokers",
            )
        elif 0 <= it.usable_bytes < room_min:
            yield Trouble(
                f"no room left on node {it.node_id}: {size_text(it.usable_bytes)} in {it.path}",
                "make room on that disk, give topics less to keep with retention.ms or retention.bytes, or "
                "move copies away with `mainstem cluster reassign`",
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
