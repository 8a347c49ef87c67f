"""Connections to other brokers, by the addresses in the metadata."""

import pytest

from mainstem.cluster.records import BrokerEndpoint, RegisterBrokerRecord
from mainstem.protocol.apis.k18_api_versions import ApiVersionsResponse
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.testing.in_process import InProcessBroker
from mainstem.wire.errors import ConnectionLost
from tests.broker.conftest import MakeBroker
from tests.broker.harness import API_VERSIONS

OTHER = 2


async def told(broker: InProcessBroker, port: int, listener: str = "PLAINTEXT") -> None:
    """The metadata says that the other broker is there."""
    server = broker.node.server
    record = RegisterBrokerRecord(
        broker_id=OTHER,
        incarnation_id=bytes(15) + b"\x07",
        broker_epoch=server.metadata_log.pending_image.offset + 1,
        end_points=[BrokerEndpoint(listener, "127.0.0.1", port, 0)],
        fenced=False,
    )
    await server.loader.applied(server.metadata_log.append([record]).offset)


async def test_a_broker_is_asked_where_the_metadata_says_that_it_is(make_broker: MakeBroker) -> None:
    asking, first, second = [await make_broker() for _ in range(3)]
    server = asking.node.server
    await told(asking, first.port)
    peer = server.peer(OTHER)
    assert isinstance(await peer.call(API_VERSIONS, timeout_s=20), ApiVersionsResponse)
    assert server.peer(OTHER) is peer
    await told(asking, second.port)
    moved = server.peer(OTHER)
    assert moved is not peer
    assert server.broker_address(OTHER) == ("127.0.0.1", second.port)
    assert isinstance(await moved.call(API_VERSIONS, timeout_s=20), ApiVersionsResponse)
    with pytest.raises(ConnectionLost):
        await peer.call(API_VERSIONS, timeout_s=20)


async def test_a_broker_that_is_not_registered_is_not_available(make_broker: MakeBroker) -> None:
    server = (await make_broker()).node.server
    with pytest.raises(KafkaError) as unknown:
        server.peer(OTHER)
    assert unknown.value.code is ErrorCode.BROKER_NOT_AVAILABLE


async def test_brokers_have_a_listener_among_themselves(make_broker: MakeBroker) -> None:
    broker = await make_broker(
        {
            "listeners": "OUTSIDE://127.0.0.1:0,INSIDE://127.0.0.1:0",
            "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
            "inter.broker.listener.name": "INSIDE",
        }
    )
    await told(broker, 7, "OUTSIDE")
    with pytest.raises(KafkaError):
        broker.node.server.broker_address(OTHER)
    await told(broker, 8, "INSIDE")
    assert broker.node.server.broker_address(OTHER) == ("127.0.0.1", 8)
