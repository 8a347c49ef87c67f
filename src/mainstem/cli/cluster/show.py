"""`mainstem cluster status` for a person."""

from __future__ import annotations

from mainstem.cli.cluster.status import METADATA_VERSION, NOBODY, ClusterStatus, Follower
from mainstem.cli.cluster.troubles import troubles
from mainstem.cli.command_name import typeable
from mainstem.cli.output.rendering import print_table
from mainstem.cli.output.units import duration_text
from mainstem.cluster.releases import release_name


def show(status: ClusterStatus) -> None:
    """Nodes, then the quorum, then partitions, then what is wrong."""
    level = status.features.get(METADATA_VERSION)
    title = f"cluster {status.cluster_id}" + (f"  {METADATA_VERSION} {_release(level)}" if level else "")
    rows = [
        (
            node.node_id,
            " and ".join(node.roles),
            node.address or "-",
            node.rack or "-",
            "-" if node.metadata_version is None else _release(node.metadata_version),
            f"{node.state}, leads the quorum" if node.node_id == status.leader else node.state,
        )
        for node in status.nodes
    ]
    print_table(("node", "roles", "address", "rack", "up to", "state"), rows, title=title)
    print()
    _show_quorum(status)
    print()
    print(
        f"partitions: {status.partitions}, {len(status.offline)} offline, "
        f"{len(status.under_min_isr)} under min ISR, {len(status.under_replicated)} under-replicated"
    )
    found = list(troubles(status))
    for trouble in found:
        print(f"! {trouble.what}")
        print(f"  -> {typeable(trouble.what_to_do)}")
    if not found:
        print("all is well")


def _show_quorum(status: ClusterStatus) -> None:
    if status.leader == NOBODY:
        print("quorum: not known")
        return
    title = (
        f"quorum: node {status.leader} leads in epoch {status.epoch}, committed to {status.high_watermark}"
    )
    rows = [
        (row.node_id, row.role, row.log_end_offset, row.lag, _behind(row, status)) for row in status.followers
    ]
    print_table(("node", "role", "log end", "lag", "behind"), rows, title=title)


def _release(level: int) -> str:
    return f"{release_name(level)} ({level})"


def _behind(row: Follower, status: ClusterStatus) -> str:
    if row.node_id == status.leader:
        return "leader"
    return duration_text(None if row.behind_ms is None else row.behind_ms / 1000)
