"""Fast fencing: a lost connection is a hint, and only an address where nobody listens is a proof."""

from mainstem.cluster.controller.probes import Probe
from tests.cluster.cluster_model import Cluster, registration


def lose(cluster: Cluster, broker_id: int) -> None:
    """Its heartbeat connection breaks, and nobody listens at its address."""
    cluster.controller.connection_lost(broker_id, cluster.image.brokers[broker_id].epoch, cluster.now_ms)
    for probe in cluster.pass_time():
        cluster.apply(cluster.controller.refused(probe, cluster.now_ms))


def probed(cluster: Cluster, broker_id: int) -> Probe:
    """Its heartbeat connection breaks, and its address is dialled."""
    cluster.controller.connection_lost(broker_id, cluster.image.brokers[broker_id].epoch, cluster.now_ms)
    (probe,) = cluster.pass_time()
    return probe


def quiet_cluster(*broker_ids: int) -> Cluster:
    """The probes of a controller that has just begun are over."""
    cluster = Cluster(broker_ids, node_id=9)
    cluster.pass_time()
    return cluster


def test_a_dead_broker_is_fenced_without_waiting_for_its_session() -> None:
    cluster = quiet_cluster(1, 2, 3)
    cluster.create("orders", (1, 2, 3))
    lose(cluster, 1)
    assert cluster.image.brokers[1].fenced
    assert (cluster.partition("orders").leader, cluster.partition("orders").isr) == (2, (2, 3))


def test_the_probe_goes_where_brokers_reach_each_other() -> None:
    cluster = quiet_cluster(1)
    probe = probed(cluster, 1)
    assert (probe.host, probe.port) == ("127.0.0.1", 9001)


def test_a_broker_that_was_heard_of_meanwhile_is_alive() -> None:
    cluster = quiet_cluster(1, 2)
    probe = probed(cluster, 1)
    cluster.now_ms += 1
    cluster.heartbeat(1)
    assert cluster.controller.refused(probe, cluster.now_ms) == []


def test_no_partition_is_left_without_a_leader_by_a_guess() -> None:
    cluster = quiet_cluster(1, 2)
    cluster.create("alone", (1,))
    cluster.create("shared", (1, 2), (2, 1))
    lose(cluster, 1)
    assert cluster.partition("alone").leader == 1, "only its session's end says so"
    shared = cluster.image.topics_by_name["shared"].partitions
    assert [(part.leader, part.isr) for part in shared] == [(2, (2,))] * 2
    assert not cluster.image.brokers[1].fenced


def test_one_start_of_a_broker_is_probed_once_a_second_and_taken_for_dead_once_in_a_session() -> None:
    cluster = quiet_cluster(1, 2)
    lose(cluster, 1)
    epoch = cluster.image.brokers[1].epoch
    cluster.heartbeat(1)  # it lives
    assert not cluster.image.brokers[1].fenced
    cluster.controller.connection_lost(1, epoch, cluster.now_ms)
    assert cluster.pass_time(999) == []
    (probe,) = cluster.pass_time(1)
    assert cluster.controller.refused(probe, cluster.now_ms) == []


def test_a_broker_that_was_started_again_may_die_again() -> None:
    cluster = quiet_cluster(1, 2)
    lose(cluster, 1)
    cluster.join(registration(1, incarnation=1))
    cluster.controller.connection_lost(1, cluster.image.brokers[1].epoch, cluster.now_ms)
    (probe,) = cluster.pass_time(1000)
    cluster.apply(cluster.controller.refused(probe, cluster.now_ms))
    assert cluster.image.brokers[1].fenced


def test_a_new_controller_probes_every_unfenced_broker_but_its_own() -> None:
    cluster = Cluster((1, 2, 3), node_id=9)
    cluster.heartbeat(3, want_fence=True)
    cluster.change_controller(1)
    assert [probe.broker_id for probe in cluster.pass_time()] == [2]


def test_a_lost_connection_of_a_former_incarnation_says_nothing() -> None:
    cluster = quiet_cluster(1)
    cluster.controller.connection_lost(1, cluster.image.brokers[1].epoch - 1, cluster.now_ms)
    assert cluster.pass_time() == []


def test_a_broker_of_which_nothing_is_heard_is_dialled_again_and_again() -> None:
    """Its connections may be gone before its listener is."""
    cluster = quiet_cluster(1, 2)
    cluster.create("orders", (1, 2))
    probe = probed(cluster, 1)
    for pause_ms in (20, 80, 200, 500, 1000, 1000):
        cluster.controller.not_refused(probe, cluster.now_ms)
        assert cluster.pass_time(pause_ms - 1) == []
        (probe,) = cluster.pass_time(1)
    cluster.apply(cluster.controller.refused(probe, cluster.now_ms))
    assert cluster.image.brokers[1].fenced
    assert cluster.partition("orders").leader == 2


def test_a_broker_that_was_heard_of_is_not_dialled_again() -> None:
    cluster = quiet_cluster(1, 2)
    probe = probed(cluster, 1)
    cluster.now_ms += 1
    cluster.heartbeat(1)
    cluster.controller.not_refused(probe, cluster.now_ms)
    assert cluster.pass_time(2_000) == []
