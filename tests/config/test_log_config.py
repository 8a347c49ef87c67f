"""A log's typed settings: Kafka's defaults, the broker's values, a topic's own on top."""

import pytest

from mainstem.config import BrokerConfig, ConfigError, LogConfig, topic_log_config
from mainstem.config.tables import TOPIC_SETTINGS


def test_the_fields_and_their_defaults_are_those_that_are_acted_on() -> None:
    expected = {
        setting.name.replace(".", "_"): setting.default
        for setting in TOPIC_SETTINGS.values()
        if setting.acted_on
        and setting.name not in ("internal.segment.bytes", "unclean.leader.election.enable")
    }
    expected["cleanup_policy"] = frozenset({"delete"})  # type: ignore[assignment]
    config = LogConfig()
    assert {field: getattr(config, field) for field in config.__struct_fields__} == expected


def test_a_broker_without_settings_gives_the_defaults() -> None:
    assert topic_log_config(BrokerConfig(), {}) == LogConfig()


def test_topics_without_overrides_share_one_object() -> None:
    broker = BrokerConfig()
    assert topic_log_config(broker, {}) is topic_log_config(broker, {})


@pytest.mark.parametrize(
    ("given", "retention_ms"),
    [
        ({"log.retention.hours": "2"}, 7_200_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "4"}, 4),
        ({"log.retention.ms": "-1", "log.retention.hours": "2"}, -1),
        ({"log.retention.hours": "-7"}, -1),
    ],
)
def test_the_finer_unit_of_retention_wins(given: dict[str, str], retention_ms: int) -> None:
    assert BrokerConfig(given).log_defaults().retention_ms == retention_ms


def test_the_finer_unit_of_rolling_and_flushing_wins() -> None:
    coarse = BrokerConfig(
        {"log.roll.hours": "1", "log.roll.jitter.hours": "1", "log.flush.scheduler.interval.ms": "50"}
    ).log_defaults()
    assert (coarse.segment_ms, coarse.segment_jitter_ms, coarse.flush_ms) == (3_600_000, 3_600_000, 50)
    fine = BrokerConfig(
        {
            "log.roll.hours": "1",
            "log.roll.ms": "10",
            "log.roll.jitter.hours": "1",
            "log.roll.jitter.ms": "0",
            "log.flush.scheduler.interval.ms": "50",
            "log.flush.interval.ms": "0",
        }
    ).log_defaults()
    assert (fine.segment_ms, fine.segment_jitter_ms, fine.flush_ms) == (10, 0, 0)


def test_a_topics_own_settings_win_over_the_brokers() -> None:
    broker = BrokerConfig({"log.segment.bytes": "2000000", "message.max.bytes": "5000"})
    config = topic_log_config(broker, {"segment.bytes": "3000000", "cleanup.policy": "compact,delete"})
    assert config.segment_bytes == 3_000_000
    assert config.max_message_bytes == 5000
    assert (config.compact, config.delete) == (True, True)


def test_an_altered_broker_setting_reaches_topics_without_their_own() -> None:
    broker = BrokerConfig().with_dynamic({"log.retention.ms": "5000"})
    assert topic_log_config(broker, {}).retention_ms == 5000


def test_an_empty_policy_neither_deletes_nor_compacts() -> None:
    config = topic_log_config(BrokerConfig(), {"cleanup.policy": ""})
    assert (config.compact, config.delete) == (False, False)


def test_the_clock_that_stamps_records() -> None:
    assert not LogConfig().log_append_time
    assert topic_log_config(BrokerConfig(), {"message.timestamp.type": "LogAppendTime"}).log_append_time


def test_tests_may_have_segments_below_the_public_minimum() -> None:
    assert topic_log_config(BrokerConfig(), {"internal.segment.bytes": "1000"}).segment_bytes == 1000


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ConfigError, match="not a topic setting"):
        topic_log_config(BrokerConfig(), {"no.such.name": "1"})
