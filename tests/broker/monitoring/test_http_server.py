"""The port of the metrics: its pages, and what becomes of clients that are slow, wrong or many."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

import pytest

from mainstem.broker.errors import StartupError
from mainstem.broker.monitoring.http_server import HttpAnswer, HttpServer
from mainstem.broker.monitoring.scrape import Scraper
from mainstem.metrics import Exposition
from mainstem.testing.errors import BrokerError
from tests.broker.conftest import Connect, MakeBroker
from tests.broker.harness import create_topic, eventually
from tests.broker.scraping import Scrape, ask, metrics_port, send

METRICS = {"mainstem.metrics.port": 0}
LARGE = [b"x" * 100_000] * 400


async def _large() -> HttpAnswer:
    return HttpAnswer(HTTPStatus.OK, "text/plain", LARGE)


async def _broken() -> HttpAnswer:
    raise ValueError("a page that fails")


@asynccontextmanager
async def served(**limits: float) -> AsyncIterator[HttpServer]:
    sock = socket.create_server(("127.0.0.1", 0))
    sock.setblocking(False)
    pages = {"/large": _large, "/broken": _broken}
    server = HttpServer(asyncio.get_running_loop(), [sock], pages, **limits)
    await server.start()
    try:
        yield server
    finally:
        server.close()


async def test_health_and_readiness(make_broker: MakeBroker) -> None:
    broker = await make_broker(METRICS)
    port = metrics_port(broker)
    assert (await ask(port, "/healthz")).body == "ok\n"
    assert (await ask(port, "/readyz")).body == "ready\n"
    assert (await ask(port, "/readyz?verbose=1")).status == 200
    head = await ask(port, "/readyz", "HEAD")
    assert (head.status, head.body) == (200, "")
    assert "Content-Length: 6" in head.head


async def test_a_broker_that_is_stopping_is_not_ready(make_broker: MakeBroker) -> None:
    broker = await make_broker(METRICS)
    monitor = broker.node.monitor
    assert monitor is not None
    monitor.stopping()
    for path, status in (("/readyz", 503), ("/metrics", 503), ("/healthz", 200)):
        assert (await ask(monitor.server.port, path)).status == status


async def test_a_broker_without_a_directory_is_not_healthy(make_broker: MakeBroker) -> None:
    broker = await make_broker(METRICS)
    broker.node.log_manager.dirs[0].health.fail("gone")
    await eventually(broker.node.dead.is_set)
    for path in ("/healthz", "/readyz"):
        assert (await ask(metrics_port(broker), path)).status == 503


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"POST /metrics HTTP/1.1\r\n\r\n", 405),
        (b"GET /nothing HTTP/1.1\r\n\r\n", 404),
        (b"GET http://elsewhere/metrics HTTP/1.1\r\n\r\n", 400),
        (b"GET /metrics\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\r\n\r\n", 400),
        (b"\r\n\r\n", 400),
        (b"GET /broken HTTP/1.1\r\n\r\n", 500),
    ],
)
async def test_what_is_wrong_is_refused(request_bytes: bytes, status: int) -> None:
    async with served() as server:
        assert (await send(server.port, request_bytes)).status == status


async def test_a_request_without_an_end_is_cut_off() -> None:
    async with served() as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET / HTTP/1.1\r\nX: " + b"y" * 100_000)
        try:
            assert (await reader.read()).startswith(b"HTTP/1.1 431 ")
        except ConnectionResetError:
            pass  # the rest of the request was not read any more
        writer.close()
        await eventually(lambda: not server.connections)


async def test_who_is_slow_to_ask_loses_the_connection() -> None:
    async with served(seconds_to_ask=0.05) as server:
        assert (await send(server.port, b"GET /lar")).status == 0
        await eventually(lambda: not server.connections)


async def test_who_does_not_take_the_answer_loses_the_connection() -> None:
    async with served(seconds_to_take=0.3) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1024)
        writer.write(b"GET /large HTTP/1.1\r\n\r\n")
        await eventually(lambda: bool(server.connections))
        await eventually(lambda: not server.connections)
        writer.close()


async def test_a_large_answer_comes_whole() -> None:
    async with served() as server:
        answer = await send(server.port, b"GET /large HTTP/1.1\r\n\r\n")
        assert len(answer.body) == sum(map(len, LARGE))


async def test_many_connections_do_not_add_up() -> None:
    async with served() as server:
        opened = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(40)]
        await eventually(lambda: len(server.connections) == 32)
        for _, writer in opened:
            writer.close()
        await eventually(lambda: not server.connections)
        assert (await ask(server.port, "/large")).status == 200


async def test_a_taken_port_is_told_with_its_option(make_broker: MakeBroker) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        settings = {"mainstem.metrics.port": port, "mainstem.metrics.host": "127.0.0.1"}
        with pytest.raises((StartupError, BrokerError), match="--metrics-port"):
            await make_broker(settings)


async def test_whoever_asks_meanwhile_gets_the_same_text() -> None:
    scraper = Scraper()
    made = 0

    def collect(out: Exposition):  # type: ignore[no-untyped-def]
        nonlocal made
        made += 1
        out.gauge("made", "How often.").add(made)
        for _ in range(100):
            yield

    scraper.add(collect)
    texts = await asyncio.gather(*(scraper.scrape() for _ in range(10)))
    assert made == 1
    assert len({b"".join(text) for text in texts}) == 1
    scraper.forget()
    assert Scrape(b"".join(await scraper.scrape()).decode()).one("made") == 2
    scraper.close()


async def test_others_are_served_while_a_long_scrape_is_made() -> None:
    scraper = Scraper()
    turns = 0

    def collect(out: Exposition):  # type: ignore[no-untyped-def]
        gauge = out.gauge("some", "Many.")
        for number in range(200_000):
            gauge.add(number)
            yield

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    scraper.add(collect)
    counting = asyncio.create_task(count_turns())
    await asyncio.sleep(0)
    await scraper.scrape()
    counting.cancel()
    assert turns > 20
    scraper.close()


async def test_thousands_of_partitions_are_in_one_scrape(make_broker: MakeBroker, connect: Connect) -> None:
    broker = await make_broker(METRICS)
    topic = await create_topic(await connect(broker), partitions=1500)
    answer = await ask(metrics_port(broker), "/metrics")
    figures = Scrape(answer.body)
    assert len(figures.all("mainstem_partition_size_bytes", topic=topic.name)) == 1500
    assert figures.all("mainstem_scrape_samples_left_out") == []
