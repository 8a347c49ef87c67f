"""Groups of every kind on three nodes, while members and nodes are killed, stopped and paused.

Every message comes at least once to every group, in order, and no commit is lost or goes back.
"""

import time
from pathlib import Path

import pytest

from mainstem.testing import Cluster
from tests.faults.cluster_faults import SETTINGS as CLUSTER_SETTINGS
from tests.faults.cluster_faults import KillableCluster
from tests.faults.cluster_load import make_topic
from tests.faults.test_group_chaos import GROUPS, PARTITIONS, SETTINGS, TOPIC, survive
from tests.support.target import Target


def _survive_on_three(folder: Path, members_per_group: int, faults: int, seed: int) -> tuple[int, int]:
    with Cluster(3, {**CLUSTER_SETTINGS, **SETTINGS}) as cluster:
        make_topic(cluster.bootstrap_servers, TOPIC, PARTITIONS)
        target = Target("mainstem", cluster.bootstrap_servers, cluster.data_dir(1))
        return survive(KillableCluster(cluster, seed), target, folder, members_per_group, faults, seed)


@pytest.mark.timeout(600)
def test_groups_survive_the_faults_of_a_cluster(tmp_path: Path) -> None:
    written, came = _survive_on_three(tmp_path, members_per_group=2, faults=6, seed=3)
    assert came == len(GROUPS) * written


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_groups_survive_a_hundred_faults_of_a_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    started = time.monotonic()
    written, came = _survive_on_three(tmp_path, members_per_group=3, faults=100, seed=100)
    assert came == len(GROUPS) * written
    with capsys.disabled():
        print(f"\n100 faults in {time.monotonic() - started:.0f} s: {written} messages came to each group")
