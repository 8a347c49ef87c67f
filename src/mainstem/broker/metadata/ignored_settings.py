"""A word about settings that Mainstem does not act on: they are kept, as clients of Kafka expect, but never
silently.
"""

import logging
from collections.abc import Sequence

from mainstem.broker.coordination.internal_topics import is_internal
from mainstem.cluster.records import ConfigRecord, MetadataRecord, TopicRecord
from mainstem.config import is_acted_on
from mainstem.protocol.resources import ConfigResourceType

logger = logging.getLogger(__name__)

_SCOPES = {
    ConfigResourceType.TOPIC: "topic",
    ConfigResourceType.BROKER: "broker",
    ConfigResourceType.GROUP: "group",
}


def warn_of_ignored(records: Sequence[MetadataRecord]) -> None:
    """Log which of these settings will make no difference. Nobody has asked for those with which the broker
    makes its own topics.
    """
    made = {record.name for record in records if isinstance(record, TopicRecord) and is_internal(record.name)}
    for record in records:
        if isinstance(record, ConfigRecord) and record.value is not None:
            if record.resource_type == ConfigResourceType.TOPIC and record.resource_name in made:
                continue
            scope = _SCOPES.get(ConfigResourceType(record.resource_type))
            if scope is not None and not is_acted_on(scope, record.name):
                whose = f"{scope} {record.resource_name}" if record.resource_name else "all brokers"
                logger.warning(
                    "%s=%s was set for %s: Mainstem does not act on this setting",
                    record.name, record.value, whose,
                )  # fmt: skip
