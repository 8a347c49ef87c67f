"""Brokers inside the test's own event loop. A test that is a coroutine runs in that loop.

Most tests share one broker per file and use topics of their own; a test that needs particular settings makes
its broker with `make_broker`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mainstem.broker.network.connection import Connection
from mainstem.broker.requests.fast_path import FastPath
from mainstem.security.authorizer import AllowAll, Operation, ResourceType
from mainstem.testing import Broker
from mainstem.testing.in_process import InProcessBroker
from tests.broker.harness import Client
from tests.support.failing_files import FailingFiles

MakeBroker = Callable[..., Awaitable[InProcessBroker]]
Connect = Callable[..., Awaitable[Client]]


class Rules(AllowAll):
    """Allows what is not denied."""

    def __init__(self) -> None:
        self.generation = 1
        self.asked = 0
        self.denied = False

    def authorize(
        self, principal: str, host: str, operation: Operation, resource: ResourceType, name: str
    ) -> bool:
        self.asked += 1
        return not self.denied


@pytest.fixture(scope="module", autouse=True)
def loop_of_the_file(runner: asyncio.Runner) -> None:
    """Every test here has the event loop, also one that only takes a connection from a fixture."""


@pytest.fixture(scope="module")
def broker(runner: asyncio.Runner) -> Iterator[InProcessBroker]:
    """One broker with default settings for all tests of a file."""
    broker = Broker.in_process({"log.initial.task.delay.ms": 3_600_000}, files=FailingFiles())
    runner.run(broker.start())
    yield broker
    runner.run(broker.close())


@pytest.fixture
def client(runner: asyncio.Runner, broker: InProcessBroker) -> Iterator[Client]:
    """A connection to the broker of the file."""
    client = runner.run(Client.connect(broker.port))
    yield client
    runner.run(client.close())


@pytest.fixture
def make_broker(runner: asyncio.Runner, tmp_path: Path) -> Iterator[MakeBroker]:
    """Starts a broker with the settings of one test, which is closed at its end."""
    made: list[InProcessBroker] = []

    async def make(settings: dict[str, Any] | None = None, **options: Any) -> InProcessBroker:
        options.setdefault("data_dir", tmp_path / f"data-{len(made)}")
        broker = Broker.in_process(settings, **options)
        made.append(broker)
        return await broker.start()

    yield make
    for broker in made:
        runner.run(broker.close())


@pytest.fixture
def connect(runner: asyncio.Runner) -> Iterator[Connect]:
    """Opens connections that are closed at the end of the test."""
    opened: list[Client] = []

    async def connect(broker: InProcessBroker) -> Client:
        client = await Client.connect(broker.port)
        opened.append(client)
        return client

    yield connect
    for client in opened:
        runner.run(client.close())


@pytest.fixture
def short_ways(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Which requests went the short way, of those of an API and version with one on their connection."""
    ways: list[bool] = []
    ordinary = FastPath.try_answer

    def watched(self: FastPath, connection: Connection, frame: memoryview, start: int, end: int) -> Any:
        answer = ordinary(self, connection, frame, start, end)
        api = int.from_bytes(frame[start : start + 4], "big")
        if connection.routes is not None and api in connection.routes:
            ways.append(answer is not None)
        return answer

    monkeypatch.setattr(FastPath, "try_answer", watched)
    return ways


@pytest.fixture
def rules(broker: InProcessBroker) -> Iterator[Rules]:
    before = broker.node.server.authorizer
    broker.node.server.authorizer = rules = Rules()
    yield rules
    broker.node.server.authorizer = before
