"""Producer ids are handed out from blocks: each once, and without anybody waiting for the next block."""

import asyncio
from itertools import count

import pytest

from mainstem.broker.metadata.producer_ids import ProducerIds
from mainstem.protocol.errors import ErrorCode, KafkaError
from tests.broker.harness import eventually

BLOCK = 10


class Controller:
    """Grants blocks, when it is let."""

    def __init__(self) -> None:
        self._blocks = count(0, BLOCK)
        self.asked = 0
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.errors: list[ErrorCode] = []

    async def allocate(self) -> tuple[int, int]:
        self.asked += 1
        await self.may_answer.wait()
        if self.errors:
            raise KafkaError(self.errors.pop())
        return next(self._blocks), BLOCK


async def test_every_id_is_issued_once() -> None:
    controller = Controller()
    ids = ProducerIds(controller.allocate)
    issued = [await ids.next() for _ in range(2 * BLOCK)]
    issued += await asyncio.gather(*[ids.next() for _ in range(3 * BLOCK)])
    assert sorted(issued) == list(range(5 * BLOCK))


async def test_the_next_block_is_asked_for_before_it_is_needed() -> None:
    controller = Controller()
    ids = ProducerIds(controller.allocate)
    for _ in range(BLOCK - 2):
        await ids.next()
    assert controller.asked == 1
    await ids.next()
    await eventually(lambda: controller.asked == 2)
    controller.may_answer.clear()
    assert [await ids.next() for _ in range(2)] == [BLOCK - 1, BLOCK], "nobody waits for it"


async def test_many_wait_for_one_block() -> None:
    controller = Controller()
    controller.may_answer.clear()
    ids = ProducerIds(controller.allocate)
    waiting = [asyncio.ensure_future(ids.next()) for _ in range(BLOCK - 2)]
    await eventually(lambda: controller.asked == 1)
    waiting.pop().cancel()  # whoever goes keeps nobody else from it
    controller.may_answer.set()
    assert sorted(await asyncio.gather(*waiting)) == list(range(BLOCK - 3))
    assert controller.asked == 1


@pytest.mark.parametrize(
    ("of_controller", "told"),
    [
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (ErrorCode.STALE_BROKER_EPOCH, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.KAFKA_STORAGE_ERROR),
    ],
)
async def test_a_block_that_could_not_be_had_is_asked_for_again(
    of_controller: ErrorCode, told: ErrorCode
) -> None:
    controller = Controller()
    ids = ProducerIds(controller.allocate)
    controller.errors.append(of_controller)
    with pytest.raises(KafkaError) as refused:
        await ids.next()
    assert refused.value.code is told
    assert await ids.next() == 0


async def test_a_block_that_failed_ahead_of_time_is_nobodys_error() -> None:
    controller = Controller()
    ids = ProducerIds(controller.allocate)
    for _ in range(BLOCK - 1):
        await ids.next()
    controller.errors.append(ErrorCode.REQUEST_TIMED_OUT)
    assert await ids.next() == BLOCK - 1
    await eventually(lambda: not controller.errors)
    assert await ids.next() == BLOCK
