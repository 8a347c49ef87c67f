"""The command as a person runs it, against a real broker."""

import subprocess
from collections.abc import Callable, Iterator

import pytest

from mainstem.testing import Broker
from tests.cli.command import run_command

Mainstem = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """One broker for all tests of the command; each test uses topics and groups of its own. Members of the
    consumer protocol hear of their partitions with a heartbeat, so these are frequent here.
    """
    config = {
        "group.consumer.heartbeat.interval.ms": 500,
        "group.consumer.min.heartbeat.interval.ms": 500,
        "group.consumer.assignment.interval.ms": 0,
    }
    with Broker(config=config) as running:
        yield running


@pytest.fixture
def mainstem(broker: Broker) -> Mainstem:
    """Runs `mainstem ARGUMENTS` with that broker as its default and gives what it printed."""

    def run(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return run_command(
            *arguments, stdin=stdin, environment={"MAINSTEM_BOOTSTRAP": broker.bootstrap_servers}
        )

    return run
