"""One node of a cluster has no room left: nothing acknowledged is lost, and all goes on with room again."""

from pathlib import Path

import pytest

from mainstem.testing import Cluster
from tests.faults.cluster_faults import SETTINGS, await_in_sync, differing_replicas
from tests.faults.cluster_load import SteadyLoad, make_topic
from tests.faults.filesystems import SmallDisk

PARTITIONS = 3
DISK_BYTES = 64 * 1024 * 1024


@pytest.mark.timeout(300)
def test_a_full_disk_of_one_node_costs_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    data_dir = tmp_path / "cluster"
    with (
        SmallDisk(data_dir / "node-2", DISK_BYTES) as disk,
        Cluster(3, SETTINGS, data_dir=data_dir) as cluster,
    ):
        make_topic(cluster.bootstrap_servers, "full", PARTITIONS)
        load = SteadyLoad(cluster.bootstrap_servers, "full", PARTITIONS, 200, idempotent=True)
        load.await_acknowledged(300)
        ballast = disk.fill()
        load.await_acknowledged(300)
        ballast.unlink()
        load.await_acknowledged(300)
        load.end()
        await_in_sync(cluster, ["full"])
        assert load.problems() == []
        for node in cluster.node_ids:
            cluster.stop(node)
        assert differing_replicas(cluster, ["full"]) == []
