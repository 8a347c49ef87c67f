"""From a frame to its answer, where a handler takes a while."""

import asyncio
import gc

import pytest

from mainstem.protocol.apis.k10_find_coordinator import FindCoordinatorRequest
from tests.broker.conftest import Connect, MakeBroker
from tests.broker.harness import connection_of


async def test_a_node_that_stops_before_a_handler_began_leaves_no_coroutine_unawaited(
    make_broker: MakeBroker, connect: Connect, recwarn: pytest.WarningsRecorder
) -> None:
    broker = await make_broker()
    client = await connect(broker)
    assert await client.is_served()
    connection = connection_of(broker, client)
    frame = memoryview(bytearray(client.encode(FindCoordinatorRequest(coordinator_keys=["group"]))))
    dispatcher = broker.node.server.dispatcher
    connection.parked = True
    dispatcher.handle_frame(connection, frame, 4, len(frame))
    (task,) = dispatcher._tasks
    dispatcher.close()  # in the same turn of the loop
    await asyncio.wait([task])
    del task
    gc.collect()
    assert [str(warning.message) for warning in recwarn] == []
