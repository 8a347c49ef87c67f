"""Controllers of Mainstem and of Apache Kafka in one quorum: each votes for, follows and leads the other."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.mixed_quorum import DESCRIBE, Mixed

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]


@pytest.fixture
def mixed(request: pytest.FixtureRequest, runner: asyncio.Runner, tmp_path: Path) -> Iterator[Mixed]:
    controllers = Mixed(tmp_path / "quorum", *request.param)
    yield controllers
    runner.run(controllers.stop())
    runner.run(controllers.end_kafka())


@pytest.mark.parametrize("mixed", [([1], [1], (2,))], indirect=True)
async def test_an_observer_has_what_apache_kafka_has(mixed: Mixed) -> None:
    await mixed.start_kafka()
    await mixed.start()
    await mixed.leading({1})
    for value in (1001, 1002, 1003):
        await mixed.alter(1, value)
    await mixed.all_agree(1003)
    assert mixed.quorum(2).leader_id == 1
    response = await mixed.ask(1, DESCRIBE)
    assert [observer.replica_id for observer in response.topics[0].partitions[0].observers] == [2]
    await mixed.end_kafka(1)
    await mixed.start_kafka(1)
    await mixed.leading({1})
    await mixed.alter(1, 1004)
    await mixed.all_agree(1004)


@pytest.mark.parametrize("mixed", [([1, 2, 3], [2, 3])], indirect=True)
async def test_both_kinds_vote_for_each_other(mixed: Mixed) -> None:
    """Two of the three are there at a time, one of them for the first time: it votes, and cannot win."""
    await mixed.start_kafka(2)
    await mixed.start()
    first = await mixed.leading({1, 2})
    await mixed.change(first, 1001)
    await mixed.all_agree(1001)
    await mixed.end(first)
    await mixed.start_kafka(3)
    second = await mixed.leading({1, 2, 3})
    assert second == 3 - first
    await mixed.change(second, 1002)
    if first == 1:
        await mixed.start(1)
    await mixed.all_agree(1002)
