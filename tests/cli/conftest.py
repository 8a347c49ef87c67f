"""The command as a person runs it, against a real broker."""

import subprocess
from collections.abc import Callable, Iterator

import pytest

from mainstem.testing import Broker
from tests.cli.command import run_command

Mainstem = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """One broker for all tests of the command; each test uses topics of its own."""
    with Broker() as running:
        yield running


@pytest.fixture
def mainstem(broker: Broker) -> Mainstem:
    """Runs `mainstem ARGUMENTS` with that broker as its default and gives what it printed."""

    def run(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return run_command(
            *arguments, stdin=stdin, environment={"MAINSTEM_BOOTSTRAP": broker.bootstrap_servers}
        )

    return run
