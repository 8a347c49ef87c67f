"""`mainstem up --nodes` as a process: what it starts, what it says of it, and that nothing is left of it."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from mainstem.cli.errors import CommandError
from mainstem.cli.up.cluster import _given_settings
from mainstem.cli.up.options import UpOptions
from mainstem.local_cluster.directory import ClusterDirectory
from mainstem.local_cluster.ports import free_ports
from mainstem.testing import Broker, Cluster
from tests.cli.up.test_up import refused

UP = [sys.executable, "-m", "mainstem", "up"]
READY = re.compile(r"mainstem ready bootstrap=(\S+) nodes=(\d+) cluster=\S{22} data=(.+)\n")
CHANGE = re.compile(r"mainstem node id=(\d+) state=(\w+)(?: remark=(.*))?\n")


class Up:
    """A supervisor in a process of its own, and what it has said."""

    def __init__(self, *options: str) -> None:
        self.process = subprocess.Popen(
            [*UP, *options], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        )
        self.pids: dict[int, int] = {}
        self.bootstrap_servers = ""

    def read(self) -> tuple[int, str, str] | None:
        """The next change of a node, or None where the ready line is next."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if ready := READY.fullmatch(line):
            self.bootstrap_servers = ready[1]
            return None
        change = CHANGE.fullmatch(line)
        assert change, line
        node, state, remark = int(change[1]), change[2], change[3] or ""
        if state == "starting" and not remark.startswith("not up after "):
            self.pids[node] = int(remark.rpartition(" ")[2])
        return node, state, remark

    def read_to_ready(self) -> list[tuple[int, str]]:
        changes = []
        while change := self.read():
            if not change[2].startswith("not up after "):
                changes.append(change[:2])
        return changes

    def read_to(self, node: int, state: str) -> str:
        """Its remark."""
        while True:
            change = self.read()
            assert change is not None
            if change[:2] == (node, state):
                return change[2]


@contextmanager
def up(*options: str) -> Iterator[Up]:
    running = Up(*options)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.communicate()
        await_gone(running.pids.values())


def await_gone(pids: object) -> None:
    deadline = time.monotonic() + 30
    for pid in list(pids):  # type: ignore[call-overload]
        with suppress(ProcessLookupError):
            while True:
                os.kill(pid, 0)
                assert time.monotonic() < deadline, f"process {pid} is left over"
                time.sleep(0.02)


def test_all_nodes_come_up_and_go_with_the_supervisor(tmp_path: Path) -> None:
    (first,) = free_ports("localhost", 1)
    with up("--nodes", "3", "--port", str(first), "--data", str(tmp_path)) as running:
        changes = running.read_to_ready()
        assert changes[:3] == [(1, "starting"), (2, "starting"), (3, "starting")]
        assert sorted(changes[3:]) == [(1, "up"), (2, "up"), (3, "up")]
        assert running.bootstrap_servers == ",".join(f"localhost:{first + i}" for i in range(3))
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(30) == 0
        await_gone(running.pids.values())
    for node in (1, 2, 3):
        assert (tmp_path / f"node-{node}" / ".kafka_cleanshutdown").exists()
        assert "Traceback" not in (tmp_path / f"node-{node}.log").read_text()


def test_a_node_that_died_is_started_again(tmp_path: Path) -> None:
    with up("--nodes", "3", "--port", "0", "--data", str(tmp_path)) as running:
        running.read_to_ready()
        first_pid = running.pids[2]
        os.kill(first_pid, signal.SIGKILL)
        assert running.read_to(2, "stopped").startswith("killed by SIGKILL; starts again ")
        running.read_to(2, "up")
        assert running.pids[2] != first_pid


def test_without_restarts_the_others_go_on(tmp_path: Path) -> None:
    with up("--nodes", "3", "--port", "0", "--data", str(tmp_path), "--no-restart") as running:
        running.read_to_ready()
        os.kill(running.pids[3], signal.SIGKILL)
        assert running.read_to(3, "stopped") == "killed by SIGKILL"
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(30) == 1


def test_no_node_outlives_a_supervisor_that_was_killed(tmp_path: Path) -> None:
    with up("--nodes", "2", "--port", "0", "--data", str(tmp_path)) as running:
        running.read_to_ready()
        running.process.kill()
        await_gone(running.pids.values())


def test_nodes_that_never_got_ready_go_too(tmp_path: Path) -> None:
    with up("--nodes", "3", "--port", "0", "--data", str(tmp_path)) as running:
        for _ in range(3):
            running.read()
        running.process.kill()
        await_gone(running.pids.values())


def test_an_ephemeral_cluster_leaves_nothing_behind() -> None:
    with up("--nodes", "1", "--port", "0", "--ephemeral") as running:
        running.read_to_ready()
        folder = Path(os.readlink(f"/proc/{running.pids[1]}/fd/2")).parent
        assert (folder / "node-1").is_dir()
        running.process.terminate()
        running.process.wait(30)
        assert not folder.exists()


def test_what_it_cannot_do_is_said_with_a_next_step(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path / "single"):
        assert "single broker" in refused("--nodes", "3", "--data", str(tmp_path / "single"))
    assert "is given to each node" in refused("--nodes", "3", "--set", "node.id=7")
    assert "leaves no ports" in refused("--nodes", "3", "--port", "65534", "--data", str(tmp_path / "x"))
    (tmp_path / "several").mkdir()
    (tmp_path / "several" / "cluster.json").write_text("{}")
    assert "cannot be understood" in refused("--nodes", "3", "--data", str(tmp_path / "several"))
    assert "holds a cluster" in refused("--data", str(tmp_path / "several"))


def test_settings_are_checked_before_any_node_starts(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path / "cluster"))
    assert "did you mean num.partitions?" in refused("--nodes", "3", *data, "--set", "num.partitons=1")
    assert "num.partitions" in refused("--nodes", "3", *data, "--set", "num.partitions=0")
    assert not (tmp_path / "cluster").exists()
    with pytest.raises(CommandError, match="there is no such setting"):
        _given_settings(UpOptions(nodes="3", set=["foo.bar=1"]))


def test_what_deserves_a_warning_is_said_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = tmp_path / "server.properties"
    settings.write_text("no.such.thing=1\nnum.partitions=3\n")
    found = _given_settings(UpOptions(nodes="3", config=str(settings), set=["num.partitions=4"]))
    assert found == {"no.such.thing": "1", "num.partitions": "4"}
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("mainstem: ")
    assert "no.such.thing" in line


def test_nodes_that_all_refuse_to_start_end_it_with_their_reason(tmp_path: Path) -> None:
    for node in (1, 2):
        (tmp_path / f"node-{node}").write_text("")
    options = ("--nodes", "2", "--port", "0", "--data", str(tmp_path))
    done = subprocess.run([*UP, *options], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "starts again" not in done.stdout
    assert re.fullmatch(
        rf"mainstem: node (\d) cannot start, nor can the others: .*{tmp_path}/node-\1.*\n  -> .+\n",
        done.stderr,
    ), done.stderr


def test_a_directory_that_cannot_be_used_has_a_next_step(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = refused("--nodes", "3", "--data", str(tmp_path / "file" / "data"))
    assert f"cannot use {tmp_path}/file" in said
    assert "  -> check that directory" in said


def test_of_a_node_that_does_not_come_up_it_is_told_why(tmp_path: Path) -> None:
    with up("--nodes", "3", "--port", "0", "--data", str(tmp_path)) as running:
        for _ in range(3):
            running.read()
        waiting = {node: pid for node, pid in running.pids.items() if node > 1}
        try:
            for pid in waiting.values():
                os.kill(pid, signal.SIGSTOP)
            remarks: dict[int, tuple[str, str]] = {}
            while len(remarks) < 3:
                change = running.read()
                assert change is not None
                remarks[change[0]] = change[1:]
            assert {state for state, _ in remarks.values()} == {"starting"}
            assert all(remark.startswith("not up after ") for _, remark in remarks.values())
        finally:
            for pid in waiting.values():
                os.kill(pid, signal.SIGKILL)


def test_waiting_for_nodes_that_still_run_is_said(tmp_path: Path) -> None:
    directory = ClusterDirectory(tmp_path)
    directory.open(1)
    second = subprocess.Popen(
        [*UP, "--nodes", "1", "--port", "0", "--data", str(tmp_path)], stderr=subprocess.PIPE, text=True
    )
    assert second.stderr is not None
    assert second.stderr.readline() == (
        f"mainstem: nodes in {tmp_path} are still running; waiting a moment for their end\n"
    )
    second.kill()
    second.communicate()
    directory.close()


@pytest.mark.parametrize("nodes", ["auto"])
def test_auto_is_a_node_for_each_core(tmp_path: Path, nodes: str) -> None:
    with up("--nodes", nodes, "--port", "0", "--data", str(tmp_path)) as running:
        running.read()
        assert len(list(tmp_path.glob("node-*.properties"))) == len(os.sched_getaffinity(0))


def test_one_node_of_a_cluster_does_not_begin_a_cluster_of_its_own(tmp_path: Path) -> None:
    with Cluster(3, data_dir=tmp_path):
        pass
    said = refused("--port", "0", "--data", str(tmp_path / "node-1"))
    assert f"is the data of one node of the cluster in {tmp_path}" in said
    assert f"mainstem up --nodes auto --data {tmp_path} starts all of them" in said
    (tmp_path / "node-1").rename(tmp_path / "elsewhere")
    said = refused("--port", "0", "--data", str(tmp_path / "elsewhere"))
    assert "was written with the controllers 1, 2, 3, and the settings name no other than 1" in said
    assert "start the node with its own server.properties" in said
