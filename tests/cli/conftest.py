"""The command as a person runs it: a process of its own, against a real broker."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from mainstem.testing import Broker

Mainstem = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """One broker for all tests of the command; each test uses topics of its own."""
    with Broker() as running:
        yield running


@pytest.fixture
def mainstem(broker: Broker) -> Mainstem:
    """Runs `mainstem ARGUMENTS` with that broker as its default and gives what it printed."""

    def run(*arguments: str, stdin: str = "", timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"MAINSTEM_BOOTSTRAP": broker.bootstrap_servers, "COLUMNS": "100"}
        return subprocess.run(
            [sys.executable, "-m", "mainstem", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            env=environment,
            timeout=timeout_s,
            check=False,
        )

    return run
