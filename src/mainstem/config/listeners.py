"""The addresses a node listens on and tells its clients, worked out from the listener settings.

It only reads settings: nothing is bound or looked up here, so the host name of the machine is passed in.
"""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from mainstem.config.broker_config import BrokerConfig
from mainstem.config.definition import ConfigError, ConfigSource

# In the order of the numbers that they have between nodes.
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_ANY_HOSTS = frozenset(("", "0.0.0.0", "::"))
_MAX_PORT = 65535


class Listener(Struct, frozen=True):
    """One listener. An empty `host` is every interface; `advertised_port` 0 is the port that gets bound."""

    name: str
    host: str
    port: int
    protocol: str
    advertised_host: str
    advertised_port: int
    is_controller: bool


class NamedListener(Protocol):
    """What is known of a listener before and after it is bound."""

    @property
    def name(self) -> str: ...

    @property
    def is_controller(self) -> bool: ...


class _Endpoint(Struct, frozen=True):
    name: str
    host: str
    port: int


def parse_listeners(cfg: BrokerConfig, hostname: str = "localhost") -> list[Listener]:
    """The node's listeners in their order; `hostname` is told to clients where a listener has no host."""
    endpoints = _endpoints("listeners", cfg.get("listeners"))
    advertised = {
        e.name: e for e in _endpoints("advertised.listeners", cfg.get("advertised.listeners") or ())
    }
    names = {endpoint.name for endpoint in endpoints}
    for name, endpoint in advertised.items():
        if name not in names:
            raise ConfigError(
                f"advertised.listeners: {name} is not one of the listeners", "advertised.listeners"
            )
        if not endpoint.host or endpoint.host in _ANY_HOSTS:
            raise ConfigError(
                f"advertised.listeners: {name} needs a host that clients can dial", "advertised.listeners"
            )
    controllers = {name.upper() for name in cfg.get("controller.listener.names")}
    protocols = _protocols(cfg, controllers)
    listeners = [
        _listener(endpoint, advertised.get(endpoint.name), protocols, endpoint.name in controllers, hostname)
        for endpoint in endpoints
    ]
    _check_together(cfg, listeners)
    return listeners


def inter_broker_listener(cfg: BrokerConfig, listeners: Sequence[NamedListener]) -> str:
    """The name of the listener by which brokers speak to each other, of those that serve clients: the one
    that is named; that of the protocol between brokers; or, where no setting fits, the first.
    """
    name = cfg.get("inter.broker.listener.name")
    if name is not None:
        return str(name).upper()
    names = [listener.name for listener in listeners if not listener.is_controller]
    protocol: str = cfg.get("security.inter.broker.protocol")
    return protocol if protocol in names else names[0]


def can_be_joined(cfg: BrokerConfig) -> bool:
    """Whether there can ever be another node in the cluster: the controllers listen, or are elsewhere."""
    controllers = {name.upper() for name in cfg.get("controller.listener.names")}
    listens = any(endpoint.name in controllers for endpoint in _endpoints("listeners", cfg.get("listeners")))
    return listens or "controller" not in cfg.get("process.roles")


def _check_together(cfg: BrokerConfig, listeners: list[Listener]) -> None:
    roles = cfg.get("process.roles")
    serving = {listener.name for listener in listeners if not listener.is_controller}
    if "broker" in roles and not serving:
        raise ConfigError("listeners: there is none that serves clients, only controllers'", "listeners")
    if "broker" not in roles:
        _check_controller_alone(cfg, listeners)
    elif "controller" not in roles and len(serving) < len(listeners):
        raise ConfigError(
            "listeners: one is a controller's (controller.listener.names), and process.roles says that this"
            " node is only a broker; leave it out",
            "listeners",
        )
    if (
        "controller" in roles
        and len(cfg.get("controller.quorum.voters")) > 1
        and len(serving) == len(listeners)
    ):
        raise ConfigError(
            "listeners: there is none of controller.listener.names, and controller.quorum.voters names other"
            " controllers, which have to reach this one",
            "listeners",
        )
    inter_broker = cfg.get("inter.broker.listener.name")
    protocol = "security.inter.broker.protocol"
    if inter_broker is not None and cfg.source(protocol) is not ConfigSource.DEFAULT_CONFIG:
        raise ConfigError(
            f"inter.broker.listener.name and {protocol}: only one of the two may be given",
            "inter.broker.listener.name",
            protocol,
        )
    if "broker" in roles and inter_broker is not None and inter_broker.upper() not in serving:
        raise ConfigError(
            f"inter.broker.listener.name: {inter_broker} is not one of the listeners that serve clients",
            "inter.broker.listener.name",
        )
    for listener in listeners:
        if listener.protocol != "PLAINTEXT":
            raise ConfigError(
                f"listeners: {listener.name} asks for {listener.protocol}, which Mainstem does not serve yet;"
                " use PLAINTEXT, on an address that only trusted clients reach",
                "listeners",
            )


def _check_controller_alone(cfg: BrokerConfig, listeners: list[Listener]) -> None:
    for listener in listeners:
        if not listener.is_controller:
            raise ConfigError(
                f"listeners: {listener.name} is not one of controller.listener.names, and process.roles says"
                " that this node is only a controller; name it there, or leave it out",
                "listeners",
            )


def _listener(
    endpoint: _Endpoint,
    advertised: _Endpoint | None,
    protocols: dict[str, str],
    is_controller: bool,
    hostname: str,
) -> Listener:
    protocol = protocols.get(endpoint.name)
    if protocol is None:
        raise ConfigError(
            f"listeners: {endpoint.name} has no entry in listener.security.protocol.map;"
            f" add {endpoint.name}:PLAINTEXT to it",
            "listeners",
        )
    told = advertised or endpoint
    return Listener(
        name=endpoint.name,
        host=endpoint.host,
        port=endpoint.port,
        protocol=protocol,
        advertised_host=hostname if told.host in _ANY_HOSTS else told.host,
        advertised_port=told.port,
        is_controller=is_controller,
    )


def _endpoints(setting: str, texts: tuple[str, ...]) -> list[_Endpoint]:
    endpoints = [_endpoint(setting, text) for text in texts]
    names: set[str] = set()
    addresses: set[tuple[str, int]] = set()
    for endpoint in endpoints:
        if endpoint.name in names:
            raise ConfigError(f"{setting}: the name {endpoint.name} is there twice", setting)
        address = (endpoint.host, endpoint.port)
        if setting == "listeners" and endpoint.port != 0 and address in addresses:
            raise ConfigError(f"{setting}: port {endpoint.port} is there twice on one host", setting)
        names.add(endpoint.name)
        addresses.add(address)
    return endpoints


def _endpoint(setting: str, text: str) -> _Endpoint:
    """`NAME://host:port`, the host in brackets when it is an IPv6 address."""
    name, separator, address = text.partition("://")
    host, colon, port_text = address.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not (name and separator and colon and port_text.isascii() and port_text.isdigit()) or "/" in host:
        raise ConfigError(f'{setting}: "{text}" is not of the form NAME://host:port', setting)
    port = int(port_text)
    if port > _MAX_PORT:
        raise ConfigError(f"{setting}: port {port_text} is out of range; allowed: 0 to {_MAX_PORT}", setting)
    return _Endpoint(name.strip().upper(), host, port)


def _protocols(cfg: BrokerConfig, controllers: set[str]) -> dict[str, str]:
    """Listener name to protocol; a controller's listener needs no entry while the map is the default one."""
    setting = "listener.security.protocol.map"
    protocols: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in cfg.get(setting).split(","))):
        name, _, protocol = (part.strip().upper() for part in entry.rpartition(":"))
        if not name or protocol not in PROTOCOLS:
            raise ConfigError(f'{setting}: "{entry}" is not NAME:{"|".join(PROTOCOLS)}', setting)
        protocols[name] = protocol
    if cfg.source(setting) is ConfigSource.DEFAULT_CONFIG:
        for name in controllers:
            protocols.setdefault(name, "PLAINTEXT")
    return protocols
