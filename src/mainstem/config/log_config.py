"""The settings of one log as typed fields, so that the storage layer never looks at a name or a text.

Made from the broker's values and a topic's own; it must never hold anything that is not a setting.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mainstem.config.definition import ConfigError, Value
from mainstem.config.tables import TOPIC_ALIASES, TOPIC_SETTINGS

_MINUTE_MS = 60_000
_HOUR_MS = 60 * _MINUTE_MS


def _default(name: str) -> Any:
    return TOPIC_SETTINGS[name].default


class LogConfig(Struct, frozen=True):
    """A field with its default for each topic setting that logs act on, under its name with `_` for `.`."""

    cleanup_policy: frozenset[str] = frozenset(_default("cleanup.policy"))
    compression_type: str = _default("compression.type")
    compression_gzip_level: int = _default("compression.gzip.level")
    compression_lz4_level: int = _default("compression.lz4.level")
    compression_zstd_level: int = _default("compression.zstd.level")
    delete_retention_ms: int = _default("delete.retention.ms")
    file_delete_delay_ms: int = _default("file.delete.delay.ms")
    flush_messages: int = _default("flush.messages")
    flush_ms: int = _default("flush.ms")
    index_interval_bytes: int = _default("index.interval.bytes")
    max_compaction_lag_ms: int = _default("max.compaction.lag.ms")
    max_message_bytes: int = _default("max.message.bytes")
    message_timestamp_after_max_ms: int = _default("message.timestamp.after.max.ms")
    message_timestamp_before_max_ms: int = _default("message.timestamp.before.max.ms")
    message_timestamp_type: str = _default("message.timestamp.type")
    min_cleanable_dirty_ratio: float = _default("min.cleanable.dirty.ratio")
    min_compaction_lag_ms: int = _default("min.compaction.lag.ms")
    min_insync_replicas: int = _default("min.insync.replicas")
    preallocate: bool = _default("preallocate")
    retention_bytes: int = _default("retention.bytes")
    retention_ms: int = _default("retention.ms")
    segment_bytes: int = _default("segment.bytes")
    segment_index_bytes: int = _default("segment.index.bytes")
    segment_jitter_ms: int = _default("segment.jitter.ms")
    segment_ms: int = _default("segment.ms")

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
    fields: dict[str, Any] = {
        name.replace(".", "_"): value for name, value in values.items() if TOPIC_SETTINGS[name].acted_on
    }
    if "cleanup_policy" in fields:
        fields["cleanup_policy"] = frozenset(fields["cleanup_policy"])
    fields.pop("unclean_leader_election_enable", None)  # of elections, which no log knows of
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
