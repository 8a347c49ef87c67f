"""The connection to another broker: made when wanted, pipelined, told at once of what goes wrong, and never a
burden to the loop.
"""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from mainstem.broker.network.peers import PeerConnection, PeerOptions
from mainstem.protocol.apis.k00_produce import ProduceResponse
from mainstem.protocol.apis.k03_metadata import MetadataRequest, MetadataResponse
from mainstem.protocol.apis.k17_sasl_handshake import SaslHandshakeResponse
from mainstem.protocol.apis.k18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from mainstem.protocol.apis.k36_sasl_authenticate import SaslAuthenticateResponse
from mainstem.protocol.uuids import ZERO_UUID
from mainstem.testing import Broker
from mainstem.testing.in_process import InProcessBroker
from mainstem.wire import ClientOptions, ConnectionLost, NotServed, SaslOptions
from mainstem.wire.errors import ConnectionRefused, SecurityError, WireError
from tests.broker.harness import Topic, eventually, produce_request
from tests.wire.scripted_broker import API_VERSIONS, METADATA, Frame, Script, ScriptedBroker

SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36
METADATA_OF_NOTHING = MetadataRequest(topics=[])
AT_ONCE = PeerOptions(reconnect_backoff_ms=1, reconnect_backoff_max_ms=2)
# A pause that no test waits for.
AFTER_AN_HOUR = PeerOptions(reconnect_backoff_ms=3_600_000, reconnect_backoff_max_ms=3_600_000)
LONG_S = 30.0


@asynccontextmanager
async def peer_at(
    port: int, options: PeerOptions = AT_ONCE, host: str = "127.0.0.1"
) -> AsyncIterator[PeerConnection]:
    peer = PeerConnection(asyncio.get_running_loop(), (host, port), options, lambda: 0.5)
    try:
        yield peer
    finally:
        peer.close()


def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port: int = sock.getsockname()[1]
        return port


async def outcomes(peer: PeerConnection, *requests: Any, timeout_s: float = LONG_S) -> list[Any]:
    """What all of these requests, asked at once, come to; in the order in which it came."""
    found: list[Any] = []
    for request in requests:
        peer.request(request, found.append, timeout_s=timeout_s)
    assert found == []  # nothing is called back before the call has returned
    await eventually(lambda: len(found) == len(requests), "an outcome of each request")
    return found


def large_request(name: str) -> Any:
    return produce_request(Topic(name, ZERO_UUID), {0: b"x" * 4 * 1024 * 1024})


async def test_requests_are_answered_in_their_order(broker: InProcessBroker) -> None:
    """Small and large ones: what the socket does not take at once is sent when it does."""
    requests = [METADATA_OF_NOTHING, large_request("absent"), ApiVersionsRequest("t", "1")] * 5
    kinds = [MetadataResponse, ProduceResponse, ApiVersionsResponse] * 5
    async with peer_at(broker.port) as peer:
        assert [type(answer) for answer in await outcomes(peer, *requests)] == kinds
        first = peer._sock
        assert [type(answer) for answer in await outcomes(peer, *requests)] == kinds
        assert peer._sock is first


async def test_no_connection_is_made_before_one_is_wanted(broker: InProcessBroker) -> None:
    async with peer_at(broker.port) as peer:
        await asyncio.sleep(0)  # whatever it might have begun has its turn
        assert peer._sock is None
        assert peer._dialing is None
        await peer.call(METADATA_OF_NOTHING, timeout_s=LONG_S)
        assert peer._sock is not None


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
async def test_a_peer_is_found_by_name_and_by_address(broker: InProcessBroker, host: str) -> None:
    async with peer_at(broker.port, host=host) as peer:
        assert isinstance(await peer.call(METADATA_OF_NOTHING, timeout_s=LONG_S), MetadataResponse)


async def test_a_name_that_is_none_is_told() -> None:
    async with peer_at(9092, host="x" * 300) as peer:
        with pytest.raises(ConnectionLost):
            await peer.call(METADATA_OF_NOTHING, timeout_s=LONG_S)


async def test_a_refused_connection_is_told_to_all_who_wait() -> None:
    async with peer_at(unused_port(), AFTER_AN_HOUR) as peer:
        found = await outcomes(peer, *[METADATA_OF_NOTHING] * 3)
        assert [type(outcome) for outcome in found] == [ConnectionRefused] * 3
        assert "connection refused" in str(found[0])


async def test_what_is_asked_during_a_pause_waits_for_its_end() -> None:
    port = unused_port()
    async with peer_at(port, PeerOptions(reconnect_backoff_ms=200, reconnect_backoff_max_ms=200)) as peer:
        await outcomes(peer, METADATA_OF_NOTHING)
        with socket.create_server(("127.0.0.1", port)) as listener:
            listener.setblocking(False)
            peer.request(METADATA_OF_NOTHING, lambda _: None, timeout_s=LONG_S)
            with pytest.raises(BlockingIOError):  # nobody has dialed yet
                listener.accept()
            connection, _ = await asyncio.get_running_loop().sock_accept(listener)
            connection.close()


async def test_a_request_waits_no_longer_than_it_has_time() -> None:
    async with peer_at(unused_port(), AFTER_AN_HOUR) as peer:
        await outcomes(peer, METADATA_OF_NOTHING)
        with pytest.raises(ConnectionLost, match=r"no connection in the 0\.05 s that the request had"):
            await peer.call(METADATA_OF_NOTHING, timeout_s=0.05)


async def test_a_killed_broker_fails_what_is_under_way_and_is_found_again() -> None:
    with Broker() as broker:
        async with peer_at(broker.port) as peer:
            await peer.call(METADATA_OF_NOTHING, timeout_s=LONG_S)
            os.kill(broker.pid, signal.SIGSTOP)  # so that it answers nothing more
            found: list[Any] = []
            for _ in range(3):
                peer.request(METADATA_OF_NOTHING, found.append, timeout_s=LONG_S)
            await asyncio.to_thread(broker.kill)
            await eventually(lambda: len(found) == 3, "the failures of all three")
            assert all(isinstance(outcome, ConnectionLost) for outcome in found)
            with pytest.raises(ConnectionRefused):
                await peer.call(METADATA_OF_NOTHING, timeout_s=LONG_S)
            await asyncio.to_thread(broker.start)
            assert isinstance(await peer.call(METADATA_OF_NOTHING, timeout_s=LONG_S), MetadataResponse)


@asynccontextmanager
async def scripted(
    scripts: dict[int, Script], options: PeerOptions = AT_ONCE
) -> AsyncIterator[tuple[PeerConnection, ScriptedBroker]]:
    with ScriptedBroker(scripts) as broker:
        async with peer_at(broker.port, options) as peer:
            yield peer, broker


async def test_silence_ends_the_connection_and_all_that_waits_for_it() -> None:
    async with scripted({METADATA: lambda _: None}) as (peer, _):
        await peer.call(ApiVersionsRequest(), timeout_s=LONG_S)
        found: list[Any] = []
        peer.request(METADATA_OF_NOTHING, found.append, timeout_s=0.05)
        peer.request(METADATA_OF_NOTHING, found.append, timeout_s=LONG_S)
        await eventually(lambda: len(found) == 2, "both failures")
        assert all("it did not answer Metadata in 0.05 s" in str(outcome) for outcome in found)
        assert isinstance(await peer.call(ApiVersionsRequest(), timeout_s=LONG_S), ApiVersionsResponse)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"\x00\x00", "the broker closed the connection"),
        (b"\x7f\xff\xff\xff", "it claims 2147483647 bytes"),
        (b"\x00\x00\x00\x05\x00\x00\x00\x63\x00", "an answer that was not asked for: to request 99"),
        (Frame(b"\x00\x00\x00\x02\x00\xff"), "an answer that cannot be read"),
    ],
)
async def test_bytes_that_are_no_answer_end_the_connection(answer: Any, problem: str) -> None:
    async with scripted({METADATA: lambda _: answer}, AFTER_AN_HOUR) as (peer, _):
        (outcome,) = await outcomes(peer, METADATA_OF_NOTHING)
        assert isinstance(outcome, ConnectionLost)
        assert problem in str(outcome)


async def test_an_api_that_the_peer_lacks_fails_alone() -> None:
    async with scripted({API_VERSIONS: lambda _: ApiVersionsResponse()}, AFTER_AN_HOUR) as (peer, _):
        found = await outcomes(peer, METADATA_OF_NOTHING, METADATA_OF_NOTHING)
        assert [type(outcome) for outcome in found] == [NotServed, NotServed]
        assert peer._sock is not None


async def test_whoever_closes_fails_what_is_under_way_and_what_comes_after() -> None:
    async with scripted({METADATA: lambda _: None}) as (peer, broker):
        found: list[Any] = []
        peer.request(METADATA_OF_NOTHING, found.append, timeout_s=LONG_S)
        await eventually(lambda: len(broker.requests) == 2, "the request at the broker")
        peer.request(METADATA_OF_NOTHING, found.append, timeout_s=LONG_S)
        peer.close()
        peer.request(METADATA_OF_NOTHING, found.append, timeout_s=LONG_S)
        await eventually(lambda: len(found) == 3, "all failures")
        assert all("this node has closed the connection" in str(outcome) for outcome in found)
        assert peer._sock is None


async def test_a_callback_may_close_the_connection(broker: InProcessBroker) -> None:
    async with peer_at(broker.port) as peer:
        found: list[Any] = []

        def close(outcome: Any) -> None:
            found.append(outcome)
            peer.close()

        peer.request(METADATA_OF_NOTHING, close, timeout_s=LONG_S)
        peer.request(METADATA_OF_NOTHING, found.append, timeout_s=LONG_S)
        await eventually(lambda: len(found) == 2, "both outcomes")
        assert [type(outcome) for outcome in found] == [MetadataResponse, ConnectionLost]


def logins(answer: Callable[[], SaslAuthenticateResponse]) -> dict[int, Script]:
    return {
        SASL_HANDSHAKE: lambda _: SaslHandshakeResponse(mechanisms=["PLAIN"]),
        SASL_AUTHENTICATE: lambda _: answer(),
        METADATA: lambda _: MetadataResponse(),
    }


WITH_LOGIN = PeerOptions(
    ClientOptions(security_protocol="SASL_PLAINTEXT", sasl=SaslOptions("PLAIN", "node-1", "hush")), 1, 2
)


async def test_a_node_logs_in_and_does_so_anew_in_time() -> None:
    """The login counts for a moment, then for an hour: the next request goes over a new connection."""
    lifetimes = iter([1, 3_600_000])

    def accept() -> SaslAuthenticateResponse:
        return SaslAuthenticateResponse(session_lifetime_ms=next(lifetimes))

    async with scripted(logins(accept), WITH_LOGIN) as (peer, _):
        first = await outcomes(peer, METADATA_OF_NOTHING, METADATA_OF_NOTHING)
        second = await outcomes(peer, METADATA_OF_NOTHING, METADATA_OF_NOTHING)
        assert [type(outcome) for outcome in (*first, *second)] == [MetadataResponse] * 4
        assert next(lifetimes, None) is None


async def test_a_login_that_is_refused_is_told_without_the_secret() -> None:
    def refuse() -> SaslAuthenticateResponse:
        return SaslAuthenticateResponse(58, "no such node")

    async with scripted(logins(refuse), WITH_LOGIN) as (peer, _):
        (outcome,) = await outcomes(peer, METADATA_OF_NOTHING)
        assert isinstance(outcome, SecurityError)
        assert "does not accept user 'node-1' with SASL PLAIN: no such node" in str(outcome)
        assert isinstance(outcome, WireError)
        assert "hush" not in str(outcome)
