"""Heartbeats: sessions end, brokers hand over what they lead before they end, new controllers begin anew."""

import pytest

from mainstem.protocol.apis.k63_broker_heartbeat import BrokerHeartbeatRequest
from mainstem.protocol.errors import ErrorCode, KafkaError
from tests.cluster.cluster_model import Cluster

SESSION_MS = 9_000


def test_a_silent_broker_is_fenced_when_its_session_is_over() -> None:
    cluster = Cluster((1, 2, 3), node_id=9)
    cluster.create("orders", (1, 2, 3))
    cluster.pass_time(SESSION_MS)
    assert cluster.image.brokers[1].active, "its time is not over"
    for broker_id in (2, 3):
        cluster.heartbeat(broker_id)
    assert cluster.controller.deadline_ms() == cluster.now_ms + 1
    cluster.pass_time(1)
    assert [broker.fenced for broker in cluster.image.brokers.values()] == [True, False, False]
    after = cluster.partition("orders")
    assert (after.leader, after.isr, after.leader_epoch) == (2, (2, 3), 1)


def test_the_broker_beside_the_controller_is_there_as_long_as_the_controller_is() -> None:
    cluster = Cluster((1,))
    assert cluster.controller.deadline_ms() is None, "a node alone needs no timer"
    cluster.pass_time(10 * SESSION_MS)
    assert cluster.image.brokers[1].active


def test_a_new_controller_takes_everybody_for_just_contacted() -> None:
    """KAFKA-18138: it has heard of nobody yet."""
    cluster = Cluster((1, 2), node_id=9)
    cluster.now_ms += 100 * SESSION_MS
    cluster.controller.activate(cluster.now_ms)
    cluster.pass_time(SESSION_MS)
    assert all(broker.active for broker in cluster.image.brokers.values())
    cluster.pass_time(1)
    assert all(broker.fenced for broker in cluster.image.brokers.values())


def test_a_former_incarnation_is_not_listened_to() -> None:
    cluster = Cluster((1,), node_id=9)
    for broker_id, epoch in ((1, cluster.image.brokers[1].epoch - 1), (2, 5)):
        with pytest.raises(KafkaError) as error:
            cluster.controller.heartbeat(BrokerHeartbeatRequest(broker_id, epoch), cluster.now_ms)
        assert error.value.code is ErrorCode.STALE_BROKER_EPOCH


def test_a_broker_that_wants_to_be_fenced_is() -> None:
    cluster = Cluster((1, 2), node_id=9)
    cluster.create("orders", (1, 2))
    assert cluster.heartbeat(1, want_fence=True).is_fenced
    assert cluster.partition("orders").leader == 2
    assert not cluster.heartbeat(1).is_fenced, "and comes back when it wants to"
    assert cluster.partition("orders").isr == (2,), "but has to catch up first"


def test_a_broker_ends_when_all_others_have_seen_that_it_leads_nothing() -> None:
    cluster = Cluster((1, 2, 3), node_id=9)
    cluster.create("orders", (1, 2, 3))
    before = cluster.image.offset
    asked = cluster.heartbeat(1, want_shut_down=True)
    assert not asked.should_shut_down
    moved = cluster.partition("orders")
    assert (moved.leader, moved.isr) == (2, (2, 3)), "it is in sync with nothing before it may end (KIP-841)"
    cluster.heartbeat(2)
    cluster.heartbeat(3, current_metadata_offset=before)
    assert not cluster.heartbeat(1, want_shut_down=True).should_shut_down, "broker 3 still sends to it"
    cluster.heartbeat(3)
    granted = cluster.heartbeat(1, want_shut_down=True)
    assert (granted.should_shut_down, granted.is_fenced) == (True, True)
    assert cluster.image.brokers[1].fenced


def test_the_last_broker_ends_although_nobody_takes_over() -> None:
    cluster = Cluster((1,), node_id=9)
    cluster.create("orders", (1,))
    cluster.heartbeat(1, want_shut_down=True)
    assert cluster.heartbeat(1, want_shut_down=True).should_shut_down
    assert (cluster.partition("orders").leader, cluster.partition("orders").isr) == (-1, (1,))


def test_who_leads_nothing_ends_at_once() -> None:
    cluster = Cluster((1, 2), node_id=9)
    cluster.create("orders", (1, 2))
    assert cluster.heartbeat(2, want_shut_down=True).should_shut_down
    assert cluster.partition("orders").isr == (1,)


def test_a_new_controller_goes_on_where_the_former_one_stopped() -> None:
    """Partitions that the former one had no time for are led by others as soon as there is a new one."""
    cluster = Cluster((1, 2, 3), node_id=9)
    cluster.create("many", *([1, 2, 3],) * 1_500)
    cluster.now_ms += SESSION_MS + 1
    for broker_id in (2, 3):
        cluster.heartbeat(broker_id)
    cluster.apply(cluster.controller.time_passed(cluster.now_ms).records)
    assert cluster.image.brokers[1].fenced
    assert cluster.partition("many", 1_499).leader == 1, "not yet"
    cluster.change_controller(9)
    cluster.pass_time()
    assert {part.leader for part in cluster.image.topics_by_name["many"].partitions} == {2}


def test_internal_topics_are_led_again_first() -> None:
    cluster = Cluster((1, 2), node_id=9)
    cluster.create("many", *([1, 2],) * 1_500)
    cluster.create("__consumer_offsets", (1, 2))
    cluster.now_ms += SESSION_MS + 1
    cluster.heartbeat(2)
    for _ in range(2):
        cluster.apply(cluster.controller.time_passed(cluster.now_ms).records)
    led = [part.leader for part in cluster.image.topics_by_name["many"].partitions]
    assert cluster.partition("__consumer_offsets").leader == 2
    assert led.count(2) == 999, "a thousand at a time"
    cluster.pass_time()
    assert {part.leader for part in cluster.image.topics_by_name["many"].partitions} == {2}
