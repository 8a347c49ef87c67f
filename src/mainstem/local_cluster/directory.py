"""The directory of a cluster on one machine: `DIR/node-i` is the data of node i, `cluster.json` says which
nodes there are.

A node's data is formatted once in its life. Where it is missing later, its disk was lost: an empty node would
come back as if it had never promised anything, so it is replaced on purpose and never by chance.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from mainstem.config import ConfigError, load_properties
from mainstem.local_cluster.names import FILE_NAME
from mainstem.local_cluster.ports import free_ports, is_free
from mainstem.local_cluster.settings import Plan, properties_text, voters_of
from mainstem.protocol.uuids import random_uuid, uuid_to_text

_META_PROPERTIES = "meta.properties"
_VERSION = 1
_NODES_MAX, _PORT_MAX = 1000, 65535
_RESTORE = "restore it from a copy, or start the nodes from their own .properties files"
_LOCK_WAIT_S = 10.0
_LOCK_SAY_S = 1.0
_LOCK_PAUSE_S = 0.05


class ClusterDirectoryError(Exception):
    """The directory cannot be used; behind the semicolon the message says what to do."""


@dataclass
class Remembered:
    """What `cluster.json` holds. Nodes in `formatted` have been up, so they may have promised something."""

    cluster_id: str
    nodes: int = 0
    controller_ports: dict[int, int] = field(default_factory=dict)
    formatted: list[int] = field(default_factory=list)


class ClusterDirectory:
    """One such directory, locked as long as somebody runs its nodes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: int | None = None
        self._remembered: Remembered | None = None

    @property
    def cluster_id(self) -> str:
        assert self._remembered is not None
        return self._remembered.cluster_id

    @property
    def lock_fd(self) -> int:
        """Handed on to the nodes: the directory stays locked until the last of them has ended."""
        assert self._lock is not None
        return self._lock

    def data(self, node_id: int) -> Path:
        return self.path / f"node-{node_id}"

    def properties(self, node_id: int) -> Path:
        """The node's settings in a file, for whoever wants to start or format it by hand."""
        return self.path / f"node-{node_id}.properties"

    def log(self, node_id: int) -> Path:
        """What the node says."""
        return self.path / f"node-{node_id}.log"

    def open(self, nodes: int | None, on_waiting: Callable[[], None] | None = None) -> int:
        """Lock the directory and read what it remembers; returns the number of nodes that it will have.
        `on_waiting` is told once when somebody else holds the lock for long.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        if (self.path / _META_PROPERTIES).exists():
            raise ClusterDirectoryError(
                f"{self.path} holds the data of a single broker; "
                "give a cluster a directory of its own with --data"
            )
        self._take_lock(on_waiting)
        try:
            return self._count(nodes)
        except BaseException:
            self.close()
            raise

    def _count(self, nodes: int | None) -> int:
        known = self._remembered = self._read() or Remembered(uuid_to_text(random_uuid()))
        count = nodes if nodes is not None else known.nodes
        left_out = [node for node in range(count + 1, known.nodes + 1) if self.data(node).exists()]
        if left_out:
            raise ClusterDirectoryError(
                f"{self.path} holds a cluster of {known.nodes} nodes, node {left_out[0]} would be left out; "
                f"use --nodes {known.nodes}, or take its partitions and then its directory away"
            )
        return count

    def close(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def plan(self, host: str, first_port: int, nodes: int, rack: str) -> Plan:
        """Where each node listens. Controllers keep their ports, unless somebody else has taken one."""
        known = self._remembered
        assert known is not None
        if first_port:
            ports = list(range(first_port, first_port + nodes))
        else:
            ports = free_ports(host, nodes, known.controller_ports.values())
        voters = tuple(known.controller_ports) or voters_of(nodes)
        kept = {
            voter: port
            for voter, port in known.controller_ports.items()
            if port not in ports and is_free(host, port)
        }
        missing = [voter for voter in voters if voter not in kept]
        fresh = free_ports(host, len(missing), {*ports, *kept.values()})
        kept |= dict(zip(missing, fresh, strict=True))
        known.controller_ports = {voter: kept[voter] for voter in voters}
        known.nodes = nodes
        ids = range(1, nodes + 1)
        return Plan(
            host,
            rack,
            dict(zip(ids, ports, strict=True)),
            known.controller_ports,
            {node_id: str(self.data(node_id)) for node_id in ids},
        )

    def write_settings(self, node_id: int, settings: dict[str, str]) -> None:
        self.properties(node_id).write_text(properties_text(settings))

    def to_format(self) -> list[int]:
        """The nodes that are new here. Raises when one has lost its data."""
        known = self._remembered
        assert known is not None
        missing = [node for node in range(1, known.nodes + 1) if not self.is_formatted(node)]
        lost = [node for node in missing if self.has_lost_data(node)]
        if lost:
            raise ClusterDirectoryError(
                f"node {lost[0]} had data in {self.data(lost[0])}, and it is gone. If its disk is lost, "
                "the node is formatted on purpose, and takes its partitions from the others; "
                f"mainstem storage format --cluster-id {known.cluster_id} --config {self.properties(lost[0])}"
            )
        return missing

    def is_formatted(self, node_id: int) -> bool:
        return (self.data(node_id) / _META_PROPERTIES).exists()

    def has_lost_data(self, node_id: int) -> bool:
        """Whether the node has been up, and what it promised then is gone."""
        assert self._remembered is not None
        return node_id in self._remembered.formatted and not self.is_formatted(node_id)

    def has_been_up(self, node_id: int) -> None:
        """From now on this node's data may be missed."""
        known = self._remembered
        assert known is not None
        if node_id not in known.formatted:
            known.formatted.append(node_id)
            self.remember()

    def remember(self) -> None:
        """Write down who is there."""
        known = self._remembered
        assert known is not None
        text = json.dumps(
            {
                "version": _VERSION,
                "cluster.id": known.cluster_id,
                "nodes": known.nodes,
                "controller.ports": known.controller_ports,
                "formatted": sorted(known.formatted),
            },
            indent=2,
        )
        unfinished = self.path / f"{FILE_NAME}.tmp"
        with unfinished.open("w") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(self.path / FILE_NAME)

    def _read(self) -> Remembered | None:
        path = self.path / FILE_NAME
        try:
            known = _remembered(json.loads(path.read_text()))
        except FileNotFoundError:
            strays = sorted(self.path.glob(f"node-*/{_META_PROPERTIES}"))
            if strays:
                raise ClusterDirectoryError(
                    f"{strays[0].parent} has data, but {path} is not there, which says whose it is; "
                    "restore the file, or start the nodes from their own .properties files"
                ) from None
            return None
        except ValueError as error:
            raise ClusterDirectoryError(f"{path} cannot be understood ({error}); {_RESTORE}") from None
        for meta in sorted(self.path.glob(f"node-*/{_META_PROPERTIES}")):
            cluster_id = _cluster_id_of(meta)
            if cluster_id not in (None, known.cluster_id):
                raise ClusterDirectoryError(
                    f"{path} is of cluster {known.cluster_id}, and {meta.parent} holds data of {cluster_id}; "
                    f"{_RESTORE}"
                )
        return known

    def _take_lock(self, on_waiting: Callable[[], None] | None) -> None:
        """Nodes of a supervisor that was killed still end in order: wait for them."""
        self._lock = os.open(self.path / ".cluster.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        began = time.monotonic()
        while True:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                waited_s = time.monotonic() - began
                if waited_s > _LOCK_WAIT_S:
                    self.close()
                    raise ClusterDirectoryError(
                        f"the cluster in {self.path} is running already; stop it, or choose another --data"
                    ) from None
                if on_waiting is not None and waited_s > _LOCK_SAY_S:
                    on_waiting()
                    on_waiting = None
                time.sleep(_LOCK_PAUSE_S)


def _remembered(found: object) -> Remembered:
    """What the file holds; ValueError for what was not written here."""
    if not isinstance(found, dict):
        raise ValueError("it is no object")
    version = found.get("version")
    if version != _VERSION:
        raise ValueError(f"its version is {version!r}, not {_VERSION}")
    cluster_id = found.get("cluster.id")
    if not isinstance(cluster_id, str) or not cluster_id or cluster_id != cluster_id.strip():
        raise ValueError(f"its cluster.id is {cluster_id!r}")
    ports = found.get("controller.ports")
    if not isinstance(ports, dict) or not ports or not all(node.isdecimal() for node in ports):
        raise ValueError(f"its controller.ports are {ports!r}")
    formatted = found.get("formatted")
    if not isinstance(formatted, list):
        raise ValueError(f"its formatted is {formatted!r}")
    return Remembered(
        cluster_id,
        _number("nodes", found.get("nodes"), _NODES_MAX),
        {
            _number("controller.ports", int(node), _NODES_MAX): _number("controller.ports", port, _PORT_MAX)
            for node, port in ports.items()
        },
        [_number("formatted", node, _NODES_MAX) for node in formatted],
    )


def _number(name: str, found: object, highest: int) -> int:
    if type(found) is not int or not 1 <= found <= highest:
        raise ValueError(f"its {name} has {found!r}, not a number from 1 to {highest}")
    return found


def _cluster_id_of(meta: Path) -> str | None:
    """None where the node has to say itself what is wrong with the file."""
    try:
        return load_properties(meta).get("cluster.id")
    except ConfigError:
        return None
