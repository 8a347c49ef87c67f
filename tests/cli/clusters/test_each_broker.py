"""All brokers are asked at once, and those that do not answer are left out."""

import socket

from mainstem.cli.clusters.each_broker import ask_each, hasty
from mainstem.testing import Broker
from mainstem.wire import ClientOptions


def test_one_that_hangs_and_one_that_is_gone_are_left_out(broker: Broker) -> None:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        addresses = {1: (host, int(port)), 2: hanging.getsockname()[:2]}
        with socket.create_server(("127.0.0.1", 0)) as other:
            addresses[3] = other.getsockname()[:2]
        options = ClientOptions(request_timeout_ms=500)
        answers = ask_each(options, addresses, lambda node_id, connection: (node_id, connection.address))
    assert answers == {1: (1, broker.bootstrap_servers)}
    assert ask_each(options, {}, lambda *_: True) == {}


def test_who_has_less_patience_keeps_it() -> None:
    found = hasty(ClientOptions(request_timeout_ms=7, api_timeout_ms=9_000_000), 50)
    assert (found.request_timeout_ms, found.api_timeout_ms) == (7, 50)
