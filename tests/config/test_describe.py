"""DescribeConfigs' data equal what Apache Kafka 4.3.0 answered for the same settings."""

import json
from pathlib import Path
from typing import Any

from mainstem.config import (
    BrokerConfig,
    ConfigEntry,
    ConfigSource,
    ConfigType,
    describe_broker,
    describe_cluster_default,
    describe_topic,
    is_acted_on,
    resolve,
)
from mainstem.config.tables import BROKER_SETTINGS, TOPIC_SETTINGS

DATA = Path(__file__).parent / "data"

# How the broker that gave the recorded answers was started and altered.
STATIC = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": "1@127.0.0.1:29793",
    "listeners": "PLAINTEXT://127.0.0.1:29792,CONTROLLER://127.0.0.1:29793",
    "controller.listener.names": "CONTROLLER",
    "log.dirs": "/var/data",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "log.retention.hours": "100",
    "num.partitions": "2",
    "compression.type": "lz4",
    "some.unknown.name": "hello",
    "log.segment.bytes": "2000000",
}
ALTERED = {
    "nope": "1",
    "internal.nope": "4",
    "num.io.threads": "9",
    "log.retention.ms": "50000",
    "follower.replication.throttled.rate": "1000",
    "listener.name.plaintext.max.connections": "50",
    "log.cleaner.io.max.bytes.per.second": "1e9",
    "log.cleanup.policy": "compact,delete",
    "sasl.jaas.config": "x",
    "listener.name.plaintext.plain.sasl.jaas.config": "secret",
}
ALTERED_DEFAULT = {"min.insync.replicas": "2", "leader.replication.throttled.rate": "1000"}

# Kafka has no default for these, so it cannot name one; Mainstem has.
_OWN_DEFAULTS = {"node.id", "process.roles", "controller.listener.names"}
# Once log.retention.ms is altered, Kafka forgets the value that the file gives to the coarser unit.
_FORGOTTEN_BY_KAFKA = {"log.retention.hours"}

# Kafka opens and closes listeners while it runs. Mainstem refuses to, and says so.
_FIXED_AT_START = {"listeners", "listener.security.protocol.map"}

Answers = dict[str, dict[str, Any]]


def _kafkas(file: str, resource: str) -> Answers:
    answers = [json.loads(line) for line in (DATA / file).read_text().splitlines()]
    return {answer["name"]: answer for answer in answers if answer["res"] == resource}


def _ours(entries: list[ConfigEntry], resource: str) -> Answers:
    return {
        entry.name: {
            "res": resource,
            "name": entry.name,
            "value": entry.value,
            "type": ConfigType(entry.type).name,
            "source": ConfigSource(entry.source).name,
            "ro": entry.read_only,
            "sens": entry.sensitive,
            "syn": [[s.name, s.value, ConfigSource(s.source).name] for s in entry.synonyms],
        }
        for entry in entries
    }


def _static() -> BrokerConfig:
    config, _ = resolve(STATIC)
    # Kafka's controller records this one by itself where eligible leader replicas are in use.
    return config.with_dynamic({}, {"min.insync.replicas": "1"})


def _altered() -> BrokerConfig:
    return _static().with_dynamic(ALTERED, ALTERED_DEFAULT)


def _assert_broker_equals(config: BrokerConfig, file: str, but: set[str]) -> None:
    ours, kafkas = _ours(describe_broker(config), "BROKER:1"), _kafkas(file, "BROKER:1")
    for name, answer in kafkas.items():
        if name in _FIXED_AT_START:
            answer["ro"] = True
        if name not in but:
            assert ours[name] == answer


def test_a_topic_without_overrides() -> None:
    assert _ours(describe_topic(_static(), {}), "TOPIC:fresh") == _kafkas(
        "kafka_answers_static.jsonl", "TOPIC:fresh"
    )


def test_a_topic_with_overrides() -> None:
    overrides = {"retention.ms": "1000", "cleanup.policy": "compact,delete"}
    assert _ours(describe_topic(_static(), overrides), "TOPIC:tuned") == _kafkas(
        "kafka_answers_static.jsonl", "TOPIC:tuned"
    )


def test_a_topic_under_altered_broker_settings() -> None:
    overrides = {
        "min.compaction.lag.ms": "9223372036854775807",
        "remote.log.copy.disable": "true",
        "internal.segment.bytes": "1000",
        "local.retention.ms": "999999999999",
        "cleanup.policy": "compact, delete",
    }
    assert _ours(describe_topic(_altered(), overrides), "TOPIC:fresh") == _kafkas(
        "kafka_answers_altered.jsonl", "TOPIC:fresh"
    )
    overrides = {"retention.ms": "1000", "cleanup.policy": "delete,delete"}
    assert _ours(describe_topic(_altered(), overrides), "TOPIC:tuned") == _kafkas(
        "kafka_answers_altered.jsonl", "TOPIC:tuned"
    )


def test_the_broker() -> None:
    _assert_broker_equals(_static(), "kafka_answers_static.jsonl", _OWN_DEFAULTS)


def test_the_broker_after_alterations() -> None:
    _assert_broker_equals(_altered(), "kafka_answers_altered.jsonl", _OWN_DEFAULTS | _FORGOTTEN_BY_KAFKA)


def test_the_clusters_defaults() -> None:
    for config, file in (
        (_static(), "kafka_answers_static.jsonl"),
        (_altered(), "kafka_answers_altered.jsonl"),
    ):
        assert _ours(describe_cluster_default(config), "BROKER:") == _kafkas(file, "BROKER:")


def test_every_public_setting_is_described_and_no_internal_one() -> None:
    broker = [entry.name for entry in describe_broker(BrokerConfig())]
    assert sorted(broker) == sorted(name for name, setting in BROKER_SETTINGS.items() if setting.listed)
    topic = [entry.name for entry in describe_topic(BrokerConfig(), {})]
    assert sorted(topic) == sorted(name for name, setting in TOPIC_SETTINGS.items() if setting.listed)


def test_plain_defaults_are_their_own_synonym() -> None:
    for entry in describe_broker(BrokerConfig()):
        assert entry.source == ConfigSource.DEFAULT_CONFIG
        if entry.value is not None and entry.name != "broker.id":
            assert [(s.name, s.value) for s in entry.synonyms] == [(entry.name, entry.value)]


def test_an_alias_in_a_topics_overrides_is_shown_under_the_real_name() -> None:
    entries = {e.name: e for e in describe_topic(BrokerConfig(), {"unclean.leader.election": "true"})}
    assert entries["unclean.leader.election.enable"].value == "true"


def test_secrets_never_leave() -> None:
    config = BrokerConfig({"ssl.key.password": "hush", "unknown.password": "hush"}).with_dynamic(
        {"sasl.jaas.config": "hush"}, {"another.unknown": "hush"}
    )
    for entry in [*describe_broker(config), *describe_cluster_default(config)]:
        assert "hush" not in str(entry)


def test_what_is_not_acted_on_says_so() -> None:
    given = {"listener.name.plaintext.max.connections": "5"}
    broker = {entry.name: entry.doc or "" for entry in describe_broker(_static().with_dynamic(given))}
    assert broker["max.connections"].endswith("at least 1.")
    for name in ("num.io.threads", "listener.name.plaintext.max.connections"):
        assert broker[name].endswith(" Mainstem does not act on this setting.")
    assert not is_acted_on("broker", "listener.name.plaintext.max.connections")
    topic = {entry.name: entry.doc or "" for entry in describe_topic(_static(), {})}
    assert "does not act" in topic["remote.storage.enable"]
    assert "does not act" not in topic["retention.ms"]


def test_every_entry_is_documented() -> None:
    assert all(entry.doc for entry in describe_broker(BrokerConfig()))
    assert all(entry.doc for entry in describe_topic(BrokerConfig(), {}))
