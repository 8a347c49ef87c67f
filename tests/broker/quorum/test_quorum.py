"""Three controllers and more: they elect a leader, replicate, and go on when one of them dies."""

import asyncio

import pytest

from mainstem.cluster.records import ConfigRecord
from mainstem.protocol.apis.k55_describe_quorum import (
    DescribeQuorumRequest,
    PartitionData,
    ResponsePartitionData,
    TopicData,
)
from mainstem.protocol.errors import ErrorCode, KafkaError
from tests.broker.harness import eventually
from tests.broker.quorum.controllers import Controllers, Make

DESCRIBE = DescribeQuorumRequest(topics=[TopicData("__cluster_metadata", [PartitionData(0)])])
SMALL_SNAPSHOTS = {
    "metadata.log.max.record.bytes.between.snapshots": "20000",
    "metadata.max.retention.bytes": "1",
}


async def describe(controllers: Controllers) -> ResponsePartitionData:
    response = await controllers.ask(await controllers.leader(), DESCRIBE)
    assert response.error_code == 0
    found: ResponsePartitionData = response.topics[0].partitions[0]
    return found


@pytest.mark.parametrize("static", [False, True], ids=["dynamic", "static"])
async def test_three_controllers_elect_a_leader_and_replicate(
    make_controllers: Make, *, static: bool
) -> None:
    controllers = make_controllers([1, 2, 3], static=static)
    await controllers.start()
    leader = await controllers.leader()
    await controllers.write("one")
    await controllers.write("two")
    await controllers.all_have("one", "two")
    for node_id in controllers.nodes:
        assert controllers.quorum(node_id).leader_address() == ("127.0.0.1", controllers.ports[leader])
        assert controllers.image(node_id).controller_id == leader
    found = await describe(controllers)
    assert found.leader_id == leader
    assert sorted(voter.replica_id for voter in found.current_voters) == [1, 2, 3]


async def test_only_the_active_controller_appends(make_controllers: Make) -> None:
    controllers = make_controllers([1, 2, 3])
    await controllers.start()
    leader = await controllers.leader()
    for node_id in {1, 2, 3} - {leader}:
        log = controllers.log(node_id)
        with pytest.raises(KafkaError) as refused:
            log.append([ConfigRecord(4, "", "x", "1")])
        assert refused.value.code is ErrorCode.NOT_CONTROLLER
        assert log.pending_image is log.image


@pytest.mark.parametrize("static", [False, True], ids=["dynamic", "static"])
async def test_another_leads_when_the_leader_dies_and_it_follows_when_it_is_back(
    make_controllers: Make, *, static: bool
) -> None:
    controllers = make_controllers([1, 2, 3], static=static)
    await controllers.start()
    dead = await controllers.leader()
    await controllers.write("before")
    await controllers.kill(dead)
    await controllers.write("meanwhile")
    assert await controllers.leader() != dead
    await controllers.start(dead)
    await controllers.write("after")
    await controllers.all_have("before", "meanwhile", "after")


async def test_an_orderly_stop_hands_over(make_controllers: Make) -> None:
    # Nobody would look for a leader by himself in the time of this test.
    patient = {"controller.quorum.fetch.timeout.ms": "60000"}
    controllers = make_controllers([1, 2, 3], settings=patient)
    await controllers.start()
    for _ in range(2):
        leader = await controllers.leader()
        await controllers.stop(leader)
        assert await controllers.leader() != leader
        await controllers.start(leader)


async def test_nothing_is_committed_without_a_majority(make_controllers: Make) -> None:
    controllers = make_controllers([1, 2, 3])
    await controllers.start()
    leader = await controllers.leader()
    await controllers.write("committed")
    await controllers.all_have("committed")
    for node_id in {1, 2, 3} - {leader}:
        await controllers.kill(node_id)
    log = controllers.log(leader)
    log.append([ConfigRecord(4, "", "lost", "1")])
    assert "lost" in log.pending_image.config(4, "")
    # It finds out that it is alone, and takes back what it has only written.
    await eventually(lambda: not controllers.quorum(leader).is_active, "the leader gives up")
    assert "lost" not in log.pending_image.config(4, "")
    assert "lost" not in log.image.config(4, "")
    await controllers.kill(leader)
    others = [node_id for node_id in (1, 2, 3) if node_id != leader]
    await controllers.start(*others)
    await controllers.write("other")
    await controllers.start(leader)
    await controllers.all_have("committed", "other")
    assert all("lost" not in controllers.image(node_id).config(4, "") for node_id in (1, 2, 3))


async def test_all_start_again_with_what_they_had(make_controllers: Make) -> None:
    controllers = make_controllers([1, 2, 3])
    await controllers.start()
    await controllers.write("one")
    epoch = controllers.quorum(await controllers.leader()).epoch
    await controllers.stop()
    await controllers.start()
    await controllers.write("two")
    await controllers.all_have("one", "two")
    assert controllers.quorum(await controllers.leader()).epoch > epoch


async def test_an_observer_follows(make_controllers: Make) -> None:
    controllers = make_controllers([1, 2, 3], observers=[4])
    await controllers.start()
    await controllers.write("one")
    await controllers.all_have("one")
    found = await describe(controllers)
    assert sorted(voter.replica_id for voter in found.current_voters) == [1, 2, 3]
    assert [observer.replica_id for observer in found.observers] == [4]


async def test_a_node_that_was_away_for_long_gets_a_snapshot(make_controllers: Make) -> None:
    controllers = make_controllers([1, 2, 3], observers=[4], settings=SMALL_SNAPSHOTS)
    await controllers.start(1, 2, 3)
    await controllers.write("before")
    await controllers.all_have("before")
    away = next(node_id for node_id in (1, 2, 3) if node_id != await_leader(controllers))
    await controllers.kill(away)
    for number in range(40):
        await controllers.write(f"name-{number}", "x" * 1000)

    def trimmed() -> bool:
        return all(controllers.log(node_id)._log.start_offset > 10 for node_id in controllers.nodes)

    await eventually(trimmed, "the logs are trimmed")
    await controllers.start(away, 4)
    await controllers.write("after")
    await controllers.all_have("before", "name-39", "after")
    for node_id in (away, 4):
        assert controllers.log(node_id)._log.start_offset > 10
    # And it is a whole member again.
    await controllers.kill(await controllers.leader())
    await controllers.write("last")
    await controllers.all_have("name-39", "last")


def await_leader(controllers: Controllers) -> int:
    return next(node_id for node_id in controllers.nodes if controllers.quorum(node_id).is_active)


async def test_many_changes_share_fsyncs_and_come_in_order(make_controllers: Make) -> None:
    controllers = make_controllers([1, 2, 3])
    await controllers.start()
    log = controllers.log(await controllers.leader())
    for number in range(200):
        log.append([ConfigRecord(4, "", "number", str(number))])
        if number % 50 == 0:
            await asyncio.sleep(0)
    await eventually(lambda: log.image is log.pending_image, "all is committed")
    await controllers.all_have("number")
    assert all(controllers.image(node_id).config(4, "")["number"] == "199" for node_id in (1, 2, 3))


async def test_a_leader_whose_disk_fails_leaves_the_others_alone(make_controllers: Make) -> None:
    controllers = make_controllers([1, 2, 3])
    await controllers.start()
    leader = await controllers.leader()
    await controllers.write("before")
    node = controllers.nodes[leader]
    log = controllers.log(leader)
    log._log.log.health.fail("a test has taken it away")
    with pytest.raises(KafkaError) as refused:
        log.append([ConfigRecord(4, "", "x", "1")])
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert node.dead.is_set()
    await controllers.kill(leader)
    await controllers.write("after")
    await controllers.all_have("before", "after")
