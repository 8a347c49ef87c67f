"""Answers to clients on the same machine leave as fast as they are taken, whatever the system uses."""

import socket
from collections.abc import Iterator

import pytest

from mainstem.broker.network.network import send_unpaced

_OPTION = (socket.IPPROTO_TCP, socket.TCP_CONGESTION)


@pytest.fixture
def accepted() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as client:
        client.connect(listener.getsockname())
        server_side, _ = listener.accept()
        with server_side:
            yield server_side


def _in_use(sock: socket.socket) -> bytes:
    return sock.getsockopt(*_OPTION, 16).rstrip(b"\0")


@pytest.mark.parametrize(
    ("host", "expected"), [("127.0.0.1", b"reno"), ("::1", b"reno"), ("10.0.0.1", b"bbr")]
)
def test_bbr_is_for_connections_that_leave_the_machine(
    accepted: socket.socket, host: str, expected: bytes
) -> None:
    try:
        accepted.setsockopt(*_OPTION, b"bbr")
    except OSError:
        pytest.skip("this kernel has no BBR, so nothing could use it")
    send_unpaced(accepted, host)
    assert _in_use(accepted) == expected


def test_any_other_way_of_sending_stays(accepted: socket.socket) -> None:
    accepted.setsockopt(*_OPTION, b"reno")
    send_unpaced(accepted, "127.0.0.1")
    assert _in_use(accepted) == b"reno"
