"""Ports that are free, and stay so while nodes restart."""

import socket

from mainstem.local_cluster.ports import free_ports, is_free


def test_free_ports_differ_and_leave_out_what_is_taken() -> None:
    first = free_ports("127.0.0.1", 5)
    assert len({*first, *free_ports("127.0.0.1", 5, first)}) == 10
    assert all(port < 32768 for port in first)


def test_a_port_where_somebody_listens_is_not_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert not is_free("127.0.0.1", port)
    assert is_free("127.0.0.1", port)


def test_a_host_that_does_not_exist_is_left_to_the_node_to_complain_of() -> None:
    assert is_free("no.such.host.invalid", 9092)
