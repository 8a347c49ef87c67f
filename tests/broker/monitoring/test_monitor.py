"""The pages of a broker's monitoring: whether it lives, whether it serves, and its metrics."""

import socket

import pytest

from mainstem.broker.errors import StartupError
from mainstem.testing.errors import BrokerError
from tests.broker.conftest import Connect, MakeBroker
from tests.broker.harness import create_topic, eventually
from tests.broker.scraping import Scrape, ask, metrics_port

METRICS = {"mainstem.metrics.port": 0}


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
    monitor = broker.node.server.monitor
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


async def test_a_taken_port_is_told_with_its_option(make_broker: MakeBroker) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        settings = {"mainstem.metrics.port": port, "mainstem.metrics.host": "127.0.0.1"}
        with pytest.raises((StartupError, BrokerError), match="--metrics-port"):
            await make_broker(settings)


async def test_thousands_of_partitions_are_in_one_scrape(make_broker: MakeBroker, connect: Connect) -> None:
    broker = await make_broker(METRICS)
    topic = await create_topic(await connect(broker), partitions=1500)
    answer = await ask(metrics_port(broker), "/metrics")
    figures = Scrape(answer.body)
    assert len(figures.all("mainstem_partition_size_bytes", topic=topic.name)) == 1500
    assert figures.all("mainstem_scrape_samples_left_out") == []
