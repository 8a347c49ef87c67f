"""Which broker settings may be altered while the broker runs, and at which level.

Answers questions of (Incremental)AlterConfigs; it must never apply or store a value.
"""

from mainstem.config.broker_config import BrokerConfig
from mainstem.config.definition import ConfigError, ConfigType, UpdateMode
from mainstem.config.nearest import did_you_mean
from mainstem.config.resolve import base_setting, canonical_broker_name
from mainstem.config.rules import check_broker_rules
from mainstem.config.tables import BROKER_SETTINGS


def is_list_broker_setting(name: str) -> bool:
    """Whether APPEND and SUBTRACT make sense for this broker setting."""
    setting = base_setting(name)
    return setting is not None and setting.type is ConfigType.LIST


def validate_dynamic_broker(
    name: str, value: str | None, *, per_broker: bool = True, current: BrokerConfig | None = None
) -> None:
    """Refuse what may not be altered (Kafka's INVALID_REQUEST). `value` None takes an altered value away.

    `per_broker` is false for the cluster's default, the resource with an empty name. With `current`, the
    rules that span several settings are checked against the outcome too. An unknown name, which Kafka keeps
    for its plug-ins, can mean nothing here and is refused.
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
    if current is not None:
        check_broker_rules(_altered(current, name, value, per_broker))


def _altered(current: BrokerConfig, name: str, value: str, per_broker: bool) -> BrokerConfig:
    (_, broker), (_, cluster_default), _ = current.layers()
    change = {canonical_broker_name(name): value}
    if per_broker:
        return current.with_dynamic({**broker, **change}, cluster_default)
    return current.with_dynamic(broker, {**cluster_default, **change})
