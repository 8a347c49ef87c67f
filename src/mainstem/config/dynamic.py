"""Which broker settings may be altered while the broker runs, at which level, and to what outcome.

Answers questions of (Incremental)AlterConfigs, and says which altered values a broker goes by; it must never
store one.
"""

from collections.abc import Collection, Mapping

from mainstem.config.broker_config import BrokerConfig
from mainstem.config.definition import ConfigError, ConfigType, UpdateMode
from mainstem.config.resolve import base_setting
from mainstem.config.rules import broken_rules
from mainstem.config.tables import BROKER_SETTINGS
from mainstem.nearest import did_you_mean


def is_list_broker_setting(name: str) -> bool:
    """Whether APPEND and SUBTRACT make sense for this broker setting."""
    setting = base_setting(name)
    return setting is not None and setting.type is ConfigType.LIST


def validate_dynamic_broker(name: str, value: str | None, *, per_broker: bool = True) -> None:
    """Refuse what may not be altered (Kafka's INVALID_REQUEST). `value` None takes an altered value away.

    `per_broker` is false for the cluster's default, the resource with an empty name. An unknown name, which
    Kafka keeps for its plug-ins, can mean nothing here and is refused.
    """
    setting = base_setting(name)
    if setting is None:
        if value is None:
            return
        raise ConfigError(f"{name} is not a broker setting{did_you_mean(name, BROKER_SETTINGS)}", name)
    if not setting.dynamic:
        raise ConfigError(f"{name} cannot be altered while the broker runs; set it in the file", name)
    if setting.update is UpdateMode.PER_BROKER and not per_broker:
        raise ConfigError(f"{name} can be altered for one broker, not as the cluster's default", name)
    if value is None:
        return
    if setting.parse(value) != setting.default and setting.security:
        raise ConfigError(f"{name}: this broker has no TLS or authentication that it could apply to", name)


def validate_broker_outcome(before: BrokerConfig, after: BrokerConfig, given: Collection[str]) -> None:
    """Refuse changes of which the outcome contradicts itself; `given` are the settings that get a value.

    What contradicted itself before, because of an older version or of another file, is no reason to refuse
    a change of something else, or the first of the steps that put it in order.
    """
    known = {error.message for error in broken_rules(before)}
    for error in broken_rules(after):
        if error.message not in known or not {error.setting, *error.others}.isdisjoint(given):
            raise error


def with_altered(
    current: BrokerConfig, broker: Mapping[str, str], cluster_default: Mapping[str, str]
) -> tuple[BrokerConfig, list[str]]:
    """The settings under these altered ones, and what to warn of. An altered value that cannot be used, or
    that contradicts others, counts as not given: it could keep out whoever wants to take it back.
    """
    config = current.with_dynamic(broker, cluster_default)
    problems = [f"{message}: the altered value is ignored" for message in config.dynamic_errors]
    while (error := next(broken_rules(config), None)) is not None:
        given = [layer for _, layer in config.layers()[:2]]
        kept = [
            {name: text for name, text in layer.items() if name not in (error.setting, *error.others)}
            for layer in given
        ]
        if kept == given:
            break  # it was so before anything was altered
        problems.append(f"{error.message}: what was altered of this is ignored")
        config = config.with_dynamic(*kept)
    return config, problems
