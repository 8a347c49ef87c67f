"""A topic's own settings: checked with Kafka's meaning, and laid over the broker's.

Validation here knows one topic's settings only; whether a caller may set them is decided elsewhere.
"""

from collections.abc import Iterable, Mapping

from mainstem.config.broker_config import BrokerConfig
from mainstem.config.definition import ConfigError, ConfigType, split_list
from mainstem.config.log_config import LogConfig, log_config_with
from mainstem.config.tables import TOPIC_ALIASES, TOPIC_SETTINGS
from mainstem.nearest import did_you_mean


def topic_log_config(broker_config: BrokerConfig, topic_overrides: Mapping[str, str]) -> LogConfig:
    """The settings of a topic's logs; the broker's own object when the topic has no overrides."""
    return log_config_with(broker_config.log_defaults(), topic_overrides)


def canonical_topic_name(name: str) -> str:
    """The real name behind an alias; any other name as it is."""
    return TOPIC_ALIASES.get(name, name)


def validate_topic_configs(overrides: Mapping[str, str], broker_config: BrokerConfig | None = None) -> None:
    """Refuse what Kafka refuses (INVALID_CONFIG): unknown names, bad values, settings that contradict."""
    for given in overrides:
        name = canonical_topic_name(given)
        if name not in TOPIC_SETTINGS:
            raise ConfigError(f"{given} is not a topic setting{did_you_mean(given, TOPIC_SETTINGS)}", given)
    base = LogConfig() if broker_config is None else broker_config.log_defaults()
    config = log_config_with(base, overrides)
    if config.min_compaction_lag_ms > config.max_compaction_lag_ms:
        raise ConfigError(
            f"min.compaction.lag.ms ({config.min_compaction_lag_ms}) is greater than "
            f"max.compaction.lag.ms ({config.max_compaction_lag_ms})",
            "min.compaction.lag.ms",
        )
    if TOPIC_SETTINGS["remote.storage.enable"].parse(overrides.get("remote.storage.enable", "false")):
        raise ConfigError(
            "remote.storage.enable: this broker has no remote storage, so no topic can use it",
            "remote.storage.enable",
        )


def is_list_setting(name: str) -> bool:
    """Whether APPEND and SUBTRACT make sense for this topic setting."""
    setting = TOPIC_SETTINGS.get(canonical_topic_name(name))
    return setting is not None and setting.type is ConfigType.LIST


def append_to_list(current: str | None, items: str) -> str:
    """The list with the items that it lacks put at its end."""
    have = list(split_list(current or ""))
    have.extend(item for item in split_list(items) if item not in have)
    return ",".join(have)


def subtract_from_list(current: str | None, items: str) -> str:
    """The list without the items."""
    return _without(split_list(current or ""), split_list(items))


def _without(have: Iterable[str], gone: tuple[str, ...]) -> str:
    return ",".join(item for item in have if item not in gone)
