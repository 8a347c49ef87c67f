"""Leaders: asked for by clients, preferred ones that come back, and unclean ones where they are allowed."""

import pytest

from mainstem.protocol.apis.k43_elect_leaders import ElectLeadersRequest, TopicPartitions
from mainstem.protocol.apis.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from mainstem.protocol.errors import ErrorCode, KafkaError
from tests.cluster.cluster_model import Cluster
from tests.cluster.controller.test_alter_partition import alter

PREFERRED, UNCLEAN = 0, 1
CHECK_MS = 300_000


def elect(cluster: Cluster, kind: int, *partitions: int, topic: str = "orders") -> dict[int, int]:
    """The results by partition; all partitions when none is named."""
    wishes = [TopicPartitions(topic, list(partitions))] if partitions else None
    response, records = cluster.controller.elect_leaders(ElectLeadersRequest(kind, wishes))
    cluster.apply(records)
    found = [r for r in response.replica_election_results if r.topic == topic]
    return {result.partition_id: result.error_code for result in found[0].partition_result}


@pytest.fixture
def cluster() -> Cluster:
    """Broker 1 is the preferred leader of both partitions, and was away for a while."""
    made = Cluster((1, 2), node_id=9)
    made.create("orders", (1, 2), (1, 2))
    made.heartbeat(1, want_fence=True)
    made.heartbeat(1)
    return made


def test_the_preferred_leader_is_elected_when_it_is_in_sync(cluster: Cluster) -> None:
    assert elect(cluster, PREFERRED, 0) == {0: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}
    alter(cluster, [1, 2], by=2)
    assert elect(cluster, PREFERRED) == {0: ErrorCode.NONE, 1: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}
    assert (cluster.partition("orders").leader, cluster.partition("orders").leader_epoch) == (1, 2)
    assert elect(cluster, PREFERRED, 0) == {0: ErrorCode.ELECTION_NOT_NEEDED}
    assert elect(cluster, PREFERRED) == {1: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}, "no word of the others"


def test_an_unclean_election_is_for_partitions_without_a_leader(cluster: Cluster) -> None:
    assert elect(cluster, UNCLEAN, 0) == {0: ErrorCode.ELECTION_NOT_NEEDED}
    cluster.heartbeat(2, want_fence=True)
    assert elect(cluster, UNCLEAN, 0) == {0: ErrorCode.NONE}
    found = cluster.partition("orders")
    assert (found.leader, found.isr, found.leader_recovery_state) == (1, (1,), 1)
    cluster.heartbeat(1, want_fence=True)
    assert elect(cluster, UNCLEAN, 1) == {1: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE}


def test_what_is_not_there_cannot_be_elected(cluster: Cluster) -> None:
    assert elect(cluster, PREFERRED, 2, -1) == dict.fromkeys((2, -1), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    with pytest.raises(KafkaError) as error:
        cluster.controller.elect_leaders(ElectLeadersRequest(7, None))
    assert error.value.code is ErrorCode.INVALID_REQUEST


def test_preferred_leaders_come_back_by_themselves(cluster: Cluster) -> None:
    alter(cluster, [1, 2], by=2)
    for _ in range(CHECK_MS // 3_000):
        cluster.heartbeat(1)
        cluster.heartbeat(2)
        cluster.pass_time(3_000)
    assert [cluster.partition("orders", number).leader for number in (0, 1)] == [1, 2]
    assert cluster.partition("orders", 1).isr == (2,), "whoever is not in sync does not lead"


def test_preferred_leaders_stay_away_where_that_is_not_wanted() -> None:
    cluster = Cluster((1, 2), {"auto.leader.rebalance.enable": "false"}, node_id=9)
    cluster.create("orders", (1, 2))
    cluster.heartbeat(1, want_fence=True)
    cluster.heartbeat(1)
    alter(cluster, [1, 2], by=2)
    cluster.now_ms += 2 * CHECK_MS
    cluster.heartbeat(1)
    cluster.heartbeat(2)
    cluster.pass_time()
    assert cluster.partition("orders").leader == 2


def test_without_leave_nobody_leads_who_may_lack_something() -> None:
    cluster = Cluster((1, 2), node_id=9)
    cluster.create("orders", (1, 2))
    alter(cluster, [1])
    cluster.heartbeat(1, want_fence=True)
    assert (cluster.partition("orders").leader, cluster.partition("orders").isr) == (-1, (1,))


@pytest.mark.parametrize("whose", [(2, "orders"), (4, "")], ids=["the topic's", "the cluster's"])
def test_leave_for_unclean_elections_takes_effect_at_once(whose: tuple[int, str]) -> None:
    cluster = Cluster((1, 2), node_id=9)
    cluster.create("orders", (1, 2))
    alter(cluster, [1])
    cluster.heartbeat(1, want_fence=True)
    setting = AlterableConfig("unclean.leader.election.enable", 0, "true")
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(*whose, [setting])])
    response, records = cluster.controller.incremental_alter_configs(request)
    assert response.responses[0].error_code == ErrorCode.NONE
    cluster.apply(records)
    cluster.pass_time()
    assert (cluster.partition("orders").leader, cluster.partition("orders").leader_recovery_state) == (2, 1)
