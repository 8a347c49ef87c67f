"""Clusters that are stopped when their test is over."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.broker.replication.cluster import Cluster, stop

MakeCluster = Callable[..., Cluster]


@pytest.fixture
def make_cluster(runner: asyncio.Runner, tmp_path: Path) -> Iterator[MakeCluster]:
    made: list[Cluster] = []

    def make(**settings: str) -> Cluster:
        cluster = Cluster(
            tmp_path / f"cluster-{len(made)}",
            **{name.replace("_", "."): value for name, value in settings.items()},
        )
        made.append(cluster)
        return cluster

    yield make
    for cluster in made:
        runner.run(stop(cluster))


@pytest.fixture
def cluster(make_cluster: MakeCluster, runner: asyncio.Runner) -> Cluster:
    cluster = make_cluster()
    runner.run(cluster.start_all())
    return cluster
