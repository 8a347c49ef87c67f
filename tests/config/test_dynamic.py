"""What may be altered while the broker runs, and at which level."""

import pytest

from mainstem.config import (
    BrokerConfig,
    ConfigError,
    is_list_broker_setting,
    per_ip_overrides,
    validate_broker_outcome,
    validate_dynamic_broker,
    with_altered,
)
from mainstem.config.definition import UpdateMode
from mainstem.config.tables import BROKER_SETTINGS


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num.io.threads", "9"),
        ("log.retention.ms", "50000"),
        ("leader.replication.throttled.rate", "1000"),
        ("max.connections", "100"),
        ("listener.name.plaintext.max.connections", "50"),
        ("log.cleanup.policy", "compact,delete"),
        ("min.insync.replicas", "2"),
        ("name.of.a.plugin", None),
        ("log.retention.ms", None),
    ],
)
def test_accepted_for_one_broker(name: str, value: str | None) -> None:
    validate_dynamic_broker(name, value)


@pytest.mark.parametrize("name", [n for n, s in BROKER_SETTINGS.items() if s.update is UpdateMode.READ_ONLY])
def test_read_only_settings_cannot_be_altered(name: str) -> None:
    with pytest.raises(ConfigError, match="cannot be altered while the broker runs"):
        validate_dynamic_broker(name, "1")


@pytest.mark.parametrize("name", ["sasl.jaas.config", "ssl.keystore.type", "cordoned.log.dirs"])
def test_a_brokers_own_settings_cannot_be_the_clusters_default(name: str) -> None:
    with pytest.raises(ConfigError, match="not as the cluster's default"):
        validate_dynamic_broker(name, "x", per_broker=False)


@pytest.mark.parametrize(
    ("name", "value"),
    [("num.io.threads", "x"), ("max.connections", "-1"), ("leader.replication.throttled.rate", "-1")],
)
def test_values_are_checked(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"^{name}: "):
        validate_dynamic_broker(name, value)


def test_an_unknown_name_is_refused_with_the_nearest_known_one() -> None:
    with pytest.raises(ConfigError, match=r"did you mean max\.connections\?"):
        validate_dynamic_broker("max.conections", "5")


@pytest.mark.parametrize("name", ["listeners", "listener.security.protocol.map"])
def test_listeners_stay_as_they_were_at_the_start(name: str) -> None:
    with pytest.raises(ConfigError, match="cannot be altered"):
        validate_dynamic_broker(name, "PLAINTEXT://:1")


@pytest.mark.parametrize("name", ["sasl.jaas.config", "listener.name.plaintext.ssl.keystore.location"])
def test_a_protection_that_would_be_ignored_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="no TLS or authentication"):
        validate_dynamic_broker(name, "x")


MIN, MAX = "log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"


def test_an_outcome_that_contradicts_itself_is_refused() -> None:
    before = BrokerConfig().with_dynamic({MAX: "100"})
    validate_broker_outcome(before, before.with_dynamic({MAX: "100"}, {MIN: "100"}), {MIN})
    validate_broker_outcome(before, before.with_dynamic({MAX: "201", MIN: "200"}), {MIN, MAX})
    for after in ({MAX: "100", MIN: "101"}, {"log.roll.ms": "0"}):
        with pytest.raises(ConfigError, match=r"is greater than|out of range"):
            validate_broker_outcome(before, before.with_dynamic(after), set(after))


def test_what_contradicted_itself_before_does_not_keep_anybody_from_other_changes() -> None:
    before = BrokerConfig().with_dynamic(
        {"max.connections": "0", MIN: "2", MAX: "1"}, {"max.connections": "0"}
    )
    other = before.with_dynamic({"max.connections": "0", MIN: "2", MAX: "1", "log.roll.ms": "5"})
    validate_broker_outcome(before, other, {"log.roll.ms"})
    one_step = before.with_dynamic({MIN: "2", MAX: "1"}, {"max.connections": "0"})
    validate_broker_outcome(before, one_step, set())
    with pytest.raises(ConfigError, match="lets nobody in"):
        validate_broker_outcome(before, other, {"max.connections"})


def test_altered_values_that_lock_everybody_out_are_ignored_with_a_warning() -> None:
    start = BrokerConfig({"max.connections": "50", "max.connections.per.ip.overrides": "127.0.0.1:7"})
    altered = {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "", "log.roll.ms": "5"}
    config, problems = with_altered(start, altered, {"max.connections": "0", "num.io.threads": "x"})
    assert config.get("max.connections") == 50
    assert per_ip_overrides(config) == {"127.0.0.1": 7}
    assert config.get("max.connections.per.ip") == 2**31 - 1
    assert config.get("log.roll.ms") == 5
    assert [problem.partition(":")[0] for problem in problems] == [
        "num.io.threads",
        "max.connections",
        "max.connections.per.ip",
    ]
    assert all("ignored" in problem for problem in problems)


def test_what_contradicts_itself_from_the_start_is_nothing_to_ignore() -> None:
    assert with_altered(BrokerConfig({MIN: "2", MAX: "1"}), {}, {"log.roll.ms": "5"})[1] == []


def test_only_lists_can_be_appended_to() -> None:
    assert is_list_broker_setting("log.cleanup.policy")
    assert not is_list_broker_setting("num.io.threads")
    assert not is_list_broker_setting("no.such.name")
