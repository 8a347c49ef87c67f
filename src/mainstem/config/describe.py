"""The settings as DescribeConfigs tells them: value, type, source, synonyms and documentation of each.

The answers agree with Kafka's for the same settings. A secret's value must never leave through here.
"""

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from mainstem.config.broker_config import BrokerConfig
from mainstem.config.definition import NOT_ACTED_ON, ConfigSource, ConfigType, Scope, Setting, UpdateMode
from mainstem.config.log_config import topic_value_from_broker
from mainstem.config.resolve import base_setting
from mainstem.config.tables import BROKER_SETTINGS, GROUP_SETTINGS, TOPIC_ALIASES, TOPIC_SETTINGS

_RETENTION = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
_ROLL = ("log.roll.ms", "log.roll.hours")
_ROLL_JITTER = ("log.roll.jitter.ms", "log.roll.jitter.hours")
# One quantity under several names, the strongest first.
_FAMILIES = {
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    **{name: family for family in (_RETENTION, _ROLL, _ROLL_JITTER) for name in family},
}


class ConfigSynonym(Struct, frozen=True):
    name: str
    value: str | None
    source: int


class ConfigEntry(Struct, frozen=True):
    """One setting of a topic, group or broker, with Kafka's codes for `type` and `source`."""

    name: str
    value: str | None
    type: int
    source: int
    read_only: bool
    sensitive: bool
    synonyms: tuple[ConfigSynonym, ...]
    doc: str | None


def is_acted_on(scope: str, name: str) -> bool:
    """Whether Mainstem does what this setting of a topic, group or broker asks for."""
    if scope == Scope.BROKER.value:
        setting = base_setting(name)
        return setting is not None and setting.name == name and setting.acted_on
    known = TOPIC_SETTINGS if scope == Scope.TOPIC.value else GROUP_SETTINGS
    return name in known and known[name].acted_on


def describe_topic(broker_config: BrokerConfig, overrides: Mapping[str, str]) -> list[ConfigEntry]:
    """Every setting of a topic that has these overrides."""
    own = {TOPIC_ALIASES.get(name, name): text for name, text in overrides.items()}
    return [
        _topic_entry(broker_config, setting, own.get(setting.name))
        for setting in TOPIC_SETTINGS.values()
        if setting.listed or setting.name in own
    ]


def describe_group(broker_config: BrokerConfig, overrides: Mapping[str, str]) -> list[ConfigEntry]:
    """Every setting of a group that has these overrides."""
    return [
        _group_entry(broker_config, setting, overrides.get(setting.name))
        for setting in GROUP_SETTINGS.values()
    ]


def describe_broker(broker_config: BrokerConfig) -> list[ConfigEntry]:
    """Every setting of the broker, and whatever else somebody gave it."""
    names = [name for name, setting in BROKER_SETTINGS.items() if setting.listed]
    listed = set(names)
    names.extend(name for name in broker_config.given() if name not in listed)
    return [_broker_entry(broker_config, name) for name in names]


def describe_cluster_default(broker_config: BrokerConfig) -> list[ConfigEntry]:
    """The settings that were altered for all brokers (the broker resource with an empty name)."""
    wanted = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    entries: list[ConfigEntry] = []
    for source, layer in broker_config.layers():
        if source is not wanted:
            continue
        for name, text in layer.items():
            entry = _broker_entry(broker_config, name)
            setting = base_setting(name)
            shown = None if setting is None or entry.sensitive else setting.format(setting.parse(text))
            synonyms = tuple(synonym for synonym in entry.synonyms if synonym.source == wanted)
            entries.append(replace(entry, value=shown, source=wanted, synonyms=synonyms))
    return entries


def _topic_entry(config: BrokerConfig, setting: Setting, text: str | None) -> ConfigEntry:
    synonyms = [] if setting.synonym is None else _synonyms(config, setting.synonym, sensitive=False)
    if text is None:
        inherited = {name: config.get(name) for name in _inherited_from(setting)}
        value = setting.format(topic_value_from_broker(inherited, setting.name))
    else:
        parsed = setting.parse(text)
        # Kafka drops repeated items of a topic's list.
        value = setting.format(tuple(dict.fromkeys(parsed)) if isinstance(parsed, tuple) else parsed)
        synonyms.insert(0, ConfigSynonym(setting.name, value, ConfigSource.DYNAMIC_TOPIC_CONFIG))
    return ConfigEntry(
        name=setting.name,
        value=value,
        type=setting.type,
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG,
        read_only=False,
        sensitive=setting.sensitive,
        synonyms=tuple(synonyms),
        doc=setting.full_doc,
    )


def _group_entry(config: BrokerConfig, setting: Setting, text: str | None) -> ConfigEntry:
    if setting.synonym is None:
        value = setting.format(setting.default)
        synonyms = [ConfigSynonym(setting.name, value, ConfigSource.DEFAULT_CONFIG)]
    else:
        value = setting.format(config.get(setting.synonym))
        synonyms = _synonyms(config, setting.synonym, sensitive=False)
    if text is not None:
        value = setting.format(setting.parse(text))
        synonyms.insert(0, ConfigSynonym(setting.name, value, ConfigSource.GROUP_CONFIG))
    return ConfigEntry(
        name=setting.name,
        value=value,
        type=setting.type,
        source=synonyms[0].source,
        read_only=False,
        sensitive=setting.sensitive,
        synonyms=tuple(synonyms),
        doc=setting.full_doc,
    )


def _inherited_from(setting: Setting) -> tuple[str, ...]:
    if setting.synonym is None:
        return ()
    return _FAMILIES.get(setting.synonym, (setting.synonym,))


def _broker_entry(config: BrokerConfig, name: str) -> ConfigEntry:
    setting = base_setting(name)
    sensitive = setting is None or setting.sensitive
    synonyms = _synonyms(config, name, sensitive)
    value = None
    if setting is not None and not sensitive:
        value = _value_in_force(config, name, setting)
    return ConfigEntry(
        name=name,
        value=value,
        type=ConfigType.UNKNOWN if setting is None else setting.type,
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG,
        read_only=name not in BROKER_SETTINGS or not BROKER_SETTINGS[name].dynamic,
        sensitive=sensitive,
        synonyms=tuple(synonyms),
        doc=None if setting is None else _doc(setting, name),
    )


def _doc(setting: Setting, name: str) -> str:
    """Nothing is acted on for a single listener or mechanism."""
    return setting.full_doc if setting.name == name else f"{setting.doc} {NOT_ACTED_ON}"


def _value_in_force(config: BrokerConfig, name: str, setting: Setting) -> str | None:
    if name in BROKER_SETTINGS:
        return setting.format(config.get(name))
    text = config.override(name)
    return None if text is None else setting.format(setting.parse(text))


def _synonyms(config: BrokerConfig, name: str, sensitive: bool) -> list[ConfigSynonym]:
    """Everything that could give the value, the strongest first.

    Kafka leaves out what is stronger than the first mention of the asked name, and everything when the name
    itself was never given and has no default.
    """
    names = _names_of(name)
    found: list[ConfigSynonym] = []
    for source, layer in config.layers():
        found.extend(
            ConfigSynonym(known, None if sensitive else layer[known], source)
            for known in names
            if known in layer
        )
    for known in names:
        setting = BROKER_SETTINGS.get(known)
        default = None if setting is None or not _has_default(setting) else config.default(known)
        if setting is not None and default is not None:
            text = None if sensitive else setting.format(default)
            found.append(ConfigSynonym(known, text, ConfigSource.DEFAULT_CONFIG))
    for index, synonym in enumerate(found):
        if synonym.name == name:
            return found[index:]
    return []


def _has_default(setting: Setting) -> bool:
    """Kafka shows no default for the settings that exist only where somebody alters them."""
    return setting.listed or setting.update is UpdateMode.READ_ONLY


def _names_of(name: str) -> tuple[str, ...]:
    if name in _FAMILIES:
        return _FAMILIES[name]
    setting = base_setting(name)
    return (name,) if setting is None or setting.name == name else (name, setting.name)
