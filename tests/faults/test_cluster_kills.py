"""Nodes of a cluster are killed, stopped and paused under load: nothing acknowledged is lost, doubled or out
of order, and afterwards all replicas hold the same bytes.
"""

import time

import pytest

from mainstem.testing import Cluster
from tests.faults.cluster_faults import SETTINGS, Faults, await_in_sync, differing_replicas
from tests.faults.cluster_load import SteadyLoad, make_topic

PARTITIONS = 6
_PER_SECOND = 200
# In ./test one after another; each is a way of its own to lose something.
KINDS = (
    "kill the leader",
    "kill the controller",
    "kill the leader and the controller",
    "kill two of three",
    "kill all",
    "stop the leader in order",
    "pause the leader",
    "pause the controller",
)


def survive(faults: int, seed: int, kinds: tuple[str, ...] | None = None) -> list[str]:
    """What happened: a line for each fault, with the longest silence of the producers."""
    told = []
    with Cluster(3, SETTINGS) as cluster:
        loads = []
        for topic, idempotent in (("once", True), ("plain", False)):
            make_topic(cluster.bootstrap_servers, topic, PARTITIONS)
            loads.append(
                SteadyLoad(cluster.bootstrap_servers, topic, PARTITIONS, _PER_SECOND, idempotent=idempotent)
            )
        harm = Faults(cluster, seed, "once", kinds)
        for _ in range(faults):
            for load in loads:
                load.await_acknowledged(100)
                load.longest_silence_s = 0.0
            told.append(harm.strike())
            harm.linger()
            harm.heal()
            for load in loads:
                load.await_acknowledged(100)
            told[-1] += f", silence {max(load.longest_silence_s for load in loads):.1f} s"
        for load in loads:
            load.end()
        await_in_sync(cluster)
        problems = [f"{problem}" for load in loads for problem in load.problems()]
        assert not problems, "\n".join([*told, *problems[:20]])
        for node in cluster.node_ids:
            assert "Traceback" not in cluster.log(node), cluster.log(node)[-4000:]
        for node in cluster.node_ids:
            cluster.stop(node)
        assert not differing_replicas(cluster, ["once", "plain"])
    return told


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", KINDS)
def test_what_was_acknowledged_survives(kind: str) -> None:
    survive(faults=2, seed=1, kinds=(kind,))


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_what_was_acknowledged_survives_a_hundred_faults(capsys: pytest.CaptureFixture[str]) -> None:
    started = time.monotonic()
    told = survive(faults=100, seed=100)
    with capsys.disabled():
        print(f"\n100 faults in {time.monotonic() - started:.0f} s")
        print("\n".join(told))
