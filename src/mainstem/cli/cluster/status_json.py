"""`mainstem cluster status --json`: the facts, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mainstem.cli.cluster.status import ClusterStatus
from mainstem.cli.cluster.troubles import troubles
from mainstem.cli.clusters.partition_health import PartitionHealth


def as_json(status: ClusterStatus) -> dict[str, Any]:
    return status._asdict() | {
        "features": dict(status.features),
        "nodes": [node._asdict() for node in status.nodes],
        "followers": [follower._asdict() for follower in status.followers],
        "offline": _json_of(status.offline),
        "under_min_isr": _json_of(status.under_min_isr),
        "under_replicated": _json_of(status.under_replicated),
        "directories": [directory._asdict() for directory in status.directories],
        "troubles": [trouble._asdict() for trouble in troubles(status)],
    }


def _json_of(partitions: Sequence[PartitionHealth]) -> list[dict[str, Any]]:
    return [part._asdict() for part in partitions]
