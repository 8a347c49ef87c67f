"""The settings of one log as typed fields, so that the storage layer never looks at a name or a text.

Made from the broker's values and a topic's own; it must never hold anything that is not a setting.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mainstem.config.definition import INT64_MAX, ConfigError, Value
from mainstem.config.tables import TOPIC_ALIASES, TOPIC_SETTINGS

_MINUTE_MS = 60_000
_HOUR_MS = 60 * _MINUTE_MS


class LogConfig(Struct, frozen=True):
    """One field for each topic setting, under its name with `_` for `.`; the defaults are Kafka 4.3's."""

    cleanup_policy: frozenset[str] = frozenset({"delete"})
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    delete_retention_ms: int = 86400000
    file_delete_delay_ms: int = 60000
    flush_messages: int = INT64_MAX
    flush_ms: int = INT64_MAX
    follower_replication_throttled_replicas: tuple[str, ...] = ()
    index_interval_bytes: int = 4096
    leader_replication_throttled_replicas: tuple[str, ...] = ()
    local_retention_bytes: int = -2
    local_retention_ms: int = -2
    max_compaction_lag_ms: int = INT64_MAX
    max_message_bytes: int = 1048588
    message_timestamp_after_max_ms: int = 3600000
    message_timestamp_before_max_ms: int = INT64_MAX
    message_timestamp_type: str = "CreateTime"
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    min_insync_replicas: int = 1
    preallocate: bool = False
    remote_log_copy_disable: bool = False
    remote_log_delete_on_disable: bool = False
    remote_storage_enable: bool = False
    retention_bytes: int = -1
    retention_ms: int = 604800000
    segment_bytes: int = 1073741824
    segment_index_bytes: int = 10485760
    segment_jitter_ms: int = 0
    segment_ms: int = 604800000
    unclean_leader_election_enable: bool = False

    @property
    def compact(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def delete(self) -> bool:
        return "delete" in self.cleanup_policy

    @property
    def max_segment_ms(self) -> int:
        """How old a segment gets before the next append begins another. What `max.compaction.lag.ms` wants
        cleaned must not stay in the active one.
        """
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.compact else self.segment_ms

    @property
    def log_append_time(self) -> bool:
        return self.message_timestamp_type == "LogAppendTime"


def log_config_from_broker(values: Mapping[str, Value]) -> LogConfig:
    """The log settings that the broker's values give to a topic without its own."""
    inherited = {
        setting.name: values[setting.synonym]
        for setting in TOPIC_SETTINGS.values()
        if setting.synonym is not None and setting.name not in _UNITS
    }
    inherited.update((name, effective(values)) for name, effective in _UNITS.items())
    return replace(LogConfig(), **_fields(inherited))


def topic_value_from_broker(values: Mapping[str, Value], name: str) -> Value:
    """The value that one topic setting inherits from the broker's values."""
    setting = TOPIC_SETTINGS[name]
    if name in _UNITS:
        return _UNITS[name](values)
    return setting.default if setting.synonym is None else values[setting.synonym]


def log_config_with(base: LogConfig, overrides: Mapping[str, str]) -> LogConfig:
    """`base` under a topic's own settings; a name or value that is no good raises ConfigError."""
    if not overrides:
        return base
    parsed: dict[str, Value] = {}
    for given, text in overrides.items():
        name = TOPIC_ALIASES.get(given, given)
        if name not in TOPIC_SETTINGS:
            raise ConfigError(f"{name} is not a topic setting", name)
        parsed[name] = TOPIC_SETTINGS[name].parse(text)
    return replace(base, **_fields(parsed))


def _fields(values: Mapping[str, Value]) -> dict[str, Any]:
    fields: dict[str, Any] = {name.replace(".", "_"): value for name, value in values.items()}
    if "cleanup_policy" in fields:
        fields["cleanup_policy"] = frozenset(fields["cleanup_policy"])
    internal_segment_bytes = fields.pop("internal_segment_bytes", None)
    if internal_segment_bytes is not None:
        fields["segment_bytes"] = internal_segment_bytes
    return fields


def _in_ms(values: Mapping[str, Value], *units: tuple[str, int]) -> int:
    """The first setting that has a value, in milliseconds; the last one always has."""
    for name, factor in units:
        value = values[name]
        if value is not None:
            return int(value) * factor  # type: ignore[arg-type]
    raise KeyError(units[-1][0])


def _retention_ms(values: Mapping[str, Value]) -> int:
    names = ("log.retention.ms", 1), ("log.retention.minutes", _MINUTE_MS), ("log.retention.hours", _HOUR_MS)
    return max(_in_ms(values, *names), -1)


def _segment_ms(values: Mapping[str, Value]) -> int:
    return _in_ms(values, ("log.roll.ms", 1), ("log.roll.hours", _HOUR_MS))


def _segment_jitter_ms(values: Mapping[str, Value]) -> int:
    return _in_ms(values, ("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", _HOUR_MS))


def _flush_ms(values: Mapping[str, Value]) -> int:
    return _in_ms(values, ("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1))


# Topic settings for which the broker has several names in several units, the finer one being the stronger.
_UNITS = {
    "retention.ms": _retention_ms,
    "segment.ms": _segment_ms,
    "segment.jitter.ms": _segment_jitter_ms,
    "flush.ms": _flush_ms,
}
