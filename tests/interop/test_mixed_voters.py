"""Voters come and go in a quorum of both kinds, kraft.version is raised, and snapshots cross over."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from mainstem.cluster.raft.messages import Request
from mainstem.protocol.apis.k57_update_features import FeatureUpdateKey, UpdateFeaturesRequest
from mainstem.protocol.apis.k80_add_raft_voter import AddRaftVoterRequest, Listener
from mainstem.protocol.apis.k81_remove_raft_voter import RemoveRaftVoterRequest
from mainstem.protocol.errors import ErrorCode
from tests.broker.quorum.controllers import CLUSTER, directory_id
from tests.interop.mixed_quorum import DESCRIBE, Mixed

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]

AUTO_JOIN = {"controller.quorum.auto.join.enable": "true"}
MANY_SNAPSHOTS = {"metadata.log.max.record.bytes.between.snapshots": "200"}


@pytest.fixture(params=["kafka-first", "mainstem-first"])
def first_is_kafka(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "kafka-first")


@pytest.fixture
def settings() -> dict[str, str]:
    return {}


@pytest.fixture
def mixed(
    first_is_kafka: bool, settings: dict[str, str], runner: asyncio.Runner, tmp_path: Path
) -> Iterator[Mixed]:
    """Controller 1 is the only voter; controller 2, of the other kind, an observer."""
    foreign = [1 if first_is_kafka else 2]
    controllers = Mixed(tmp_path / "quorum", [1], foreign, (2,), settings=settings)
    yield controllers
    runner.run(controllers.stop())
    runner.run(controllers.end_kafka())


async def _start(mixed: Mixed, node_id: int) -> None:
    await (mixed.start_kafka(node_id) if node_id in mixed.foreign else mixed.start(node_id))


async def _both_run(mixed: Mixed) -> None:
    await _start(mixed, 1)
    await mixed.leading({1})
    await _start(mixed, 2)


async def _changed(mixed: Mixed, leader: int, request: Request) -> None:
    """Ask until the leader is ready for a change."""
    while True:
        response = await mixed.ask(leader, request)
        if response.error_code != ErrorCode.REQUEST_TIMED_OUT:
            break
        await asyncio.sleep(0.1)
    assert response.error_code == ErrorCode.NONE, response


async def _voters(mixed: Mixed, leader: int) -> list[int]:
    response = await mixed.ask(leader, DESCRIBE)
    return [voter.replica_id for voter in response.topics[0].partitions[0].current_voters]


async def test_the_first_voter_makes_place_for_one_of_the_other_kind(mixed: Mixed) -> None:
    await _both_run(mixed)
    await mixed.change(1, 1001)
    await mixed.all_agree(1001)
    listener = Listener("CONTROLLER", "127.0.0.1", mixed.ports[2])
    await _changed(mixed, 1, AddRaftVoterRequest(CLUSTER, 10_000, 2, directory_id(2), [listener]))
    assert await _voters(mixed, 1) == [1, 2]
    await mixed.change(1, 1002)
    await mixed.all_agree(1002)
    await _changed(mixed, 1, RemoveRaftVoterRequest(CLUSTER, 1, directory_id(1)))
    assert await mixed.leading({2}) == 2
    assert await _voters(mixed, 2) == [2]
    await mixed.change(2, 1003)
    await mixed.all_agree(1003)


@pytest.mark.parametrize("settings", [AUTO_JOIN], ids=["auto-join"])
async def test_a_controller_joins_the_other_kind_by_itself(mixed: Mixed) -> None:
    await _both_run(mixed)
    while await _voters(mixed, 1) != [1, 2]:
        await asyncio.sleep(0.2)
    await mixed.change(1, 1001)
    await mixed.all_agree(1001)


@pytest.mark.parametrize("settings", [MANY_SNAPSHOTS], ids=["many-snapshots"])
async def test_a_controller_that_begins_with_nothing_gets_the_snapshot_of_the_other_kind(
    mixed: Mixed,
) -> None:
    await _start(mixed, 1)
    await mixed.leading({1})
    for value in range(1001, 1021):
        await mixed.change(1, value)
    while not _snapshots(mixed, 1):
        await asyncio.sleep(0.1)
    await _start(mixed, 2)
    while not _snapshots(mixed, 2):
        await asyncio.sleep(0.1)
    name, data = min(_snapshots(mixed, 2).items())
    assert _snapshots(mixed, 1)[name] == data
    await mixed.change(1, 1030)
    if 2 in mixed.nodes:
        while mixed.image(2).config(4, "").get("max.connections") != "1030":
            await asyncio.sleep(0.1)


def _snapshots(mixed: Mixed, node_id: int) -> dict[str, bytes]:
    """Those that hold something."""
    folder = mixed.directory(node_id) / "__cluster_metadata-0"
    paths = [path for path in folder.glob("*.checkpoint") if not path.name.startswith("0" * 20)]
    return {path.name: path.read_bytes() for path in paths}


@pytest.mark.parametrize("wanted", [1, 2], ids=["kafka-leads", "mainstem-leads"])
async def test_a_static_quorum_of_both_is_upgraded(
    wanted: int, tmp_path: Path, runner: asyncio.Runner
) -> None:
    """The other voter tells what it supports, and takes the record of the voters from the log."""
    mixed = Mixed(tmp_path / "quorum", [1, 2], [1], static=True)
    try:
        await mixed.start_kafka()
        await mixed.start()
        while (leader := await mixed.leading({1, 2})) != wanted:
            await mixed.end(leader)
            await _start(mixed, leader)
        await mixed.change(leader, 1001)
        await mixed.all_agree(1001)
        while not await _is_upgraded(mixed, leader):
            await asyncio.sleep(0.5)
        await mixed.change(leader, 1002)
        await mixed.all_agree(1002)
        voters = mixed.quorum(2).history.voters
        assert [any(voter.key.directory_id) for voter in voters] == [True, True]
    finally:
        await mixed.stop()
        await mixed.end_kafka()


async def _is_upgraded(mixed: Mixed, leader: int) -> bool:
    update = UpdateFeaturesRequest(10_000, [FeatureUpdateKey("kraft.version", 1, upgrade_type=1)])
    response = await mixed.ask(leader, update)
    assert response.error_code in (ErrorCode.NONE, ErrorCode.INVALID_UPDATE_VERSION), response
    return bool(response.error_code == ErrorCode.NONE)
