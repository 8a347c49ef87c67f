"""How a directory is known for that of a cluster. It imports nothing, for every start of a broker looks."""

from __future__ import annotations

import os

FILE_NAME = "cluster.json"


def holds_a_cluster(directory: str) -> bool:
    """Whether the nodes of a cluster have their data in here."""
    return os.path.exists(os.path.join(directory, FILE_NAME))


def cluster_of(directory: str) -> str | None:
    """The directory of the cluster in which this one is the data of a node."""
    parent, name = os.path.split(os.path.abspath(directory))
    prefix, _, number = name.partition("-")
    return parent if prefix == "node" and number.isdecimal() and holds_a_cluster(parent) else None
