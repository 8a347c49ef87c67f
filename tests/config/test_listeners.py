"""Listener settings become addresses to bind and addresses to tell."""

import pytest

from mainstem.config import BrokerConfig, ConfigError, Listener, can_be_joined, parse_listeners
from mainstem.config.listeners import inter_broker_listener


def _parse(hostname: str = "localhost", /, **properties: str) -> list[Listener]:
    return parse_listeners(
        BrokerConfig({name.replace("_", "."): text for name, text in properties.items()}), hostname
    )


def test_the_default_listens_everywhere_and_advertises_the_host_name() -> None:
    assert _parse("machine") == [Listener("PLAINTEXT", "", 9092, "PLAINTEXT", "machine", 9092, False)]


def test_a_listener_with_a_host_advertises_it() -> None:
    (listener,) = _parse(listeners="PLAINTEXT://127.0.0.1:0")
    assert (listener.host, listener.port) == ("127.0.0.1", 0)
    assert (listener.advertised_host, listener.advertised_port) == ("127.0.0.1", 0)


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]"])
def test_a_listener_on_every_interface_advertises_the_host_name(host: str) -> None:
    (listener,) = _parse("machine", listeners=f"PLAINTEXT://{host}:9092")
    assert listener.advertised_host == "machine"


def test_an_ipv6_address_stands_in_brackets() -> None:
    (listener,) = _parse(listeners="PLAINTEXT://[::1]:9092")
    assert (listener.host, listener.port, listener.advertised_host) == ("::1", 9092, "::1")


def test_several_named_listeners_and_what_they_advertise() -> None:
    inside, outside, controller = _parse(
        listeners="INSIDE://10.0.0.1:9092,outside://:9094,CTRL://:9093",
        advertised_listeners="OUTSIDE://broker.example.org:443",
        controller_listener_names="CTRL",
        listener_security_protocol_map="INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT,CTRL:PLAINTEXT,SSL:SSL",
        inter_broker_listener_name="INSIDE",
    )
    assert (inside.name, inside.advertised_host, inside.advertised_port) == ("INSIDE", "10.0.0.1", 9092)
    assert (outside.name, outside.advertised_host, outside.advertised_port) == (
        "OUTSIDE",
        "broker.example.org",
        443,
    )
    assert [listener.is_controller for listener in (inside, outside, controller)] == [False, False, True]


def test_an_advertised_port_of_zero_is_whatever_gets_bound() -> None:
    (listener,) = _parse(listeners="PLAINTEXT://:0", advertised_listeners="PLAINTEXT://localhost:0")
    assert (listener.advertised_host, listener.advertised_port) == ("localhost", 0)


def test_a_controllers_listener_needs_no_entry_in_the_default_map() -> None:
    listeners = _parse(listeners="PLAINTEXT://:9092,CONTROLLER://:9093")
    assert [listener.protocol for listener in listeners] == ["PLAINTEXT", "PLAINTEXT"]


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"listeners": "PLAINTEXT"}, "not of the form NAME://host:port"),
        ({"listeners": "://:9092"}, "not of the form"),
        ({"listeners": "PLAINTEXT://localhost"}, "not of the form"),
        ({"listeners": "PLAINTEXT://:x"}, "not of the form"),
        ({"listeners": "PLAINTEXT://:-1"}, "not of the form"),
        ({"listeners": "PLAINTEXT://:65536"}, "port 65536 is out of range; allowed: 0 to 65535"),
        ({"listeners": "PLAINTEXT://:1,plaintext://:2"}, "PLAINTEXT is there twice"),
        ({"listeners": "PLAINTEXT://:1,CONTROLLER://:1"}, "port 1 is there twice"),
        ({"listeners": "FOO://:1"}, "add FOO:PLAINTEXT to it"),
        ({"listeners": "CONTROLLER://:1"}, "none that serves clients"),
        ({"advertised_listeners": "OTHER://host:1"}, "OTHER is not one of the listeners"),
        ({"advertised_listeners": "PLAINTEXT://0.0.0.0:1"}, "a host that clients can dial"),
        ({"advertised_listeners": "PLAINTEXT://:1"}, "a host that clients can dial"),
        ({"inter_broker_listener_name": "OTHER"}, "OTHER is not one of the listeners"),
        ({"listener_security_protocol_map": "PLAINTEXT"}, "not NAME:PLAINTEXT|SSL"),
        ({"listener_security_protocol_map": "PLAINTEXT:TLS"}, "not NAME:PLAINTEXT|SSL"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(properties: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError) as raised:
        _parse(**properties)
    assert words in raised.value.message


QUORUM = {"controller_quorum_voters": "1@a:9093,2@b:9093", "process_roles": "broker,controller"}


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"process_roles": "broker", "listeners": "PLAINTEXT://:1,CONTROLLER://:2"}, "only a broker"),
        ({"process_roles": "controller", "listeners": "PLAINTEXT://:1"}, "only a controller"),
        ({"process_roles": "controller", "listeners": "PLAINTEXT://:1,CONTROLLER://:2"}, "only a controller"),
        ({"listeners": "PLAINTEXT://:1"} | QUORUM, "which have to reach this one"),
        (
            {"inter_broker_listener_name": "PLAINTEXT", "security_inter_broker_protocol": "PLAINTEXT"},
            "only one of the two",
        ),
    ],
)
def test_listeners_that_do_not_fit_the_roles_are_refused_in_one_line(
    properties: dict[str, str], words: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        _parse(**properties)
    assert words in raised.value.message


def test_a_controller_alone_needs_no_listener_for_clients() -> None:
    (listener,) = _parse(process_roles="controller", listeners="CONTROLLER://:9093")
    assert listener.is_controller


@pytest.mark.parametrize(
    ("properties", "name"),
    [
        ({"listeners": "CONTROLLER://:1,OUT://:2,PLAINTEXT://:3"}, "PLAINTEXT"),
        ({"listeners": "CONTROLLER://:1,OUT://:2,IN://:3"}, "OUT"),
        ({"listeners": "PLAINTEXT://:1,IN://:2", "inter_broker_listener_name": "in"}, "IN"),
    ],
)
def test_brokers_speak_to_each_other_by_one_listener(properties: dict[str, str], name: str) -> None:
    names = ("PLAINTEXT", "IN", "OUT", "CONTROLLER")
    protocols = {"listener.security.protocol.map": ",".join(f"{known}:PLAINTEXT" for known in names)}
    config = BrokerConfig({key.replace("_", "."): text for key, text in properties.items()} | protocols)
    assert inter_broker_listener(config, parse_listeners(config)) == name


def test_ports_of_zero_do_not_collide() -> None:
    assert len(_parse(listeners="PLAINTEXT://:0,CONTROLLER://:0")) == 2


@pytest.mark.parametrize(
    ("settings", "can_be"),
    [
        ({}, False),
        ({"listeners": "PLAINTEXT://:9092,CONTROLLER://:9093"}, True),
        ({"process.roles": "broker"}, True),
    ],
)
def test_other_nodes_can_join_where_a_controller_listens(settings: dict[str, str], can_be: bool) -> None:
    assert can_be_joined(BrokerConfig(settings)) is can_be
