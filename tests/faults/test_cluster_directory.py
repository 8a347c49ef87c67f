"""A log directory of one node of a cluster fails: others take over what it held, and nobody waits for it."""

from pathlib import Path

import pytest

from mainstem.testing import Cluster
from tests.faults.cluster_faults import SETTINGS, await_in_sync, differing_replicas
from tests.faults.cluster_load import SteadyLoad, make_topic
from tests.faults.filesystems import PowerFailingDisk
from tests.support.group_views import until

TOPIC = "spread"
PARTITIONS = 6
FURTHER = 100  # acknowledgements of each partition
SECOND = "-second"  # what the name of a node's second directory ends with
# A replica in sync that does not follow holds producers up for this long: a test would wait in vain.
NEVER_MS = 3_600_000


class TwoDirectories(Cluster):
    """Each node has a second log directory, beside the first."""

    def _prepare(self) -> None:
        is_new = self._directory is None
        super()._prepare()
        if is_new:
            for node in self.node_ids:
                properties = self._open_directory.properties(node)
                first = self.data_dir(node)
                with properties.open("a") as file:
                    file.write(f"log.dirs={first},{first}{SECOND}\n")


def await_everywhere(load: SteadyLoad, further: int) -> None:
    """Wait until so many more records of each partition are acknowledged."""
    before = dict.fromkeys(range(PARTITIONS), 0) | load.acknowledged_in()
    until(
        lambda: all(load.acknowledged_in().get(number, 0) >= before[number] + further for number in before),
        lambda: f"acknowledgements: {before} before, {load.acknowledged_in()} now, {load.refused[:3]}",
    )


@pytest.mark.timeout(300)
def test_a_directory_that_fails_is_left_out_and_comes_back(tmp_path: Path) -> None:
    data_dir, settings = tmp_path / "cluster", SETTINGS | {"replica.lag.time.max.ms": NEVER_MS}
    with (
        PowerFailingDisk(data_dir / f"node-2{SECOND}", tmp_path / "image") as disk,
        TwoDirectories(3, settings, data_dir=data_dir) as cluster,
    ):
        make_topic(cluster.bootstrap_servers, TOPIC, PARTITIONS)
        load = SteadyLoad(cluster.bootstrap_servers, TOPIC, PARTITIONS, 200, idempotent=True)
        await_everywhere(load, FURTHER)
        await_in_sync(cluster, [TOPIC])
        held = {int(folder.name.rpartition("-")[2]) for folder in disk.path.glob(f"{TOPIC}-*")}
        assert 0 < len(held) < PARTITIONS
        assert any(cluster.leader_of(TOPIC, number) == 2 for number in held)

        disk.cut_power()
        until(lambda: not in_sync_on(cluster, 2) & held, "the failed replicas to leave those in sync")
        await_everywhere(load, FURTHER)
        assert in_sync_on(cluster, 2) == set(range(PARTITIONS)) - held
        assert all(cluster.leader_of(TOPIC, number) != 2 for number in held)
        assert 2 in cluster.running

        cluster.stop(2)
        disk.come_back()
        cluster.start(2)
        await_in_sync(cluster, [TOPIC])
        await_everywhere(load, FURTHER)
        load.end()
        assert load.problems() == []
        for node in cluster.node_ids:
            cluster.stop(node)
        assert differing_replicas(cluster, [TOPIC], beside=SECOND) == []


def in_sync_on(cluster: Cluster, node: int) -> set[int]:
    """The partitions of which this node has a replica in sync."""
    return {number for number, part in cluster.topics()[TOPIC].partitions.items() if node in part.isr}
