"""Which node votes by its settings, and which one stands alone."""

import pytest

from mainstem.config import BrokerConfig, ConfigError, parse_listeners
from mainstem.config.quorum import QuorumSettings, quorum_settings

LISTENERS = "PLAINTEXT://:9092,CONTROLLER://:9093"


def settings(given: dict[str, str]) -> tuple[QuorumSettings, bool]:
    config = BrokerConfig({"node.id": "1", "listeners": LISTENERS} | given)
    found = quorum_settings(config)
    return found, found.stands_alone(parse_listeners(config))


def test_voters_and_servers_are_read() -> None:
    found, _ = settings(
        {
            "controller.quorum.voters": "1@one:9093, 2@[::1]:9094",
            "controller.quorum.bootstrap.servers": "one:9093",
            "controller.listener.names": "controller,other",
        }
    )
    assert found.voters == {1: ("one", 9093), 2: ("::1", 9094)}
    assert found.bootstrap_servers == (("one", 9093),)
    assert found.listener == "CONTROLLER"


@pytest.mark.parametrize(
    ("given", "alone"),
    [
        ({}, True),
        ({"controller.quorum.voters": "1@one:9093"}, True),
        ({"controller.quorum.voters": "1@localhost:0"}, True),
        ({"controller.quorum.voters": "1@one:9093,2@two:9093"}, False),
        ({"controller.quorum.bootstrap.servers": "localhost:9093"}, True),
        ({"controller.quorum.bootstrap.servers": "localhost:9193"}, False),
        ({"controller.quorum.bootstrap.servers": "other:9093"}, False),
        ({"controller.quorum.bootstrap.servers": "localhost:9093,other:9093"}, False),
        ({"process.roles": "broker", "listeners": "PLAINTEXT://:9092"}, False),
    ],
)
def test_a_node_stands_alone_when_no_setting_names_another(given: dict[str, str], alone: bool) -> None:
    assert settings(given)[1] is alone


@pytest.mark.parametrize(
    "text",
    ["one:9093", "x@one:9093", "-1@one:9093", "1@one", "1@:9093", "2@one:0", "1@one:0,2@b:1", "1@one:70000"],
)
def test_what_is_no_voter_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not of the form"):
        settings({"controller.quorum.voters": text})
