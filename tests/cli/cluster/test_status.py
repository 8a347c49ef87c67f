"""`mainstem cluster status` of a cluster in which something hangs, is gone, or has lost its quorum."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from mainstem.cli.cluster.status import NO_ANSWER, NOBODY
from mainstem.testing import Broker, Cluster
from tests.cli.command import run_command

COMMAND = [sys.executable, "-m", "mainstem", "cluster", "status"]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(3) as running:
        yield running


def run(cluster: Cluster, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_command(*arguments, environment={"MAINSTEM_BOOTSTRAP": cluster.bootstrap_servers})


def test_a_quorum_is_lost_and_found_again(cluster: Cluster) -> None:
    """All in one, for the nodes have to come up again after it."""
    leader = cluster.controller()
    hanging = next(node for node in cluster.node_ids if node != leader)
    last = ({*cluster.node_ids} - {leader, hanging}).pop()
    cluster.pause(hanging)
    cluster.kill(leader)

    shown = run(cluster, "cluster", "status")
    assert shown.returncode == 0, shown.stderr
    rows = {line.split()[0]: line for line in shown.stdout.splitlines() if line[:1].isdigit()}
    assert rows[str(last)].endswith("up")
    assert rows[str(leader)].endswith(NO_ANSWER)
    assert rows[str(hanging)].endswith(NO_ANSWER)
    nodes = ", ".join(map(str, sorted((leader, hanging))))
    assert "! nobody leads the quorum: 1 of 3 nodes answers" in shown.stdout
    assert f"-> start nodes {nodes}, and look at the log there" in shown.stdout

    found = json.loads(run(cluster, "cluster", "status", "--json").stdout)
    assert (found["leader"], found["followers"]) == (NOBODY, [])
    assert [trouble["what"] for trouble in found["troubles"]] == [
        "nobody leads the quorum: 1 of 3 nodes answers"
    ]
    assert [directory["node_id"] for directory in found["directories"]] == [last]

    levels = run(cluster, "cluster", "features")
    assert levels.returncode == 0
    assert "metadata.version" in levels.stdout
    assert f"node {hanging} does not answer" in levels.stderr

    moved = run(
        cluster, "cluster", "reassign", "--even-out", "--command-property", "request.timeout.ms=300",
        "--command-property", "default.api.timeout.ms=300",
    )  # fmt: skip
    assert moved.returncode == 1
    assert "nothing has to be moved" not in moved.stdout
    assert "it did not answer ListPartitionReassignments in 0.3 s" in moved.stderr
    assert "SASL" not in moved.stderr
    assert "the cluster may have no active controller" in moved.stderr

    cluster.resume(hanging)
    cluster.start(leader)
    found = json.loads(run(cluster, "cluster", "status", "--json").stdout)
    assert found["leader"] in cluster.node_ids
    assert {follower["role"] for follower in found["followers"]} == {"voter"}


def test_watching_goes_on_after_an_error() -> None:
    patience = ("--command-property", "default.api.timeout.ms=200")
    with Broker() as broker:
        watching = subprocess.Popen(
            [*COMMAND, "--watch", "--interval", "0.1", "--json", "-b", broker.bootstrap_servers, *patience],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert watching.stdout is not None
        assert watching.stderr is not None
        assert json.loads(watching.stdout.readline())["leader"] == 1
    errors = 0
    while errors < 2:
        line = watching.stderr.readline()
        assert line, "it ended"
        errors += line.startswith("mainstem: no broker answers")
    watching.send_signal(signal.SIGINT)
    watching.communicate()
    assert watching.returncode == 130
