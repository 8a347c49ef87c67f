"""The commands of docs/cluster.md for several machines, run on this one.

Each machine is a folder with ports of its own: names and paths of the page are replaced by those, and what
systemd would do with the unit is done to a process. Everything else is run as it stands on the page.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mainstem.local_cluster.node_process import NodeProcess
from mainstem.local_cluster.ports import free_ports
from tests.docs.markdown import blocks
from tests.docs.reader import ROOT

PAGE = ROOT / "docs" / "cluster.md"
MACHINES = ("alpha", "beta", "gamma", "delta")
_WAIT_S = 60


class Machine:
    """One of the page's machines: where its files are, and its node while it runs."""

    def __init__(self, name: str, folder: Path, ports: list[int], settings: str) -> None:
        self.name = name
        self.folder = folder
        self.client_port, self.controller_port = ports
        self.node: NodeProcess | None = None
        self._settings = settings
        folder.mkdir()

    def write_settings(self, machines: dict[str, "Machine"]) -> None:
        number = MACHINES.index(self.name) + 1
        text = re.sub(r"^node\.id=.*$", f"node.id={number}", self._settings, flags=re.M)
        text = text.replace("broker.rack=room-1", f"broker.rack=room-{number}")
        text = re.sub(r"^listeners=.*$", lambda line: line[0].replace("alpha", self.name), text, flags=re.M)
        if self.name == "delta":
            text = text.replace("broker,controller", "broker")
            text = re.sub(r",CONTROLLER://delta:9093", "", text)
        (self.folder / "server.properties").write_text(on_this_machine(text, self, machines))

    def systemctl(self, verb: str) -> None:
        """What systemd does with deploy/systemd/mainstem.service."""
        if verb in ("stop", "restart", "kill"):
            assert self.node is not None
            code = self.node.end(signal.SIGKILL if verb == "kill" else signal.SIGTERM, _WAIT_S)
            assert verb == "kill" or code == 0
            self.node = None
        if verb in ("start", "restart"):
            with (self.folder / "journal").open("ab") as log:
                self.node = NodeProcess(["--config", str(self.folder / "server.properties")], log.fileno())

    def await_ready(self) -> None:
        if self.node is not None:
            self.node.await_ready(_WAIT_S)


def on_this_machine(text: str, machine: Machine, machines: dict[str, Machine]) -> str:
    """The page's text with what this machine has in place of names, ports and paths."""
    for name, other in machines.items():
        text = text.replace(f"{name}:9092", f"127.0.0.1:{other.client_port}")
        text = text.replace(f"{name}:9093", f"127.0.0.1:{other.controller_port}")
    text = text.replace("/etc/mainstem/", f"{machine.folder}/")
    return text.replace("/var/lib/mainstem", str(machine.folder / "data"))


def steps() -> Iterator[tuple[list[str], str]]:
    """Each command of the page with the machines that it is for."""
    for block in blocks(PAGE.read_text()):
        if block.language == "sh":
            where: list[str] = []
            for line in block.text.splitlines():
                if line.startswith("# on "):
                    where = line.removeprefix("# on ").split(", ")
                else:
                    assert where, f"line {block.line}: on which machine?"
                    yield where, line


def rounds() -> Iterator[list[tuple[str, str]]]:
    """The commands in the order in which they are typed: what is for several machines is done on one after
    the other. Nodes are started without waiting for them, for they need each other.
    """
    pending: list[tuple[list[str], str]] = []
    for where, line in [*steps(), ([], "")]:
        if pending and where != pending[0][0]:
            yield [(name, text) for name in pending[0][0] for _, text in pending]
            pending = []
        pending.append((where, line))


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[dict[str, Machine]]:
    (settings,) = (block.text for block in blocks(PAGE.read_text()) if block.language == "properties")
    ports = free_ports("127.0.0.1", 2 * len(MACHINES))
    found = {
        name: Machine(name, tmp_path / name, ports[2 * i : 2 * i + 2], settings)
        for i, name in enumerate(MACHINES)
    }
    for machine in found.values():
        machine.write_settings(found)
    yield found
    for machine in found.values():
        if machine.node is not None:
            machine.node.send_signal(signal.SIGTERM)
    for machine in found.values():
        if machine.node is not None:
            machine.node.end(signal.SIGTERM, _WAIT_S)


@pytest.mark.timeout(300)
def test_the_commands_for_several_machines_work(machines: dict[str, Machine], tmp_path: Path) -> None:
    commands = tmp_path / "bin"
    commands.mkdir()
    (commands / "mainstem").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mainstem "$@"\n')
    (commands / "mainstem").chmod(0o755)
    environment = os.environ | {"PATH": f"{commands}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "120"}
    for together in rounds():
        for name, line in together:
            machine = machines[name]
            if match := re.fullmatch(r"sudo systemctl (start|stop|restart|kill) mainstem", line):
                machine.systemctl(match[1])
                if match[1] == "restart":
                    machine.await_ready()
                continue
            command = on_this_machine(line, machine, machines)
            succeed(command, environment, patient="--under-replicated" in line)
        for name, _ in together:
            machines[name].await_ready()


def succeed(command: str, environment: dict[str, str], *, patient: bool) -> None:
    """Run it; with `patient`, as often as a person would who waits until nothing is shown any more."""
    deadline = time.monotonic() + _WAIT_S
    while True:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            env=environment,
            capture_output=True,
            text=True,
            timeout=_WAIT_S,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        if not patient or not done.stdout:
            return
        assert time.monotonic() < deadline, done.stdout
        time.sleep(0.1)
