"""Settings: every one declared once, with Kafka's names.

Nothing in this package does input or output except reading a properties file, and it imports no other part of
Mainstem.
"""

from mainstem.config.broker_config import BrokerConfig
from mainstem.config.definition import ConfigError, ConfigSource, ConfigType
from mainstem.config.describe import (
    ConfigEntry,
    describe_broker,
    describe_cluster_default,
    describe_group,
    describe_topic,
    is_acted_on,
)
from mainstem.config.dynamic import (
    is_list_broker_setting,
    validate_broker_outcome,
    validate_dynamic_broker,
    with_altered,
)
from mainstem.config.group import group_values, validate_group_configs
from mainstem.config.listeners import Listener, can_be_joined, parse_listeners
from mainstem.config.log_config import LogConfig
from mainstem.config.properties import load_properties, parse_properties
from mainstem.config.resolve import resolve
from mainstem.config.rules import per_ip_overrides
from mainstem.config.topic import (
    append_to_list,
    canonical_topic_name,
    is_list_setting,
    subtract_from_list,
    topic_log_config,
    validate_topic_configs,
)

__all__ = [
    "BrokerConfig",
    "ConfigEntry",
    "ConfigError",
    "ConfigSource",
    "ConfigType",
    "Listener",
    "LogConfig",
    "append_to_list",
    "can_be_joined",
    "canonical_topic_name",
    "describe_broker",
    "describe_cluster_default",
    "describe_group",
    "describe_topic",
    "group_values",
    "is_acted_on",
    "is_list_broker_setting",
    "is_list_setting",
    "load_properties",
    "parse_listeners",
    "parse_properties",
    "per_ip_overrides",
    "resolve",
    "subtract_from_list",
    "topic_log_config",
    "validate_broker_outcome",
    "validate_dynamic_broker",
    "validate_group_configs",
    "validate_topic_configs",
    "with_altered",
]
