"""Layers of settings: defaults below what was given at the start, below what was altered."""

import pytest

from mainstem.config import BrokerConfig, ConfigError, ConfigSource, describe_cluster_default
from mainstem.config.tables import BROKER_SETTINGS


def test_defaults_are_in_force_when_nothing_is_given() -> None:
    config = BrokerConfig()
    assert config.get("num.partitions") == 1
    assert config.source("num.partitions") is ConfigSource.DEFAULT_CONFIG
    assert config.override("num.partitions") is None
    assert config.given() == []


def test_every_declared_setting_can_be_read() -> None:
    config = BrokerConfig()
    for name in BROKER_SETTINGS:
        config.get(name)
        config.source(name)


def test_an_undeclared_name_is_a_programming_error() -> None:
    with pytest.raises(KeyError):
        BrokerConfig().get("no.such.name")
    with pytest.raises(KeyError):
        BrokerConfig().source("no.such.name")


def test_altered_values_win_over_given_ones_and_the_brokers_own_over_the_clusters() -> None:
    static = BrokerConfig({"message.max.bytes": "1000"})
    assert (static.get("message.max.bytes"), static.source("message.max.bytes")) == (
        1000,
        ConfigSource.STATIC_BROKER_CONFIG,
    )
    cluster = static.with_dynamic({}, {"message.max.bytes": "2000"})
    assert (cluster.get("message.max.bytes"), cluster.source("message.max.bytes")) == (
        2000,
        ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG,
    )
    own = static.with_dynamic({"message.max.bytes": "3000"}, {"message.max.bytes": "2000"})
    assert (own.get("message.max.bytes"), own.source("message.max.bytes")) == (
        3000,
        ConfigSource.DYNAMIC_BROKER_CONFIG,
    )
    assert own.override("message.max.bytes") == "3000"
    assert static.get("message.max.bytes") == 1000


def test_new_alterations_replace_the_former_ones() -> None:
    config = BrokerConfig().with_dynamic({"message.max.bytes": "2000"}).with_dynamic({})
    assert config.source("message.max.bytes") is ConfigSource.DEFAULT_CONFIG


def test_an_altered_value_that_cannot_be_used_leaves_the_former_in_force_and_is_reported() -> None:
    config = BrokerConfig({"message.max.bytes": "1000"}).with_dynamic({"message.max.bytes": "-5"})
    assert config.get("message.max.bytes") == 1000
    assert config.dynamic_errors == ("message.max.bytes: -5 is out of range; allowed: 0 or more",)
    assert config.source("message.max.bytes") is ConfigSource.STATIC_BROKER_CONFIG
    assert describe_cluster_default(BrokerConfig().with_dynamic({}, {"message.max.bytes": "-5"})) == []


def test_a_given_value_that_cannot_be_used_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"^num\.partitions: 0 is out of range; allowed: 1 or more$"):
        BrokerConfig({"num.partitions": "0"})


@pytest.mark.parametrize("given", ["node.id", "broker.id"])
def test_node_id_and_broker_id_are_one(given: str) -> None:
    config = BrokerConfig({given: "7"})
    assert (config.get("node.id"), config.get("broker.id")) == (7, 7)
    assert config.source("node.id") is ConfigSource.STATIC_BROKER_CONFIG


def test_without_any_id_both_are_the_default() -> None:
    config = BrokerConfig()
    assert (config.get("node.id"), config.get("broker.id")) == (1, 1)


def test_an_alias_gives_the_real_setting() -> None:
    config = BrokerConfig({"unclean.leader.election": "true", "replication.factor": "3"})
    assert config.get("unclean.leader.election.enable") is True
    assert config.get("default.replication.factor") == 3


def test_a_real_name_wins_over_its_alias() -> None:
    config = BrokerConfig({"default.replication.factor": "2", "replication.factor": "3"})
    assert config.get("default.replication.factor") == 2


def test_a_nodes_own_default_counts_as_a_default() -> None:
    config = BrokerConfig(defaults={"log.dir": "/data/here"})
    assert config.log_dirs() == ("/data/here",)
    assert config.source("log.dir") is ConfigSource.DEFAULT_CONFIG
    assert config.default("log.dir") == ("/data/here",)
    assert config.with_dynamic({}).log_dirs() == ("/data/here",)


def test_log_dirs_wins_over_log_dir() -> None:
    assert BrokerConfig({"log.dir": "/a", "log.dirs": "/b, /c"}).log_dirs() == ("/b", "/c")


def test_names_that_kafka_does_not_know_are_kept_as_given() -> None:
    config = BrokerConfig({"my.plugin.name": "x"})
    assert config.given() == ["my.plugin.name"]
    assert config.override("my.plugin.name") == "x"
