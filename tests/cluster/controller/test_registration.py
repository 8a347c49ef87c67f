"""Registration: who is let in, which epoch a broker gets, and what its former incarnation leaves behind."""

from typing import Any

import pytest
from msgspec.structs import replace

from mainstem.cluster.features import ELIGIBLE_LEADER_REPLICAS_VERSION
from mainstem.cluster.records import PartitionChangeRecord, PartitionRecord, TopicRecord
from mainstem.protocol.apis.k62_broker_registration import BrokerRegistrationRequest, Feature, Listener
from mainstem.protocol.apis.k64_unregister_broker import UnregisterBrokerRequest
from mainstem.protocol.apis.k70_controller_registration import ControllerRegistrationRequest
from mainstem.protocol.errors import ErrorCode, KafkaError
from tests.cluster.cluster_model import CLUSTER_ID, Cluster, registration

TOPIC_ID = b"\x44" * 16
ELR = {ELIGIBLE_LEADER_REPLICAS_VERSION: 1}


def refusal(cluster: Cluster, request: BrokerRegistrationRequest) -> ErrorCode:
    with pytest.raises(KafkaError) as error:
        cluster.controller.register_broker(request, CLUSTER_ID, cluster.now_ms)
    assert error.value.message, "it says why"
    return error.value.code


def test_a_new_broker_is_fenced_until_it_has_seen_its_own_registration() -> None:
    cluster = Cluster((1,))
    epoch = cluster.register(registration(2))
    assert cluster.image.brokers[2].epoch == epoch == cluster.image.offset
    behind = cluster.heartbeat(2, current_metadata_offset=epoch - 1)
    assert (behind.is_fenced, behind.is_caught_up) == (True, False)
    there = cluster.heartbeat(2, current_metadata_offset=epoch)
    assert (there.is_fenced, there.is_caught_up) == (False, True)
    assert cluster.image.brokers[2].active


def test_the_broker_of_the_controllers_own_process_leads_at_once_where_it_is_alone() -> None:
    cluster = Cluster(())
    cluster.register(registration(1), is_own=True)
    assert cluster.image.brokers[1].active
    others = Cluster((2,), node_id=1)
    others.register(registration(1), is_own=True)
    assert others.image.brokers[1].fenced, "others lead meanwhile what it is not ready for"


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"is_migrating_zk_broker": True}, ErrorCode.BROKER_ID_NOT_REGISTERED),
        ({"log_dirs": []}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [bytes(15) + b"\x02"]}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [TOPIC_ID, TOPIC_ID]}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": registration(1).log_dirs}, ErrorCode.INVALID_REGISTRATION),
        ({"features": []}, ErrorCode.UNSUPPORTED_VERSION),
        ({"features": [Feature("metadata.version", 7, 29)]}, ErrorCode.UNSUPPORTED_VERSION),
    ],
    ids=lambda value: value.name if isinstance(value, ErrorCode) else next(iter(value)),
)
def test_who_does_not_belong_here_is_refused(said: dict[str, Any], code: ErrorCode) -> None:
    assert refusal(Cluster((1,)), replace(registration(2), **said)) is code


def test_a_controller_takes_its_own_broker_whatever_the_cluster_was_begun_with() -> None:
    """Apache Kafka formats directories with features that are not known here."""
    unknown = replace(registration(1), features=[])
    cluster = Cluster((2,), node_id=1)
    assert refusal(cluster, replace(unknown, broker_id=3)) is ErrorCode.UNSUPPORTED_VERSION
    cluster.register(unknown, is_own=True)
    assert 1 in cluster.image.brokers


def test_an_id_is_not_given_to_a_second_process_while_the_first_one_is_alive() -> None:
    cluster = Cluster((1, 2), node_id=9)
    second = registration(2, incarnation=1)
    assert refusal(cluster, second) is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    cluster.now_ms += 9_001
    cluster.heartbeat(1)
    cluster.register(second)
    assert cluster.image.brokers[2].incarnation_id == second.incarnation_id


def test_a_killed_broker_registers_again_at_once() -> None:
    """Its connection is gone, and no other process can listen at its address (KAFKA-19047)."""
    cluster = Cluster((1, 2), node_id=9)
    cluster.create("orders", (2, 1))
    old = cluster.image.brokers[2].epoch
    cluster.controller.connection_lost(2, old, cluster.now_ms)
    elsewhere = registration(2, incarnation=1)
    elsewhere.listeners = [Listener("PLAINTEXT", "127.0.0.2", 9002)]
    assert refusal(cluster, elsewhere) is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    epoch = cluster.register(registration(2, incarnation=1))
    assert epoch > old
    after = cluster.partition("orders")
    assert (after.leader, after.isr, after.leader_epoch) == (1, (1,), 1)


def test_an_id_of_the_controllers_own_broker_is_not_given_away() -> None:
    cluster = Cluster((1, 2), node_id=1)
    cluster.now_ms += 100_000
    assert refusal(cluster, registration(1, incarnation=1)) is ErrorCode.DUPLICATE_BROKER_REGISTRATION


def test_the_same_process_may_register_again_and_keeps_its_epoch() -> None:
    cluster = Cluster((1, 2), node_id=9)
    cluster.create("orders", (2, 1))
    before, broker = cluster.partition("orders"), cluster.image.brokers[2]
    assert cluster.register(registration(2, rack="r")) == broker.epoch
    assert cluster.image.brokers[2] == replace(broker, rack="r")
    assert cluster.partition("orders") is before


def test_what_may_have_lost_something_is_not_even_eligible() -> None:
    """KAFKA-18106, KAFKA-18635: after kill -9 a log may end before what was acknowledged."""
    cluster = Cluster((1, 2, 3), node_id=9, features=ELR)
    cluster.create("orders", (1, 2, 3), min_insync_replicas="2")
    cluster.pass_time(4_000)
    cluster.heartbeat(3)
    cluster.pass_time(5_001)
    found = cluster.partition("orders")
    assert (found.isr, found.eligible_leader_replicas) == ((3,), (2,))
    cluster.register(registration(2, incarnation=1, previous_epoch=-1))
    assert cluster.partition("orders").eligible_leader_replicas == ()


def test_a_broker_that_ended_well_stays_eligible() -> None:
    cluster = Cluster((1, 2, 3), node_id=9, features=ELR)
    cluster.create("orders", (1, 2, 3), min_insync_replicas="2")
    cluster.heartbeat(1, want_fence=True)
    cluster.heartbeat(2, want_fence=True)
    assert cluster.partition("orders").eligible_leader_replicas == (2,)
    cluster.register(registration(2, incarnation=1, previous_epoch=cluster.image.brokers[2].epoch))
    assert cluster.partition("orders").eligible_leader_replicas == (2,)


@pytest.mark.parametrize("features", [{}, ELR], ids=["without ELR", "with ELR"])
def test_the_only_replica_leads_again_after_it_was_killed(features: dict[str, int]) -> None:
    cluster = Cluster((1, 2), node_id=9, features=features)
    cluster.create("orders", (2,))
    cluster.now_ms += 9_001
    cluster.heartbeat(1)
    cluster.pass_time()
    gone = cluster.partition("orders")
    assert (gone.leader, gone.leader_epoch) == (-1, 1)
    cluster.join(registration(2, incarnation=1))
    back = cluster.partition("orders")
    assert (back.leader, back.isr, back.leader_epoch) == (2, (2,), 2)
    assert (back.eligible_leader_replicas, back.last_known_elr) == ((), ())


@pytest.mark.parametrize("features", [{}, ELR], ids=["without ELR", "with ELR"])
def test_a_node_alone_leads_again_after_it_was_killed(features: dict[str, int]) -> None:
    cluster = Cluster((1,), features=features)
    cluster.create("orders", (1,))
    cluster.register(registration(1, incarnation=1), is_own=True)
    back = cluster.partition("orders")
    assert (back.leader, back.isr, back.leader_epoch, back.leader_recovery_state) == (1, (1,), 1, 0)


def test_an_eligible_leader_replica_leads_again_when_nobody_is_in_sync() -> None:
    """Apache Kafka 4 empties the in-sync replicas of a node that shuts down, and keeps it as eligible."""
    cluster = Cluster((1,), features=ELR)
    cluster.apply(
        [
            TopicRecord("orders", TOPIC_ID),
            PartitionRecord(
                0, TOPIC_ID, replicas=[2, 1], isr=[2, 1], leader=2, leader_epoch=4, partition_epoch=7
            ),
            PartitionChangeRecord(
                0, TOPIC_ID, isr=[], leader=-1, eligible_leader_replicas=[1], last_known_elr=[1]
            ),
        ]
    )
    before = cluster.partition("orders")
    cluster.register(registration(1, incarnation=1), is_own=True)
    after = cluster.partition("orders")
    assert (after.leader, after.isr) == (1, (1,))
    assert (after.eligible_leader_replicas, after.last_known_elr) == ((), ())
    assert after.leader_epoch == before.leader_epoch + 1


def test_who_is_unregistered_leads_nothing_and_comes_back_as_a_new_one() -> None:
    cluster = Cluster((1, 2), node_id=9)
    cluster.create("orders", (2, 1))
    cluster.apply(cluster.controller.unregister_broker(UnregisterBrokerRequest(2))[1])
    assert 2 not in cluster.image.brokers
    assert (cluster.partition("orders").leader, cluster.partition("orders").isr) == (1, (1,))
    with pytest.raises(KafkaError) as error:
        cluster.controller.unregister_broker(UnregisterBrokerRequest(2))
    assert error.value.code is ErrorCode.BROKER_ID_NOT_REGISTERED
    cluster.join(registration(2, incarnation=1))
    assert cluster.image.brokers[2].active


def test_a_controller_registers() -> None:
    cluster = Cluster((1,))
    request = ControllerRegistrationRequest(5, TOPIC_ID)
    response, records = cluster.controller.register_controller(request)
    cluster.apply(records)
    assert response.error_code == ErrorCode.NONE
    assert cluster.image.controllers[5].incarnation_id == TOPIC_ID
