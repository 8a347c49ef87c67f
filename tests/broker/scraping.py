"""What the tests of the metrics share: bare HTTP requests, and the samples of a scrape."""

import asyncio
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from mainstem.testing.in_process import InProcessBroker


class Answer(NamedTuple):
    status: int
    head: str
    body: str


async def ask(port: int, path: str, method: str = "GET") -> Answer:
    return await send(port, f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())


async def send(port: int, request: bytes) -> Answer:
    """Send these bytes and read until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        text = (await reader.read()).decode()
    finally:
        writer.close()
    head, _, body = text.partition("\r\n\r\n")
    return Answer(int(head.split(" ")[1]) if head else 0, head, body)


def metrics_port(broker: InProcessBroker) -> int:
    assert broker.node.server.monitor is not None
    return broker.node.server.monitor.server.port


class Scrape:
    """All samples of one scrape, found by name and some of their labels."""

    def __init__(self, text: str) -> None:
        self.families = {family.name: family for family in text_string_to_metric_families(text)}
        self._samples = [sample for family in self.families.values() for sample in family.samples]

    def all(self, name: str, **labels: str) -> list[float]:
        return [
            sample.value
            for sample in self._samples
            if sample.name == name and labels.items() <= sample.labels.items()
        ]

    def one(self, name: str, **labels: str) -> float:
        values = self.all(name, **labels)
        assert len(values) == 1, f"{name} {labels}: {values}"
        return values[0]


async def scrape(broker: InProcessBroker) -> Scrape:
    """A scrape that was begun after this call."""
    assert broker.node.server.monitor is not None
    broker.node.server.monitor.scraper.forget()
    answer = await ask(metrics_port(broker), "/metrics")
    assert answer.status == 200, answer
    return Scrape(answer.body)
