"""DescribeConfigs' data equal what a live Apache Kafka answers when it is started with the same settings."""

from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from mainstem.config import BrokerConfig, ConfigEntry, ConfigSource, describe_broker, describe_topic
from tests.support.kafka_peer import shared_kafka
from tests.support.target import unique_name, when_settled

pytestmark = pytest.mark.peer

# Kafka has no default for these, so it cannot name one; Mainstem has.
_OWN_DEFAULTS = {"node.id", "process.roles", "controller.listener.names"}
# Mainstem does not open and close listeners while it runs, and says so.
_FIXED_AT_START = {"listeners", "listener.security.protocol.map"}
Answer = tuple[str | None, int, bool, bool, set[tuple[str, str | None, int]]]


def _describe(admin: AdminClient, kind: ResourceType, name: str) -> dict[str, Any]:
    resource = ConfigResource(kind, name)
    return when_settled(lambda: dict(admin.describe_configs([resource])[resource].result(timeout=30)), bool)


def _kafkas(entry: Any) -> Answer:
    synonyms = {(s.name, s.value, int(s.source)) for s in entry.synonyms.values()}
    return entry.value, int(entry.source), entry.is_read_only, entry.is_sensitive, synonyms


def _ours(entry: ConfigEntry) -> Answer:
    # The client keeps one synonym for each name, the last one.
    synonyms = {s.name: (s.name, s.value, int(s.source)) for s in entry.synonyms}
    return entry.value, int(entry.source), entry.read_only, entry.sensitive, set(synonyms.values())


def test_broker_and_topic_are_described_as_kafka_describes_them() -> None:
    admin = AdminClient({"bootstrap.servers": shared_kafka().bootstrap_servers})
    broker = _describe(admin, ResourceType.BROKER, "1")
    given: dict[ConfigSource, dict[str, str]] = {source: {} for source in ConfigSource}
    for name, entry in broker.items():
        if entry.source != ConfigSource.DEFAULT_CONFIG:
            given[ConfigSource(int(entry.source))][name] = entry.value
    config = BrokerConfig(given[ConfigSource.STATIC_BROKER_CONFIG]).with_dynamic(
        given[ConfigSource.DYNAMIC_BROKER_CONFIG], given[ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG]
    )
    topic = unique_name("configs")
    overrides = {"retention.ms": "1000", "cleanup.policy": "compact"}
    admin.create_topics([NewTopic(topic, 1, 1, config=overrides)])[topic].result(timeout=30)

    for ours, kafkas in (
        (describe_broker(config), broker),
        (describe_topic(config, overrides), _describe(admin, ResourceType.TOPIC, topic)),
    ):
        assert {entry.name for entry in ours} == set(kafkas)
        for entry in ours:
            if entry.name not in _OWN_DEFAULTS | _FIXED_AT_START:
                assert (entry.name, _ours(entry)) == (entry.name, _kafkas(kafkas[entry.name]))
