"""Every setting that Kafka 4.3 knows, and the few of our own: one file for each subject, gathered here into
the look-up tables.

The groups keep the order in which the documentation shows them. Nothing is declared in this file.
"""

from mainstem.config.definition import Setting
from mainstem.config.tables import (
    cleaner,
    group,
    groups,
    log,
    metadata,
    network,
    node,
    operations,
    own,
    quotas,
    remote_storage,
    replication,
    sasl,
    security,
    share_groups,
    topic,
    topic_defaults,
    transactions,
)

BROKER_GROUPS: tuple[tuple[str, tuple[Setting, ...]], ...] = (
    ("The node and its listeners", node.SETTINGS),
    ("Connections and requests", network.SETTINGS),
    ("Defaults of new topics", topic_defaults.SETTINGS),
    ("The log", log.SETTINGS),
    ("Compaction", cleaner.SETTINGS),
    ("Replication", replication.SETTINGS),
    ("Controllers and metadata", metadata.SETTINGS),
    ("Consumer groups and offsets", groups.SETTINGS),
    ("Share groups and streams groups", share_groups.SETTINGS),
    ("Transactions", transactions.SETTINGS),
    ("Quotas", quotas.SETTINGS),
    ("Encryption and authorization", security.SETTINGS),
    ("Authentication", sasl.SETTINGS),
    ("Remote storage", remote_storage.SETTINGS),
    ("Metrics and the rest", operations.SETTINGS),
    ("Mainstem's own", own.SETTINGS),
)

BROKER_SETTINGS: dict[str, Setting] = {
    setting.name: setting for _, settings in BROKER_GROUPS for setting in settings
}
TOPIC_SETTINGS: dict[str, Setting] = {setting.name: setting for setting in topic.SETTINGS}
GROUP_SETTINGS: dict[str, Setting] = {setting.name: setting for setting in group.SETTINGS}

BROKER_ALIASES: dict[str, str] = {
    alias: setting.name for setting in BROKER_SETTINGS.values() for alias in setting.aliases
}
TOPIC_ALIASES: dict[str, str] = {
    alias: setting.name for setting in TOPIC_SETTINGS.values() for alias in setting.aliases
}
