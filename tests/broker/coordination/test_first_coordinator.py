"""The first requests for a coordinator: nobody is sent to one that is still being made."""

import asyncio
from typing import Any

import pytest

from mainstem.broker.coordination.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from mainstem.protocol.apis.k10_find_coordinator import FindCoordinatorRequest
from mainstem.protocol.errors import ErrorCode
from mainstem.testing import Broker
from tests.broker.harness import Client


def test_whoever_asks_meanwhile_waits_for_the_partitions() -> None:
    async def main() -> None:
        async with Broker.in_process() as broker:
            node = broker.node
            is_made, may_go_on = asyncio.Event(), asyncio.Event()
            make_logs = node.replicas.publish

            async def make_logs_slowly(*arguments: Any) -> None:
                is_made.set()
                await may_go_on.wait()
                await make_logs(*arguments)

            setattr(node.replicas, "publish", make_logs_slowly)  # noqa: B010 - typed, it could not be replaced
            first = asyncio.create_task(node.groups.ensure_topic())
            await is_made.wait()
            second = asyncio.create_task(node.groups.ensure_topic())
            await asyncio.sleep(0)
            assert not second.done()
            may_go_on.set()
            await second
            assert node.groups.partition_of("g") in node.groups.shell.partitions
            await first

    asyncio.run(asyncio.wait_for(main(), 60))


def test_segments_of_internal_topics_are_not_smaller_than_any_topic_allows(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        small = {"offsets.topic.segment.bytes": 1, "transaction.state.log.segment.bytes": 1000}
        async with Broker.in_process(small) as broker:
            await asyncio.gather(*(broker.node.groups.ensure_topic() for _ in range(6)))
            await asyncio.gather(*(broker.node.transactions.ensure_topic() for _ in range(6)))
            sizes = {
                partition.topic: partition.log.config.segment_bytes
                for partition in broker.node.replicas.all()
            }
            assert sizes == {CONSUMER_OFFSETS: 1 << 20, TRANSACTION_STATE: 1 << 20}
            warnings = [entry.message for entry in caplog.records if entry.levelname == "WARNING"]
            assert warnings == [
                f"{name} is {asked}: 1048576 is taken, the least for a topic" for name, asked in small.items()
            ]

    asyncio.run(asyncio.wait_for(main(), 60))


JOINABLE = {"listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"}


@pytest.mark.parametrize("prefix", ["offsets.topic", "transaction.state.log"])
def test_internal_topics_wait_for_the_brokers_that_their_copies_need(prefix: str) -> None:
    """Else a cluster that is just starting would have one copy of them for ever."""

    async def main(settings: dict[str, Any]) -> tuple[int, bool]:
        async with Broker.in_process(settings) as broker, await Client.connect(broker.port) as client:
            kind = 0 if prefix == "offsets.topic" else 1
            found = await client.call(FindCoordinatorRequest(key_type=kind, coordinator_keys=["any"]))
            topics = broker.node.image.topics_by_name
            return found.coordinators[0].error_code, bool(topics)

    def run(**settings: Any) -> tuple[int, bool]:
        return asyncio.run(asyncio.wait_for(main(settings), 60))

    assert run(**JOINABLE) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, False)
    assert run(**JOINABLE, **{f"{prefix}.replication.factor": 1}) == (0, True)
    assert run() == (0, True)
