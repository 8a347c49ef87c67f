"""The broker's settings as layers: defaults, what was given at the start, what was altered while running.

A `BrokerConfig` never changes; an alteration makes a new one. It must never read files, warn, or decide
whether a setting is acceptable to Mainstem: that is done where the layers are put together.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from mainstem.config.definition import ConfigError, ConfigSource, Value
from mainstem.config.log_config import LogConfig, log_config_from_broker
from mainstem.config.tables import BROKER_ALIASES, BROKER_SETTINGS

_DEFAULTS: dict[str, Value] = {name: setting.default for name, setting in BROKER_SETTINGS.items()}
_NONE: Mapping[str, str] = MappingProxyType({})
_Layer = tuple[ConfigSource, Mapping[str, str]]
# Altered for this broker, altered for all brokers, given at the start.
Layers = tuple[_Layer, _Layer, _Layer]


class BrokerConfig:
    """Typed values by Kafka's names; `static` holds the texts of the file with those of --set on top."""

    __slots__ = ("_layers", "_log_defaults", "_node_defaults", "_values", "dynamic_errors")

    def __init__(
        self,
        static: Mapping[str, str] = _NONE,
        *,
        defaults: Mapping[str, str] = _NONE,
        dynamic_broker: Mapping[str, str] = _NONE,
        dynamic_default: Mapping[str, str] = _NONE,
    ) -> None:
        self._node_defaults = MappingProxyType(dict(defaults))
        errors: list[str] = []
        # Most important first, the order of DescribeConfigs' synonyms.
        self._layers: Layers = (
            (ConfigSource.DYNAMIC_BROKER_CONFIG, MappingProxyType(_usable(dynamic_broker, errors))),
            (ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, MappingProxyType(_usable(dynamic_default, errors))),
            (ConfigSource.STATIC_BROKER_CONFIG, MappingProxyType(_with_both_ids(_canonical(static)))),
        )
        values = dict(_DEFAULTS)
        values.update(_parse(self._node_defaults))
        for _, layer in reversed(self._layers):
            values.update(_parse(layer))
        if values["broker.id"] == _DEFAULTS["broker.id"]:
            values["broker.id"] = values["node.id"]
        self._values = values
        # Altered values that cannot be used count as not given, and the broker logs these lines.
        self.dynamic_errors = tuple(errors)
        self._log_defaults: LogConfig | None = None

    def get(self, name: str) -> Any:
        """The typed value in force. An undeclared name is a programming error and raises KeyError."""
        return self._values[name]

    def source(self, name: str) -> ConfigSource:
        """Which layer the value in force came from."""
        BROKER_SETTINGS[name]
        for source, layer in self._layers:
            if name in layer:
                return source
        return ConfigSource.DEFAULT_CONFIG

    def override(self, name: str) -> str | None:
        """The text that somebody gave for this setting, or None when its default is in force."""
        for _, layer in self._layers:
            if name in layer:
                return layer[name]
        return None

    def default(self, name: str) -> Value:
        """The value that would be in force if nobody had given one."""
        text = self._node_defaults.get(name)
        return _DEFAULTS[name] if text is None else BROKER_SETTINGS[name].parse(text)

    def given(self) -> list[str]:
        """Every name that somebody gave, known to Kafka or not."""
        return list({name: None for _, layer in self._layers for name in layer})

    def layers(self) -> Layers:
        """The given texts by source, the most important first."""
        return self._layers

    def with_dynamic(
        self, broker: Mapping[str, str], cluster_default: Mapping[str, str] = _NONE
    ) -> "BrokerConfig":
        """The same start-up values under these altered ones, which replace any altered before."""
        return BrokerConfig(
            self._layers[2][1],
            defaults=self._node_defaults,
            dynamic_broker=broker,
            dynamic_default=cluster_default,
        )

    def log_defaults(self) -> LogConfig:
        """What a topic without settings of its own gets; made once."""
        if self._log_defaults is None:
            self._log_defaults = log_config_from_broker(self._values)
        return self._log_defaults

    def log_dirs(self) -> tuple[str, ...]:
        """The data directories, from log.dirs or else log.dir."""
        dirs: tuple[str, ...] = self._values["log.dirs"] or self._values["log.dir"]  # type: ignore[assignment]
        return dirs

    def cordoned_log_dirs(self) -> frozenset[str]:
        """The data directories that get no new partitions."""
        cordoned: tuple[str, ...] = self._values["cordoned.log.dirs"]  # type: ignore[assignment]
        return frozenset(self.log_dirs() if cordoned == ("*",) else cordoned)


def _canonical(layer: Mapping[str, str]) -> dict[str, str]:
    """Aliases under their real names; a real name that is also there wins."""
    renamed = {BROKER_ALIASES[name]: text for name, text in layer.items() if name in BROKER_ALIASES}
    renamed.update((name, text) for name, text in layer.items() if name not in BROKER_ALIASES)
    return renamed


def _with_both_ids(static: dict[str, str]) -> dict[str, str]:
    """node.id and broker.id are two names of one number, as in Kafka."""
    if "node.id" in static and "broker.id" not in static:
        static["broker.id"] = static["node.id"]
    elif "broker.id" in static and "node.id" not in static:
        static["node.id"] = static["broker.id"]
    return static


def _parse(layer: Mapping[str, str]) -> dict[str, Value]:
    return {
        name: BROKER_SETTINGS[name].parse(text) for name, text in layer.items() if name in BROKER_SETTINGS
    }


def _usable(altered: Mapping[str, str], errors: list[str]) -> dict[str, str]:
    """What can be used of the values that were altered, perhaps under another version with other rules."""
    layer = _canonical(altered)
    for name, text in list(layer.items()):
        try:
            if name in BROKER_SETTINGS:
                BROKER_SETTINGS[name].parse(text)
        except ConfigError as error:
            errors.append(error.message)
            del layer[name]
    return layer
