"""Settings: every one declared once, with Kafka's names.

Nothing in this package does input or output except reading a properties file, and it imports no other part of
Mainstem.
"""

from mainstem.config.broker_config import BrokerConfig
from mainstem.config.definition import ConfigError, ConfigSource, ConfigType, Setting, UpdateMode
from mainstem.config.log_config import LogConfig
from mainstem.config.topic import topic_log_config, validate_topic_configs

__all__ = [
    "BrokerConfig",
    "ConfigError",
    "ConfigSource",
    "ConfigType",
    "LogConfig",
    "Setting",
    "UpdateMode",
    "topic_log_config",
    "validate_topic_configs",
]
