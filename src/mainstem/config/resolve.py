"""From a file and --set to a BrokerConfig: names are checked, and what will not be done is said.

A name that Kafka does not know or that Mainstem does not act on is a warning in a file; a protection that
would be ignored is never a warning: the broker refuses to start. Warnings are handed back, not logged.
"""

from collections.abc import Mapping

from mainstem.config.broker_config import BrokerConfig
from mainstem.config.definition import ConfigError, Setting
from mainstem.config.listeners import parse_listeners
from mainstem.config.rules import check_broker_rules
from mainstem.config.tables import BROKER_ALIASES, BROKER_SETTINGS, TOPIC_SETTINGS
from mainstem.nearest import did_you_mean

LISTENER_PREFIX = "listener.name."


def resolve(
    file_props: Mapping[str, str],
    set_props: Mapping[str, str] | None = None,
    defaults: Mapping[str, str] | None = None,
) -> tuple[BrokerConfig, list[str]]:
    """The configuration, --set over file over `defaults` (which count as defaults), and what to warn of."""
    set_props = set_props or {}
    for name in set_props:
        if base_setting(name) is None:
            raise ConfigError(f"--set {name}: there is no such setting{_suggestion(name)}", name)
    static = {canonical_broker_name(name): text for name, text in file_props.items()}
    static.update((canonical_broker_name(name), text) for name, text in set_props.items())
    config = BrokerConfig(static, defaults=defaults or {})
    warnings: list[str] = []
    for name, text in static.items():
        warning = _look_at(name, text)
        if warning is not None:
            warnings.append(warning)
    parse_listeners(config)
    check_broker_rules(config)
    return config, warnings


def canonical_broker_name(name: str) -> str:
    """The real name behind an alias; any other name as it is."""
    return BROKER_ALIASES.get(name, name)


def base_setting(name: str) -> Setting | None:
    """The declaration behind a name, also when the name is limited to a listener or a SASL mechanism."""
    name = canonical_broker_name(name)
    if name in BROKER_SETTINGS or not name.startswith(LISTENER_PREFIX):
        return BROKER_SETTINGS.get(name)
    rest = name.removeprefix(LISTENER_PREFIX).partition(".")[2]
    # What follows the listener is the setting itself, or a mechanism and then the setting.
    return BROKER_SETTINGS.get(rest) or BROKER_SETTINGS.get(rest.partition(".")[2])


def _look_at(name: str, text: str) -> str | None:
    """A warning about one given setting, if it deserves one; a ConfigError if it must not be ignored."""
    setting = base_setting(name)
    if setting is None:
        if _is_protection(name):
            raise _ignored_protection(name)
        return f"{name}: there is no such setting, it is ignored{_suggestion(name)}"
    value = setting.parse(text)
    if value == setting.default or (setting.default is None and text.strip() == ""):
        return None
    if setting.security:
        raise _ignored_protection(name)
    if setting.acted_on and name in BROKER_SETTINGS:
        return None
    return f"{name}: Mainstem does not act on this setting yet"


def _is_protection(name: str) -> bool:
    """Names that Kafka's own table lacks but that ask for TLS or SASL, such as those of one mechanism."""
    return name.startswith(("ssl.", "sasl.")) or ".ssl." in name or ".sasl." in name


def _ignored_protection(name: str) -> ConfigError:
    return ConfigError(
        f"{name}: Mainstem has no TLS, authentication or authorization yet, and it will not start as if this"
        " protection were there; remove the setting to run without it",
        name,
    )


def _suggestion(name: str) -> str:
    synonym = TOPIC_SETTINGS[name].synonym if name in TOPIC_SETTINGS else None
    if synonym is not None:
        return f"; it belongs to topics, the broker's setting is {synonym}"
    return did_you_mean(name, [*BROKER_SETTINGS, *BROKER_ALIASES])
