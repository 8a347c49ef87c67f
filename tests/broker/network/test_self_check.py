"""The addresses that clients are told to dial are tried by the node itself."""

import asyncio
import socket

import pytest

from mainstem.broker.network.listener import BoundListener
from mainstem.broker.network.self_check import check_advertised
from mainstem.protocol.apis.k18_api_versions import ApiVersionsResponse
from mainstem.protocol.errors import ErrorCode
from mainstem.testing.in_process import InProcessBroker
from tests.wire.scripted_broker import API_VERSIONS, ScriptedBroker


async def check(listeners: list[BoundListener]) -> list[str]:
    return await check_advertised(listeners, asyncio.get_running_loop(), lambda: 0.5)


async def test_an_address_at_which_the_node_answers_is_good(broker: InProcessBroker) -> None:
    (listener,) = broker.node.bound_listeners
    assert await check([listener._replace(host="0.0.0.0")]) == []


async def test_a_loopback_address_that_is_listened_at_need_not_be_asked(broker: InProcessBroker) -> None:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
    (listener,) = broker.node.bound_listeners
    nobody = listener._replace(port=port, advertised_port=port)
    assert await check([nobody]) == []
    assert len(await check([nobody._replace(host="0.0.0.0")])) == 1


async def test_an_address_at_which_nobody_answers_is_told(
    broker: InProcessBroker, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
    (listener,) = broker.node.bound_listeners
    (problem,) = await check([listener._replace(advertised_port=port)])
    assert f"clients are told to connect to 127.0.0.1:{port}, but this machine itself cannot" in problem
    assert "(connection refused); set advertised.listeners=PLAINTEXT://HOST:PORT" in problem
    assert problem in caplog.text


async def test_an_address_at_which_the_answer_is_a_refusal_is_told(broker: InProcessBroker) -> None:
    refusal = ApiVersionsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    with ScriptedBroker({API_VERSIONS: lambda _: refusal}) as other:
        (listener,) = broker.node.bound_listeners
        (problem,) = await check([listener._replace(advertised_port=other.port)])
    assert "CLUSTER_AUTHORIZATION_FAILED" in problem


async def test_an_address_at_which_something_else_answers_is_told(broker: InProcessBroker) -> None:
    with ScriptedBroker({API_VERSIONS: lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n"}) as other:
        (listener,) = broker.node.bound_listeners
        (problem,) = await check([listener._replace(advertised_port=other.port)])
    assert "that is no Kafka broker: it speaks HTTP" in problem
