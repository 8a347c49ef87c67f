"""How a directory is known for that of a cluster. It imports nothing, for every start of a broker looks."""

from __future__ import annotations

import os

FILE_NAME = "cluster.json"


def holds_a_cluster(directory: str) -> bool:
    """Whether the nodes of a cluster have their data in here."""
    return os.path.exists(os.path.join(directory, FILE_NAME))
