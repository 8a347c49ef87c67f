"""A broker that does not decide hands on to the controller what clients ask, and its answers back."""

import asyncio
from pathlib import Path

from mainstem.protocol.apis.k55_describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from mainstem.protocol.apis.k57_update_features import FeatureUpdateKey, UpdateFeaturesRequest
from mainstem.protocol.apis.k80_add_raft_voter import AddRaftVoterRequest, Listener
from mainstem.protocol.apis.k81_remove_raft_voter import RemoveRaftVoterRequest
from mainstem.protocol.errors import ErrorCode
from tests.broker.harness import Client
from tests.broker.nodes import Nodes
from tests.broker.test_cluster_nodes import COMBINED

DYNAMIC = 1


async def voters(client: Client) -> dict[int, bytes]:
    """The directory of each, as the quorum describes itself."""
    request = DescribeQuorumRequest([TopicData("__cluster_metadata", [PartitionData(0)])])
    (partition,) = (await client.call(request)).topics[0].partitions
    assert partition.error_code == ErrorCode.NONE
    return {voter.replica_id: voter.replica_directory_id for voter in partition.current_voters}


async def make_dynamic(client: Client) -> None:
    """Every voter has to make itself known to its leader before that."""
    update = UpdateFeaturesRequest(10_000, [FeatureUpdateKey("kraft.version", DYNAMIC, upgrade_type=1)])
    async with asyncio.timeout(20):
        while (await client.call(update)).error_code != ErrorCode.NONE:
            await asyncio.sleep(0.05)


async def test_what_the_quorum_answers_later_is_answered_once(runner: asyncio.Runner, tmp_path: Path) -> None:
    """A change of the voters that were asked for twice would be refused the second time."""
    nodes = Nodes(tmp_path, dict.fromkeys((1, 2, 3), COMBINED))
    try:
        await nodes.start()
        active = await nodes.active_controller()
        asked, changed = (node_id for node_id in nodes.running if node_id != active)
        (own,) = (bound for bound in nodes.running[changed].bound_listeners if bound.is_controller)
        async with await nodes.connect(asked) as client:
            await make_dynamic(client)
            before = await voters(client)
            removal = RemoveRaftVoterRequest(nodes.cluster_id, changed, before[changed])
            assert (await client.call(removal)).error_code == ErrorCode.NONE
            assert (await voters(client)).keys() == {active, asked}
            assert (await client.call(removal)).error_code == ErrorCode.VOTER_NOT_FOUND
            listener = Listener("CONTROLLER", "127.0.0.1", own.port)
            addition = AddRaftVoterRequest(nodes.cluster_id, 20_000, changed, before[changed], [listener])
            assert (await client.call(addition)).error_code == ErrorCode.NONE
            assert await voters(client) == before
            assert (await client.call(addition)).error_code == ErrorCode.DUPLICATE_VOTER
    finally:
        await nodes.stop()
