"""Voters come, go and move while the quorum works (KIP-853)."""

import asyncio

import pytest

from mainstem.protocol.apis.k80_add_raft_voter import AddRaftVoterRequest, Listener
from mainstem.protocol.apis.k81_remove_raft_voter import RemoveRaftVoterRequest
from mainstem.protocol.errors import ErrorCode, KafkaError
from tests.broker.harness import eventually
from tests.broker.quorum.controllers import CLUSTER, Controllers, Make, directory_id


def add_request(controllers: Controllers, node_id: int) -> AddRaftVoterRequest:
    listener = Listener("CONTROLLER", "127.0.0.1", controllers.ports[node_id])
    return AddRaftVoterRequest(
        cluster_id=CLUSTER,
        timeout_ms=10_000,
        voter_id=node_id,
        voter_directory_id=directory_id(node_id),
        listeners=[listener],
    )


async def added(controllers: Controllers, leader: int, node_id: int) -> None:
    """As operators do it: again, as long as the new one has not caught up."""
    while True:
        response = await controllers.ask(leader, add_request(controllers, node_id))
        if response.error_code != ErrorCode.REQUEST_TIMED_OUT:
            break
        await asyncio.sleep(0.02)
    assert response.error_code == 0, response.error_message


def remove_request(node_id: int) -> RemoveRaftVoterRequest:
    return RemoveRaftVoterRequest(
        cluster_id=CLUSTER, voter_id=node_id, voter_directory_id=directory_id(node_id)
    )


def voters(controllers: Controllers, node_id: int) -> set[int]:
    return set(controllers.quorum(node_id).history.voters.ids)


async def test_one_controller_becomes_three_and_two_again(make_controllers: Make) -> None:
    controllers = make_controllers([1], observers=[2, 3])
    await controllers.start()
    await controllers.write("alone")
    for node_id in (2, 3):
        await added(controllers, 1, node_id)
    await controllers.write("three")
    await controllers.all_have("alone", "three")
    assert all(voters(controllers, node_id) == {1, 2, 3} for node_id in (1, 2, 3))
    await controllers.kill(1)
    await controllers.write("without the first")
    leader = await controllers.leader()
    response = await controllers.ask(leader, remove_request(1))
    assert response.error_code == 0, response.error_message
    await eventually(
        lambda: all(voters(controllers, node_id) == {2, 3} for node_id in (2, 3)), "the voter is gone"
    )
    await controllers.stop()
    await controllers.start(2, 3)
    await controllers.write("later")
    await controllers.all_have("alone", "three", "without the first", "later")
    assert all(voters(controllers, node_id) == {2, 3} for node_id in (2, 3))


async def test_a_voter_is_not_added_twice_nor_removed_when_it_is_none(make_controllers: Make) -> None:
    controllers = make_controllers([1, 2, 3])
    await controllers.start()
    leader = await controllers.leader()
    response = await controllers.ask(leader, add_request(controllers, 2))
    assert response.error_code == ErrorCode.DUPLICATE_VOTER
    response = await controllers.ask(leader, remove_request(7))
    assert response.error_code == ErrorCode.VOTER_NOT_FOUND
    follower = next(node_id for node_id in (1, 2, 3) if node_id != leader)
    response = await controllers.ask(follower, remove_request(leader))
    assert response.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_a_leader_that_is_removed_hands_over(make_controllers: Make) -> None:
    controllers = make_controllers([1, 2, 3])
    await controllers.start()
    leader = await controllers.leader()
    response = await controllers.ask(leader, remove_request(leader))
    assert response.error_code == 0, response.error_message
    await eventually(lambda: not controllers.quorum(leader).is_active, "it leads no more")
    await controllers.write("without it")
    assert await controllers.leader() != leader
    await controllers.all_have("without it")


async def test_a_new_controller_joins_by_itself(make_controllers: Make) -> None:
    controllers = make_controllers(
        [1], observers=[2], settings={"controller.quorum.auto.join.enable": "true"}
    )
    await controllers.start()
    await eventually(
        lambda: all(voters(controllers, node_id) == {1, 2} for node_id in (1, 2)), "the second has joined"
    )
    await controllers.write("both")
    await controllers.all_have("both")


async def test_a_static_quorum_becomes_a_dynamic_one(make_controllers: Make) -> None:
    controllers = make_controllers([1, 2, 3], static=True)
    await controllers.start()
    leader = await controllers.leader()
    quorum = controllers.quorum(leader)
    with pytest.raises(KafkaError) as refused:
        await quorum.upgrade_kraft_version(7)
    assert refused.value.code is ErrorCode.INVALID_UPDATE_VERSION
    # Every voter makes itself known to its leader before that.
    async with asyncio.timeout(20):
        while True:
            try:
                await quorum.upgrade_kraft_version(1)
                break
            except KafkaError:
                await asyncio.sleep(0.05)
    await controllers.write("dynamic")
    await controllers.all_have("dynamic")
    for node_id in (1, 2, 3):
        assert controllers.quorum(node_id).history.kraft_version == 1
        assert controllers.image(node_id).features["kraft.version"] == 1
    follower = next(node_id for node_id in (1, 2, 3) if node_id != leader)
    (gone,) = [v.key for v in quorum.history.voters if v.key.node_id == follower]
    request = RemoveRaftVoterRequest(CLUSTER, follower, gone.directory_id)
    response = await controllers.ask(leader, request)
    assert response.error_code == 0, response.error_message
