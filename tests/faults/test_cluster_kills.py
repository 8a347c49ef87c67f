"""Nodes of a cluster are killed, stopped and paused under load, partitions move and a disk is full: nothing
acknowledged is lost, doubled or out of order, and afterwards all replicas hold the same bytes.
"""

import time
from collections.abc import Mapping
from itertools import cycle
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest

from mainstem.cluster.features import ELIGIBLE_LEADER_REPLICAS_VERSION
from mainstem.testing import Cluster
from mainstem.wire import Cluster as Client
from mainstem.wire import from_kafka_options
from tests.faults.cluster_faults import SETTINGS, Faults, await_in_sync, differing_replicas
from tests.faults.cluster_load import SteadyLoad, Trimming, make_topic
from tests.faults.filesystems import SmallDisk

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
    "move partitions",
)
ALL_KINDS = (*KINDS, "stop the controller in order", "fill a disk")
FAULTS = 50  # in each of two runs
DISK_BYTES = 256 * 1024 * 1024
SAFE_DOWNGRADE = 2


class Told(NamedTuple):
    """A topic and how it is written."""

    idempotent: bool = True
    keys: int = 0
    configs: Mapping[str, str] = MappingProxyType({})


TOPICS = {"once": Told(), "plain": Told(idempotent=False)}
MORE_TOPICS = {
    **TOPICS,
    "flushed": Told(configs={"flush.messages": "1"}),
    "trimmed": Told(),
    "compacted": Told(
        keys=10 * PARTITIONS,
        configs={"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "5000"},
    ),
}
# What others have from the start is not there on a node that got its copy later.
SAME_BYTES = ("once", "plain", "flushed")


def survive(
    faults: int,
    seed: int,
    kinds: tuple[str, ...],
    *,
    elr: bool,
    topics: Mapping[str, Told] = TOPICS,
    disk: SmallDisk | None = None,
) -> list[str]:
    """What happened: a line for each fault, with the longest silence of the producers. A `disk` is that of
    node 2, and the cluster lies beside it.
    """
    told = []
    data_dir = disk.path.parent if disk is not None else None
    with Cluster(3, SETTINGS, data_dir=data_dir) as cluster:
        choose_elr(cluster, elr)
        loads = {name: begin(cluster, name, topic) for name, topic in topics.items()}
        trimming = [Trimming(loads[name], PARTITIONS) for name in loads if name == "trimmed"]
        harm = Faults(cluster, seed, "once", kinds, disk=disk)
        for _ in range(faults):
            for load in loads.values():
                load.await_acknowledged(100)
                load.longest_silence_s = 0.0
            told.append(harm.strike())
            harm.linger()
            harm.heal()
            for load in loads.values():
                load.await_acknowledged(100)
            told[-1] += f", silence {max(load.longest_silence_s for load in loads.values()):.1f} s"
        for trimmer in trimming:
            trimmer.end()
        for load in loads.values():
            load.end()
        await_in_sync(cluster)
        if "compacted" in loads:
            loads["compacted"].await_compacted()
        problems = [f"{name}: {problem}" for name, load in loads.items() for problem in load.problems()]
        assert not problems, "\n".join([*told, *problems[:20]])
        for node in cluster.node_ids:
            assert "Traceback" not in cluster.log(node), cluster.log(node)[-4000:]
        for node in cluster.node_ids:
            cluster.stop(node)
        assert not differing_replicas(cluster, SAME_BYTES)
    return told


def begin(cluster: Cluster, name: str, topic: Told) -> SteadyLoad:
    servers = cluster.bootstrap_servers
    make_topic(servers, name, PARTITIONS, configs=topic.configs)
    return SteadyLoad(servers, name, PARTITIONS, _PER_SECOND, idempotent=topic.idempotent, keys=topic.keys)


def choose_elr(cluster: Cluster, wanted: bool) -> None:
    """Whether replicas that fell out of sync may lead as long as too few are in sync (KIP-966)."""
    if not wanted:  # a new cluster begins with it
        with Client(from_kafka_options({"bootstrap.servers": cluster.bootstrap_servers})) as client:
            client.update_features({ELIGIBLE_LEADER_REPLICAS_VERSION: 0}, SAFE_DOWNGRADE)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("kind", "elr"), list(zip(KINDS, cycle((True, False)), strict=False)))
def test_what_was_acknowledged_survives(kind: str, elr: bool) -> None:
    survive(faults=2, seed=1, kinds=(kind,), elr=elr)


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("elr", [True, False], ids=["with ELR", "without ELR"])
def test_what_was_acknowledged_survives_a_hundred_faults(
    tmp_path: Path, elr: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    started = time.monotonic()
    with SmallDisk(tmp_path / "node-2", DISK_BYTES) as disk:
        told = survive(FAULTS, 100, ALL_KINDS, elr=elr, topics=MORE_TOPICS, disk=disk)
    with capsys.disabled():
        print(f"\n{len(told)} faults in {time.monotonic() - started:.0f} s")
        print("\n".join(told))
