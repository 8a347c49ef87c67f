"""From a server.properties and --set to a configuration, with warnings, or with one line why not."""

import pytest

from mainstem.config import ConfigError, parse_listeners, parse_properties, resolve

# The settings of the file that Kafka ships for a combined node.
STOCK = """\
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,\\
    SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/data/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=2
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


def test_the_file_that_kafka_ships_starts_the_broker() -> None:
    config, warnings = resolve(parse_properties(STOCK))
    assert [listener.name for listener in parse_listeners(config)] == ["PLAINTEXT", "CONTROLLER"]
    assert config.log_dirs() == ("/data/kraft-combined-logs",)
    assert sorted(line.partition(":")[0] for line in warnings) == [
        "share.coordinator.state.topic.min.isr",
        "share.coordinator.state.topic.replication.factor",
    ]


def test_set_wins_over_the_file_also_under_an_alias() -> None:
    config, _ = resolve(
        {"num.partitions": "3", "default.replication.factor": "2"},
        {"num.partitions": "5", "replication.factor": "1"},
    )
    assert config.get("num.partitions") == 5
    assert config.get("default.replication.factor") == 1


def test_an_unknown_name_in_a_file_is_a_warning_with_the_nearest_name() -> None:
    config, warnings = resolve({"num.partition": "3"})
    assert warnings == [
        "num.partition: there is no such setting, it is ignored; did you mean num.partitions?",
    ]
    assert config.get("num.partitions") == 1


def test_an_unknown_name_with_set_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(ConfigError) as raised:
        resolve({}, {"num.partition": "3"})
    assert (
        raised.value.message == "--set num.partition: there is no such setting; did you mean num.partitions?"
    )


def test_a_topics_setting_is_answered_with_the_brokers_name_for_it() -> None:
    with pytest.raises(
        ConfigError, match=r"it belongs to topics, the broker's setting is log\.retention\.ms"
    ):
        resolve({}, {"retention.ms": "1000"})


def test_a_known_setting_that_is_not_acted_on_is_a_warning() -> None:
    _, warnings = resolve({"num.io.threads": "16"}, {"group.share.max.size": "10"})
    assert warnings == [
        "num.io.threads: Mainstem does not act on this setting yet",
        "group.share.max.size: Mainstem does not act on this setting yet",
    ]


def test_a_default_that_is_spelled_out_needs_no_warning() -> None:
    _, warnings = resolve({"num.io.threads": " 8", "ssl.client.auth": "none", "authorizer.class.name": ""})
    assert warnings == []


def test_settings_that_are_acted_on_need_no_warning() -> None:
    _, warnings = resolve({"num.partitions": "4", "log.retention.minutes": "5", "broker.rack": "a"})
    assert warnings == []


@pytest.mark.parametrize("name", ["quota.producer.default", "quota.consumer.default"])
def test_the_old_quota_names_are_known_but_not_acted_on(name: str) -> None:
    _, warnings = resolve({name: "10485760"})
    assert warnings == [f"{name}: Mainstem does not act on this setting yet"]
    resolve({}, {name: "10485760"})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ssl.keystore.location", "/etc/keys.jks"),
        ("ssl.client.auth", "required"),
        ("sasl.enabled.mechanisms", "PLAIN"),
        ("sasl.jaas.config", "x required;"),
        ("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"),
        ("security.inter.broker.protocol", "SSL"),
        ("delegation.token.secret.key", "abc"),
        ("listener.name.internal.ssl.keystore.location", "/etc/keys.jks"),
        ("listener.name.internal.plain.sasl.jaas.config", "x required;"),
        ("listener.name.internal.scram-sha-256.sasl.jaas.config", "x required;"),
        ("plain.sasl.server.callback.handler.class", "x.Y"),
        ("ssl.made.up", "1"),
    ],
)
def test_a_protection_that_would_be_ignored_keeps_the_broker_from_starting(name: str, text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        resolve({name: text})
    assert raised.value.message.startswith(f"{name}: ")
    assert "\n" not in raised.value.message
    assert text not in raised.value.message.removeprefix(name) or text == "1"


@pytest.mark.parametrize(
    "properties",
    [
        {"listeners": "SSL://:9093"},
        {"listeners": "PLAINTEXT://:9092,SASL_SSL://:9094"},
        {"listeners": "OUT://:9092", "listener.security.protocol.map": "OUT:SASL_PLAINTEXT"},
        {"listeners": "PLAINTEXT://:9092", "listener.security.protocol.map": "PLAINTEXT:SSL"},
        {
            "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SSL",
        },
    ],
)
def test_a_listener_that_is_not_plaintext_keeps_the_broker_from_starting(properties: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="does not serve yet"):
        resolve(properties)


def test_a_value_out_of_range_is_one_line_with_name_value_and_range() -> None:
    with pytest.raises(ConfigError) as raised:
        resolve({}, {"compression.lz4.level": "18"})
    assert raised.value.message == "compression.lz4.level: 18 is out of range; allowed: 1 to 17"


def test_a_value_of_a_setting_that_is_not_acted_on_is_checked_too() -> None:
    with pytest.raises(ConfigError, match=r"^num\.io\.threads: 0 is out of range"):
        resolve({"num.io.threads": "0"})


def test_a_limit_for_one_listener_is_known_but_not_acted_on() -> None:
    _, warnings = resolve({"listener.name.plaintext.max.connections": "50"})
    assert warnings == ["listener.name.plaintext.max.connections: Mainstem does not act on this setting yet"]


VOTERS = "1@a:9093,2@b:9093,3@c:9093"


@pytest.mark.parametrize(
    "properties",
    [
        {"controller.quorum.voters": "1@a:9093"},
        {"listeners": "PLAINTEXT://:9092,CONTROLLER://:9093", "controller.quorum.voters": VOTERS},
        {"process.roles": "broker", "node.id": "4", "controller.quorum.voters": VOTERS},
        {"process.roles": "broker", "controller.quorum.bootstrap.servers": "a:9093,b:9093"},
        {"process.roles": "controller", "listeners": "CONTROLLER://:9093"},
    ],
)
def test_every_combination_of_roles_needs_no_warning(properties: dict[str, str]) -> None:
    assert resolve(properties)[1] == []


def test_a_nodes_own_defaults_draw_no_warning() -> None:
    config, warnings = resolve({}, {}, {"log.dir": "/data/mine"})
    assert (config.log_dirs(), warnings) == (("/data/mine",), [])
