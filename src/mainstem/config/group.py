"""A group's own settings: checked with Kafka's meaning and the broker's bounds, and read for use.

The bounds of a group's `consumer.x` are the broker's `group.consumer.min.x` and `group.consumer.max.x`.
"""

from collections.abc import Mapping
from typing import Any

from mainstem.config.broker_config import BrokerConfig
from mainstem.config.definition import ConfigError
from mainstem.config.tables import BROKER_SETTINGS, GROUP_SETTINGS
from mainstem.nearest import did_you_mean

# The one bound whose name does not follow from that of the setting.
_HIGHEST = {"streams.num.standby.replicas": "group.streams.max.standby.replicas"}


def validate_group_configs(overrides: Mapping[str, str], broker_config: BrokerConfig) -> None:
    """Refuse what Kafka refuses (INVALID_CONFIG): unknown names, bad values, what is out of bounds."""
    values: dict[str, Any] = {}
    for name, text in overrides.items():
        if name not in GROUP_SETTINGS:
            raise ConfigError(f"{name} is not a group setting{did_you_mean(name, GROUP_SETTINGS)}", name)
        value = values[name] = GROUP_SETTINGS[name].parse(text)
        if _within_bounds(name, value, broker_config) != value:
            low, high = _bounds(name, broker_config)
            raise ConfigError(
                f"{name}: {value} is out of the broker's bounds; allowed: {low or 0} to {high}", name
            )
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        session_ms, heartbeat_ms = (
            values.get(name, broker_config.get(f"group.{name}")) for name in (session, heartbeat)
        )
        if session_ms <= heartbeat_ms:
            raise ConfigError(
                f"{session} ({session_ms}) must be greater than {heartbeat} ({heartbeat_ms})", session
            )


def group_values(overrides: Mapping[str, str], broker_config: BrokerConfig) -> dict[str, Any]:
    """What the group was given, typed. Where the broker's bounds have changed since, the bound holds."""
    values: dict[str, Any] = {}
    for name, text in overrides.items():
        try:
            if name in GROUP_SETTINGS:
                value = GROUP_SETTINGS[name].parse(text)
                values[name] = _within_bounds(name, value, broker_config)
        except ConfigError:
            continue  # written by a broker that knows other values: as if it were not there
    return values


def _within_bounds(name: str, value: Any, broker_config: BrokerConfig) -> Any:
    low, high = _bounds(name, broker_config)
    if low is not None:
        value = max(low, value)
    return value if high is None else min(high, value)


def _bounds(name: str, broker_config: BrokerConfig) -> tuple[int | None, int | None]:
    kind, _, rest = name.partition(".")
    lowest = f"group.{kind}.min.{rest}"
    highest = _HIGHEST.get(name, f"group.{kind}.max.{rest}")
    return (
        broker_config.get(lowest) if lowest in BROKER_SETTINGS else None,
        broker_config.get(highest) if highest in BROKER_SETTINGS else None,
    )
