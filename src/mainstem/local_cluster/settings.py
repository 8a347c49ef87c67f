"""What each node of a cluster on one machine is told, as settings with Kafka's names. It has no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

VOTERS_MAX = 3
COPIES_MAX = 3
# Whose value is the place of one node in the cluster, or follows from it.
PLACED = frozenset(
    {
        "advertised.listeners",
        "broker.id",
        "controller.listener.names",
        "controller.quorum.bootstrap.servers",
        "controller.quorum.voters",
        "inter.broker.listener.name",
        "listener.security.protocol.map",
        "listeners",
        "log.dir",
        "log.dirs",
        "metadata.log.dir",
        "node.id",
        "process.roles",
    }
)
_ANY_HOSTS = frozenset({"", "0.0.0.0", "::"})
_CLIENTS, _CONTROLLERS = "PLAINTEXT", "CONTROLLER"


def voters_of(nodes: int) -> tuple[int, ...]:
    """One voter below three nodes, for two would lose their majority with either of them; otherwise three."""
    return tuple(range(1, VOTERS_MAX + 1)) if nodes >= VOTERS_MAX else (1,)


def copies_of(nodes: int) -> dict[str, str]:
    """How many copies there are of everything, and how many of them must have a record."""
    copies = str(min(COPIES_MAX, nodes))
    needed = "2" if nodes >= COPIES_MAX else "1"
    return {
        "default.replication.factor": copies,
        "min.insync.replicas": needed,
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": needed,
        "share.coordinator.state.topic.replication.factor": copies,
        "share.coordinator.state.topic.min.isr": needed,
    }


@dataclass(frozen=True)
class Plan:
    """The nodes of a cluster by their ids: where each listens for clients, and the voters for each other."""

    host: str
    rack: str
    ports: Mapping[int, int]
    controller_ports: Mapping[int, int]
    directories: Mapping[int, str]

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(self.address(node_id) for node_id in self.ports)

    def address(self, node_id: int) -> str:
        """Where clients find a node."""
        return f"{_in_url(self._dialled)}:{self.ports[node_id]}"

    def roles(self, node_id: int) -> tuple[str, ...]:
        return ("broker", "controller") if node_id in self.controller_ports else ("broker",)

    def settings(self, node_id: int) -> dict[str, str]:
        """Everything that one node must be told to find its place."""
        listeners = {_CLIENTS: f"{_in_url(self.host)}:{self.ports[node_id]}"}
        if node_id in self.controller_ports:
            listeners[_CONTROLLERS] = f"{_in_url(self.host)}:{self.controller_ports[node_id]}"
        voters = (f"{voter}@{_in_url(self._dialled)}:{port}" for voter, port in self.controller_ports.items())
        return {
            "process.roles": ",".join(self.roles(node_id)),
            "node.id": str(node_id),
            "listeners": ",".join(f"{name}://{address}" for name, address in listeners.items()),
            "advertised.listeners": ",".join(
                f"{name}://{_in_url(self._dialled)}:{address.rpartition(':')[2]}"
                for name, address in listeners.items()
            ),
            "inter.broker.listener.name": _CLIENTS,
            "controller.listener.names": _CONTROLLERS,
            "listener.security.protocol.map": f"{_CLIENTS}:PLAINTEXT,{_CONTROLLERS}:PLAINTEXT",
            "controller.quorum.voters": ",".join(voters),
            "log.dirs": self.directories[node_id],
            "broker.rack": self.rack,
            **copies_of(len(self.ports)),
        }

    @property
    def _dialled(self) -> str:
        """How nodes and clients on this machine reach a node that listens on every interface."""
        return "localhost" if self.host in _ANY_HOSTS else self.host


def properties_text(settings: Mapping[str, str]) -> str:
    """The settings as a server.properties file has them."""
    return "".join(f"{name}={_escaped(value)}\n" for name, value in settings.items())


def _escaped(value: str) -> str:
    text = value.replace("\\", "\\\\").replace("\n", "\\n")
    return f"\\{text}" if text.startswith((" ", "\t", "\f")) else text


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
