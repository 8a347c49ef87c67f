"""Settings that contradict each other are refused as Kafka refuses them."""

import pytest

from mainstem.config import BrokerConfig, ConfigError, per_ip_overrides
from mainstem.config.rules import check_broker_rules


def test_the_defaults_agree() -> None:
    check_broker_rules(BrokerConfig())


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"node.id": "1", "broker.id": "2"}, "must be the same"),
        ({"process.roles": "broker"}, "nothing says where its controllers are"),
        (
            {"process.roles": "broker", "controller.quorum.voters": "1@localhost:9093"},
            "it names node 1, which is only a broker",
        ),
        (
            {"node.id": "4", "controller.quorum.voters": "1@localhost:9093"},
            "it does not name this controller, node 4",
        ),
        ({"controller.quorum.voters": "1@localhost"}, '"localhost" is not of the form host:port'),
        ({"log.dirs": "/a,/b", "cordoned.log.dirs": "/c"}, '"/c" is not one of log.dirs'),
        ({"log.dirs": "/a,/b", "cordoned.log.dirs": "*,/a"}, '"*" is not one of log.dirs'),
        ({"log.retention.ms": "0"}, "log.retention.ms: 0 is out of range; allowed: 1 or more, or -1"),
        ({"log.retention.hours": "0"}, "log.retention.hours: 0 is out of range"),
        ({"log.roll.ms": "0"}, "log.roll.ms: 0 is out of range; allowed: 1 or more"),
        ({"log.roll.jitter.ms": "-1"}, "log.roll.jitter.ms: -1 is out of range; allowed: 0 or more"),
        ({"queued.max.request.bytes": "1000"}, "less than socket.request.max.bytes (104857600)"),
        ({"max.connections": "0"}, "max.connections: 0 lets nobody in; allowed: 1 or more"),
        ({"max.connections.per.ip": "0"}, "lets nobody in"),
        ({"log.cleaner.dedupe.buffer.size": "-5"}, "size: -5 is out of range; allowed: more than 1048576"),
        ({"log.cleaner.dedupe.buffer.size": "1048576"}, "for each of log.cleaner.threads (1)"),
        ({"log.cleaner.dedupe.buffer.size": "1048576", "log.cleaner.threads": "0"}, "more than 1048576"),
        ({"log.cleaner.threads": "128"}, "134217728 is out of range"),
        ({"max.connections.per.ip.overrides": "zz"}, '"zz" is not of the form host:count'),
        ({"max.connections.per.ip.overrides": "a:-1"}, "not of the form host:count"),
        ({"group.min.session.timeout.ms": "2000000"}, "is greater than group.max.session.timeout.ms"),
        ({"group.consumer.session.timeout.ms": "44999"}, "group.consumer.min.session.timeout.ms (45000) is"),
        (
            {"group.consumer.heartbeat.interval.ms": "15001"},
            "group.consumer.max.heartbeat.interval.ms (15000)",
        ),
        (
            {"group.consumer.max.assignment.interval.ms": "999"},
            "group.consumer.assignment.interval.ms (1000) is",
        ),
        ({"group.share.min.session.timeout.ms": "60001"}, "group.share.max.session.timeout.ms (60000)"),
        (
            {
                "group.streams.max.heartbeat.interval.ms": "45000",
                "group.streams.heartbeat.interval.ms": "45000",
            },
            "is not less than group.streams.session.timeout.ms (45000)",
        ),
        ({"group.coordinator.rebalance.protocols": "consumer"}, "classic groups cannot be switched off"),
        ({"group.consumer.assignors": "range,sticky"}, 'no assignor "sticky"; allowed: uniform, range'),
        (
            {"log.cleaner.min.compaction.lag.ms": "9", "log.cleaner.max.compaction.lag.ms": "8"},
            "is greater than",
        ),
    ],
)
def test_contradictions_are_refused(properties: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError) as raised:
        check_broker_rules(BrokerConfig(properties))
    assert words in raised.value.message


def test_an_unlimited_queue_agrees_with_any_request_size() -> None:
    check_broker_rules(BrokerConfig({"queued.max.request.bytes": "-1"}))
    check_broker_rules(BrokerConfig({"queued.max.request.bytes": "104857600"}))


def test_every_cleaner_has_more_than_a_mebibyte() -> None:
    for threads in ("0", "1", "2", "127"):
        check_broker_rules(BrokerConfig({"log.cleaner.threads": threads}))
    check_broker_rules(BrokerConfig({"log.cleaner.dedupe.buffer.size": "1048577"}))


def test_limits_for_particular_addresses() -> None:
    config = BrokerConfig(
        {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "127.0.0.1:5, [::1]:6,host:7"}
    )
    check_broker_rules(config)
    assert per_ip_overrides(config) == {"127.0.0.1": 5, "::1": 6, "host": 7}
