"""A topic's settings are refused where Kafka refuses them."""

import pytest

from mainstem.config import (
    BrokerConfig,
    ConfigError,
    append_to_list,
    canonical_topic_name,
    is_list_setting,
    subtract_from_list,
    validate_topic_configs,
)

Overrides = dict[str, str]


@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {"cleanup.policy": "delete,delete"},
        {"cleanup.policy": ""},
        {"cleanup.policy": "compact, delete"},
        {"retention.bytes": "-5"},
        {"retention.ms": "-1"},
        {"retention.ms": " +5 "},
        {"segment.bytes": "1048576"},
        {"remote.log.copy.disable": "true"},
        {"retention.ms": "100", "local.retention.ms": "200"},
        {"leader.replication.throttled.replicas": "*"},
        {"leader.replication.throttled.replicas": "0:1,0:1"},
        {"preallocate": "TRUE"},
        {"min.cleanable.dirty.ratio": "1e-1"},
        {"min.compaction.lag.ms": "9223372036854775807"},
        {"internal.segment.bytes": "1000"},
        {"unclean.leader.election": "true"},
    ],
)
def test_accepted_as_kafka_accepts(overrides: Overrides) -> None:
    validate_topic_configs(overrides)


@pytest.mark.parametrize(
    "overrides",
    [
        {"no.such.name": "1"},
        {"log.segment.bytes": "2000000"},
        {"cleanup.policy": "delete,"},
        {"cleanup.policy": "none"},
        {"retention.ms": "-2"},
        {"retention.ms": ""},
        {"retention.ms": "5.0"},
        {"segment.bytes": "1048575"},
        {"segment.bytes": "99999999999"},
        {"segment.ms": "0"},
        {"compression.gzip.level": "0"},
        {"compression.type": "none"},
        {"compression.type": "GZIP"},
        {"message.timestamp.type": "createtime"},
        {"preallocate": "yes"},
        {"min.cleanable.dirty.ratio": "1.5"},
        {"leader.replication.throttled.replicas": "none"},
        {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"},
        {"remote.storage.enable": "true"},
    ],
)
def test_refused_as_kafka_refuses(overrides: Overrides) -> None:
    with pytest.raises(ConfigError) as raised:
        validate_topic_configs(overrides)
    assert "\n" not in raised.value.message


def test_an_unknown_name_gets_the_nearest_known_one() -> None:
    with pytest.raises(
        ConfigError, match=r"retention\.mss is not a topic setting; did you mean retention\.ms\?"
    ):
        validate_topic_configs({"retention.mss": "1"})


def test_compaction_lags_are_also_compared_with_the_brokers() -> None:
    broker = BrokerConfig({"log.cleaner.max.compaction.lag.ms": "5"})
    validate_topic_configs({"min.compaction.lag.ms": "10"})
    with pytest.raises(ConfigError, match=r"min\.compaction\.lag\.ms \(10\) is greater than .* \(5\)"):
        validate_topic_configs({"min.compaction.lag.ms": "10"}, broker)


def test_only_lists_can_be_appended_to() -> None:
    assert is_list_setting("cleanup.policy")
    assert not is_list_setting("retention.ms")
    assert not is_list_setting("no.such.name")


def test_appending_keeps_order_and_adds_only_what_is_missing() -> None:
    assert append_to_list("delete", "compact") == "delete,compact"
    assert append_to_list("delete,compact", "compact") == "delete,compact"
    assert append_to_list(None, "compact,compact") == "compact"
    assert append_to_list("", "a") == "a"


def test_subtracting_takes_items_away_and_ignores_strangers() -> None:
    assert subtract_from_list("delete,compact", "delete") == "compact"
    assert subtract_from_list("compact", "compact") == ""
    assert subtract_from_list(None, "x") == ""


def test_alias() -> None:
    assert canonical_topic_name("unclean.leader.election") == "unclean.leader.election.enable"
    assert canonical_topic_name("retention.ms") == "retention.ms"
