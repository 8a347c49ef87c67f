"""What several broker settings must agree on, beyond what each one's own declaration says.

Each rule is Kafka's; a broken one raises ConfigError. This file must never look at where a value came from.
"""

from collections.abc import Callable, Iterator

from mainstem.config.broker_config import BrokerConfig
from mainstem.config.definition import ConfigError
from mainstem.config.quorum import quorum_settings

_KINDS_OF_GROUPS = ("consumer", "share", "streams")
# The first must not be greater than the second.
_ORDERED = (
    ("log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"),
    ("replica.fetch.wait.max.ms", "replica.lag.time.max.ms"),
    ("group.min.session.timeout.ms", "group.max.session.timeout.ms"),
    ("group.share.min.record.lock.duration.ms", "group.share.max.record.lock.duration.ms"),
    ("group.share.min.delivery.count.limit", "group.share.max.delivery.count.limit"),
    *(
        (f"group.{kind}.{low}{name}", f"group.{kind}.{high}{name}")
        for kind in _KINDS_OF_GROUPS
        for name in ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms")
        for low, high in (("min.", "max."), ("min.", ""), ("", "max."))
    ),
)
_DEDUPE_BYTES_PER_THREAD = 1 << 20
# Kafka also loads classes; these are the two that it brings along.
_ASSIGNORS = ("uniform", "range")


def check_broker_rules(cfg: BrokerConfig) -> None:
    """Raise ConfigError for the first rule that the settings break."""
    for error in broken_rules(cfg):
        raise error


def broken_rules(cfg: BrokerConfig) -> Iterator[ConfigError]:
    """What the settings contradict each other in."""
    for rule in _RULES:
        try:
            rule(cfg)
        except ConfigError as error:
            yield error
    for low, high in _ORDERED:
        if cfg.get(low) > cfg.get(high):
            yield ConfigError(f"{low} ({cfg.get(low)}) is greater than {high} ({cfg.get(high)})", low, high)


def per_ip_overrides(cfg: BrokerConfig) -> dict[str, int]:
    """max.connections.per.ip.overrides as a limit for each host."""
    setting = "max.connections.per.ip.overrides"
    limits: dict[str, int] = {}
    for entry in filter(None, (part.strip() for part in cfg.get(setting).split(","))):
        host, _, count = entry.rpartition(":")
        if not host or not (count.isascii() and count.isdigit()):
            raise ConfigError(f'{setting}: "{entry}" is not of the form host:count', setting)
        limits[host.strip("[]")] = int(count)
    return limits


def _one_id(cfg: BrokerConfig) -> None:
    node_id, broker_id = cfg.get("node.id"), cfg.get("broker.id")
    if node_id != broker_id:
        raise ConfigError(f"node.id ({node_id}) and broker.id ({broker_id}) must be the same", "node.id")


def _controllers_are_known(cfg: BrokerConfig) -> None:
    quorum = quorum_settings(cfg)
    if not (quorum.is_controller or quorum.voters or quorum.bootstrap_servers):
        raise ConfigError(
            "process.roles: this node is only a broker, and nothing says where its controllers are; give"
            " controller.quorum.bootstrap.servers or controller.quorum.voters",
            "process.roles",
            "controller.quorum.bootstrap.servers",
            "controller.quorum.voters",
        )
    votes = quorum.node_id in quorum.voters
    if quorum.voters and votes is not quorum.is_controller:
        raise ConfigError(
            f"controller.quorum.voters: it names node {quorum.node_id}, which is only a broker"
            if votes
            else f"controller.quorum.voters: it does not name this controller, node {quorum.node_id}",
            "controller.quorum.voters",
            "node.id",
        )


def _retention_is_not_zero(cfg: BrokerConfig) -> None:
    for name in ("log.retention.ms", "log.retention.minutes", "log.retention.hours"):
        if cfg.get(name) == 0:
            raise ConfigError(f"{name}: 0 is out of range; allowed: 1 or more, or -1 for no limit", name)


def _roll_times(cfg: BrokerConfig) -> None:
    roll_ms, jitter_ms = cfg.get("log.roll.ms"), cfg.get("log.roll.jitter.ms")
    if roll_ms is not None and roll_ms < 1:
        raise ConfigError(f"log.roll.ms: {roll_ms} is out of range; allowed: 1 or more", "log.roll.ms")
    if jitter_ms is not None and jitter_ms < 0:
        raise ConfigError(
            f"log.roll.jitter.ms: {jitter_ms} is out of range; allowed: 0 or more", "log.roll.jitter.ms"
        )


def _cordoned_are_log_dirs(cfg: BrokerConfig) -> None:
    given = cfg.get("cordoned.log.dirs")
    strange = [path for path in given if path not in cfg.log_dirs() and given != ("*",)]
    if strange:
        raise ConfigError(
            f'cordoned.log.dirs: "{strange[0]}" is not one of log.dirs; allowed: * or some of log.dirs',
            "cordoned.log.dirs",
        )


def _queue_holds_a_request(cfg: BrokerConfig) -> None:
    queued, largest = cfg.get("queued.max.request.bytes"), cfg.get("socket.request.max.bytes")
    if 0 < queued < largest:
        raise ConfigError(
            f"queued.max.request.bytes ({queued}) is less than socket.request.max.bytes ({largest}),"
            " so the largest request would never be read",
            "queued.max.request.bytes",
        )


def _somebody_can_connect(cfg: BrokerConfig) -> None:
    """Otherwise nobody could ever take the setting back."""
    if cfg.get("max.connections") == 0:
        raise ConfigError("max.connections: 0 lets nobody in; allowed: 1 or more", "max.connections")
    overrides = per_ip_overrides(cfg)
    if cfg.get("max.connections.per.ip") == 0 and not overrides:
        raise ConfigError(
            "max.connections.per.ip: 0 lets nobody in unless max.connections.per.ip.overrides names somebody",
            "max.connections.per.ip",
            "max.connections.per.ip.overrides",
        )


def _cleaners_have_memory(cfg: BrokerConfig) -> None:
    """Kafka divides by the threads and so cannot do with none; here that switches compaction off."""
    name = "log.cleaner.dedupe.buffer.size"
    size, threads = cfg.get(name), cfg.get("log.cleaner.threads")
    if size // max(1, threads) <= _DEDUPE_BYTES_PER_THREAD:
        raise ConfigError(
            f"{name}: {size} is out of range; allowed: more than {_DEDUPE_BYTES_PER_THREAD} for each of "
            f"log.cleaner.threads ({threads})",
            name,
            "log.cleaner.threads",
        )


def _sessions_outlast_heartbeats(cfg: BrokerConfig) -> None:
    for kind in _KINDS_OF_GROUPS:
        heartbeat, session = f"group.{kind}.heartbeat.interval.ms", f"group.{kind}.session.timeout.ms"
        if cfg.get(heartbeat) >= cfg.get(session):
            raise ConfigError(
                f"{heartbeat} ({cfg.get(heartbeat)}) is not less than {session} ({cfg.get(session)})",
                heartbeat,
                session,
            )


def _classic_groups_are_served(cfg: BrokerConfig) -> None:
    name = "group.coordinator.rebalance.protocols"
    if "classic" not in cfg.get(name):
        raise ConfigError(f"{name}: classic groups cannot be switched off; add classic to the list", name)


def _assignors_are_known(cfg: BrokerConfig) -> None:
    for name in cfg.get("group.consumer.assignors"):
        if name not in _ASSIGNORS:
            raise ConfigError(
                f'group.consumer.assignors: there is no assignor "{name}"; allowed: {", ".join(_ASSIGNORS)}',
                "group.consumer.assignors",
            )


_RULES: tuple[Callable[[BrokerConfig], None], ...] = (
    _one_id,
    _controllers_are_known,
    _retention_is_not_zero,
    _roll_times,
    _cordoned_are_log_dirs,
    _queue_holds_a_request,
    _somebody_can_connect,
    _cleaners_have_memory,
    _sessions_outlast_heartbeats,
    _classic_groups_are_served,
    _assignors_are_known,
)
