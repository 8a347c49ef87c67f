"""A group's settings are refused where Kafka refuses them, shown as Kafka shows them, and bounded in use."""

import pytest

from mainstem.config import BrokerConfig, ConfigError, describe_group, group_values, validate_group_configs
from mainstem.config.definition import ConfigSource
from mainstem.config.tables import BROKER_SETTINGS, GROUP_SETTINGS

SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
INTERVAL = "consumer.assignment.interval.ms"
DEFAULTS = BrokerConfig()


@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {SESSION: "45000"},
        {SESSION: "60000", HEARTBEAT: " 15000 "},
        {INTERVAL: "0"},
        {"share.partition.max.record.locks": "100"},
        {"share.auto.offset.reset": "by_duration:PT1H"},
        {"streams.initial.rebalance.delay.ms": "2147483647"},
        {"streams.num.standby.replicas": "2"},
    ],
)
def test_accepted_as_kafka_accepts(overrides: dict[str, str]) -> None:
    validate_group_configs(overrides, DEFAULTS)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({SESSION: "44999"}, f"{SESSION}: 44999 is out of the broker's bounds; allowed: 45000 to 60000"),
        ({SESSION: "60001"}, f"{SESSION}: 60001 is out of the broker's bounds; allowed: 45000 to 60000"),
        ({SESSION: "0"}, f"{SESSION}: 0 is out of range; allowed: 1 or more"),
        ({SESSION: "soon"}, f'{SESSION}: "soon" is not a whole number; allowed: 1 or more'),
        (
            {"streams.num.standby.replicas": "3"},
            "streams.num.standby.replicas: 3 is out of the broker's bounds; allowed: 0 to 2",
        ),
        (
            {"consumer.session.timeout": "50000"},
            f"consumer.session.timeout is not a group setting; did you mean {SESSION}?",
        ),
    ],
)
def test_refused_as_kafka_refuses(overrides: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        validate_group_configs(overrides, DEFAULTS)
    assert refused.value.message == message


def test_the_session_outlasts_the_heartbeat_whoever_gave_them() -> None:
    broker = BrokerConfig(
        {"group.consumer.min.session.timeout.ms": "1000", "group.consumer.session.timeout.ms": "20000"}
    )
    validate_group_configs({SESSION: "5001"}, broker)
    with pytest.raises(ConfigError, match=rf"{SESSION} \(5000\) must be greater than {HEARTBEAT} \(5000\)"):
        validate_group_configs({SESSION: "5000"}, broker)
    with pytest.raises(ConfigError):
        validate_group_configs({SESSION: "9000", HEARTBEAT: "9000"}, broker)


def test_in_use_the_brokers_bounds_hold() -> None:
    overrides = {
        SESSION: "60000",
        HEARTBEAT: "5000",
        INTERVAL: "9",
        "share.isolation.level": "read_committed",
    }
    assert group_values({}, DEFAULTS) == {}
    assert group_values(overrides, DEFAULTS) == {
        SESSION: 60000,
        HEARTBEAT: 5000,
        INTERVAL: 9,
        "share.isolation.level": "read_committed",
    }
    narrower = BrokerConfig(
        {
            "group.consumer.max.session.timeout.ms": "50000",
            "group.consumer.min.heartbeat.interval.ms": "6000",
            "group.consumer.min.assignment.interval.ms": "10",
        }
    )
    values = group_values(overrides, narrower)
    assert (values[SESSION], values[HEARTBEAT], values[INTERVAL]) == (50000, 6000, 10)


def test_what_another_broker_wrote_is_passed_over() -> None:
    assert group_values({"consumer.new": "1", SESSION: "soon", HEARTBEAT: "6000"}, DEFAULTS) == {
        HEARTBEAT: 6000
    }


def test_every_synonym_is_a_broker_setting_with_the_same_default() -> None:
    for setting in GROUP_SETTINGS.values():
        if setting.synonym is not None:
            assert BROKER_SETTINGS[setting.synonym].default == setting.default
            assert BROKER_SETTINGS[setting.synonym].type is setting.type


def test_described_with_everything_that_could_give_the_value() -> None:
    broker = BrokerConfig(
        {"group.consumer.session.timeout.ms": " 50000 "},
        dynamic_broker={"group.consumer.assignment.interval.ms": "3000"},
        dynamic_default={"group.consumer.assignment.interval.ms": "2000"},
    )
    entries = {entry.name: entry for entry in describe_group(broker, {INTERVAL: "4000"})}
    assert entries.keys() == GROUP_SETTINGS.keys()
    assert entries[SESSION].value == "50000"
    assert entries[SESSION].source == ConfigSource.STATIC_BROKER_CONFIG
    assert entries[INTERVAL].value == "4000"
    assert [(synonym.value, synonym.source) for synonym in entries[INTERVAL].synonyms] == [
        ("4000", ConfigSource.GROUP_CONFIG),
        ("3000", ConfigSource.DYNAMIC_BROKER_CONFIG),
        ("2000", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        ("1000", ConfigSource.DEFAULT_CONFIG),
    ]
    assert entries["share.isolation.level"].synonyms[0].name == "share.isolation.level"
