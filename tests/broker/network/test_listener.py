"""Where a listener listens: `localhost` is both loopback addresses, as far as the machine has them."""

import socket

import pytest

from mainstem.broker.network import listener
from mainstem.config.listeners import Listener


def loopback_addresses() -> set[str]:
    """Those that this machine has."""
    found = set()
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        try:
            with socket.socket(family) as sock:
                sock.bind((host, 0))
            found.add(host)
        except OSError:
            continue
    return found


@pytest.mark.parametrize("name", ["localhost", "LocalHost"])
def test_localhost_is_both_loopback_addresses_whatever_the_hosts_file_says(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hosts_file_without_ipv6(*_: object, **__: object) -> list[object]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", hosts_file_without_ipv6)
    bound = listener.bind(Listener("PLAINTEXT", name, 0, "PLAINTEXT", name, 0, False), backlog=1)
    try:
        assert {sock.getsockname()[0] for sock in bound} == loopback_addresses()
        assert len({sock.getsockname()[1] for sock in bound}) == 1
    finally:
        for sock in bound:
            sock.close()


def test_a_loopback_address_that_the_machine_lacks_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    class Ipv4Only(socket.socket):
        def bind(self, address: tuple[str, int]) -> None:  # type: ignore[override]
            if self.family == socket.AF_INET6:
                raise OSError(99, "Cannot assign requested address")
            super().bind(address)

    monkeypatch.setattr(socket, "socket", Ipv4Only)
    (bound,) = listener.bind(
        Listener("PLAINTEXT", "localhost", 0, "PLAINTEXT", "localhost", 0, False), backlog=1
    )
    assert bound.getsockname()[0] == "127.0.0.1"
    bound.close()
