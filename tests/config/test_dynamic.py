"""What may be altered while the broker runs, and at which level."""

import pytest

from mainstem.config import BrokerConfig, ConfigError, is_list_broker_setting, validate_dynamic_broker
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


@pytest.mark.parametrize("per_broker", [True, False])
def test_rules_across_settings_are_checked_on_the_outcome(per_broker: bool) -> None:
    current = BrokerConfig().with_dynamic({"log.cleaner.max.compaction.lag.ms": "100"})
    validate_dynamic_broker(
        "log.cleaner.min.compaction.lag.ms", "100", per_broker=per_broker, current=current
    )
    with pytest.raises(ConfigError, match=r"\(101\) is greater than"):
        validate_dynamic_broker(
            "log.cleaner.min.compaction.lag.ms", "101", per_broker=per_broker, current=current
        )
    with pytest.raises(ConfigError, match=r"log\.roll\.ms: 0"):
        validate_dynamic_broker("log.roll.ms", "0", per_broker=per_broker, current=current)


def test_only_lists_can_be_appended_to() -> None:
    assert is_list_broker_setting("log.cleanup.policy")
    assert not is_list_broker_setting("num.io.threads")
    assert not is_list_broker_setting("no.such.name")
