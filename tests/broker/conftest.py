"""Brokers inside the test's own event loop. A test that is a coroutine runs in that loop.

Most tests share one broker per file and use topics of their own; a test that needs particular settings makes
its broker with `make_broker`.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop

from mainstem.broker.network.connection import Connection
from mainstem.broker.requests.fast_path import FastPath
from mainstem.testing import Broker
from mainstem.testing.in_process import InProcessBroker
from tests.broker.harness import Client

TEST_SECONDS_MAX = 60

MakeBroker = Callable[..., Awaitable[InProcessBroker]]
Connect = Callable[..., Awaitable[Client]]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    runner = pyfuncitem.funcargs["runner"]
    assert isinstance(runner, asyncio.Runner)
    names = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    runner.run(asyncio.wait_for(pyfuncitem.obj(**arguments), TEST_SECONDS_MAX))
    return True


@pytest.fixture(scope="module", autouse=True)
def runner() -> Iterator[asyncio.Runner]:
    """The event loop of all tests of a file."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        yield runner


@pytest.fixture(scope="module")
def broker(runner: asyncio.Runner) -> Iterator[InProcessBroker]:
    """One broker with default settings for all tests of a file."""
    broker = Broker.in_process({"log.initial.task.delay.ms": 3_600_000})
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
