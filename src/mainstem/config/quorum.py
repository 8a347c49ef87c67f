"""The voters of the metadata quorum as a node's settings name them, and where to find its controllers.

It only reads settings. What the metadata log says of the voters overrides the settings once it says anything.
"""

from collections.abc import Sequence

from msgspec import Struct

from mainstem.config.broker_config import BrokerConfig
from mainstem.config.definition import ConfigError
from mainstem.config.listeners import Listener

VOTERS = "controller.quorum.voters"
BOOTSTRAP_SERVERS = "controller.quorum.bootstrap.servers"
_MAX_PORT = 65535
_LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1"))
_ANY_HOSTS = frozenset(("", "0.0.0.0", "::"))

Address = tuple[str, int]


class QuorumSettings(Struct, frozen=True):
    """Who votes by configuration, and whom to ask for the leader otherwise."""

    node_id: int
    is_controller: bool
    # controller.quorum.voters: fixed, by node id.
    voters: dict[int, Address]
    bootstrap_servers: tuple[Address, ...]
    # The name of the listener on which controllers are dialed.
    listener: str

    def stands_alone(self, listeners: Sequence[Listener]) -> bool:
        """Whether no setting speaks of another node: then this one is its own quorum. `listeners` are those
        of this node.
        """
        if not self.is_controller or set(self.voters) - {self.node_id}:
            return False
        if self.voters:
            return True
        return all(_is_own(address, listeners) for address in self.bootstrap_servers)


def quorum_settings(config: BrokerConfig) -> QuorumSettings:
    """ConfigError for what has not Kafka's form."""
    node_id: int = config.get("node.id")
    voters: tuple[str, ...] = config.get(VOTERS)
    # Who stands alone may take any port that is free, as its listener does: nobody dials it.
    alone = node_id if len(voters) == 1 else None
    return QuorumSettings(
        node_id,
        "controller" in config.get("process.roles"),
        dict(_voter(text, alone) for text in voters),
        tuple(_address(BOOTSTRAP_SERVERS, text) for text in config.get(BOOTSTRAP_SERVERS)),
        config.get("controller.listener.names")[0].upper(),
    )


def _voter(text: str, alone: int | None) -> tuple[int, Address]:
    node_id, at, address = text.partition("@")
    if not (at and node_id.isascii() and node_id.isdigit()):
        raise ConfigError(f'{VOTERS}: "{text}" is not of the form id@host:port', VOTERS)
    return int(node_id), _address(VOTERS, address, 0 if int(node_id) == alone else 1)


def _address(setting: str, text: str, lowest_port: int = 1) -> Address:
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    is_port = port.isascii() and port.isdigit() and lowest_port <= int(port) <= _MAX_PORT
    if not (host and colon and is_port):
        raise ConfigError(f'{setting}: "{text}" is not of the form host:port', setting)
    return host, int(port)


def _is_own(address: Address, listeners: Sequence[Listener]) -> bool:
    """Whether a listener of this node is meant, as far as its settings tell."""
    host, port = address
    return any(
        listener.is_controller
        and listener.port == port
        and (
            host in (listener.host, listener.advertised_host)
            or (host in _LOOPBACK and (listener.host in _ANY_HOSTS or listener.host in _LOOPBACK))
        )
        for listener in listeners
    )
