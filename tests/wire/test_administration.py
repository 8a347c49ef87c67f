"""What tools ask of a cluster: topics, settings, and the same question to every broker."""

import time
from collections.abc import Callable

import pytest

from mainstem.protocol.apis.k16_list_groups import ListGroupsRequest
from mainstem.protocol.errors import ErrorCode
from mainstem.wire import (
    Cluster,
    CommittedOffset,
    Connection,
    ConnectionLost,
    CreatedTopic,
    KafkaRefusal,
    NewTopic,
    WireError,
    broker_resource,
    topic_resource,
)
from mainstem.wire.configs import DescribedSetting
from mainstem.wire.errors import check
from tests.support.target import Target, unique_name
from tests.wire.helpers import options_of


def test_topics_are_created_grown_and_deleted_each_with_its_own_answer(cluster: Cluster) -> None:
    name = unique_name("made")
    created = cluster.create_topics([NewTopic(name, 2, 1, {"retention.ms": "60000"}), NewTopic("bad name")])
    made, refused = created[name], created["bad name"]
    assert isinstance(made, CreatedTopic)
    assert (made.partitions, made.replication_factor, made.configs["retention.ms"]) == (2, 1, "60000")
    assert isinstance(refused, KafkaRefusal)
    assert refused.code == ErrorCode.INVALID_TOPIC_EXCEPTION

    assert cluster.create_partitions({name: 3}) == {name: None}
    shrunk = cluster.create_partitions({name: 1})[name]
    assert shrunk is not None
    assert shrunk.code == ErrorCode.INVALID_PARTITIONS
    deleted = cluster.delete_topics([name, unique_name("absent")])
    assert deleted.pop(name) is None
    (absent,) = deleted.values()
    assert absent is not None
    assert absent.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_replicas_are_told(cluster: Cluster, topic: str) -> None:
    (partition,) = cluster.metadata([topic])[topic].partitions.values()
    assert partition.replicas == partition.isr == (partition.leader,)


def await_retention(
    cluster: Cluster, topic: str, is_wanted: Callable[[str | None], bool]
) -> DescribedSetting:
    """Apache Kafka answers an alteration a moment before it shows."""
    deadline = time.monotonic() + 20
    while True:
        (setting,) = cluster.describe_configs(topic_resource(topic), ["retention.ms"])
        if is_wanted(setting.value):
            return setting
        assert time.monotonic() < deadline, setting
        time.sleep(0.01)


def test_settings_are_described_and_altered(cluster: Cluster, topic: str) -> None:
    resource = topic_resource(topic)
    cluster.alter_configs(resource, {"retention.ms": "1000"})
    setting = await_retention(cluster, topic, lambda value: value == "1000")
    assert setting.layers[0].value == "1000"
    cluster.alter_configs(resource, {"retention.ms": None})
    await_retention(cluster, topic, lambda value: value != "1000")
    with pytest.raises(KafkaRefusal, match=r"alter topic .*: INVALID_CONFIG"):
        cluster.alter_configs(resource, {"retention.ms": "soon"})
    node_id = next(iter(cluster.brokers()))
    names = [setting.name for setting in cluster.describe_configs(broker_resource(node_id))]
    assert "log.retention.ms" in names
    assert names == sorted(names)


def test_every_broker_and_every_coordinator_is_asked_with_its_id(cluster: Cluster, topic: str) -> None:
    groups = [unique_name("group") for _ in range(3)]
    for group in groups:
        cluster.offset_commit(group, {(topic, 0): CommittedOffset(0)})

    def listed(node_id: int, connection: Connection) -> list[tuple[int, str]]:
        return [(node_id, group.group_id) for group in connection.call(ListGroupsRequest()).groups]

    (node_id, (host, port)), *_ = cluster.brokers().items()
    assert {(node_id, group) for group in groups} <= set(cluster.at_each_broker(listed))
    asked = cluster.at_coordinators("group", groups, lambda node, _, keys: [(node, key) for key in keys])
    assert sorted(asked) == sorted((node_id, group) for group in groups)
    assert cluster.address(node_id) == (host, port)


def test_only_those_are_asked_again_that_have_no_answer(target: Target) -> None:
    told: list[WireError] = []
    with Cluster(options_of(target.bootstrap_servers), lambda problem, _: told.append(problem)) as cluster:
        codes = iter([ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR, ErrorCode.NONE])

        def ask(_: int, __: Connection, keys: list[str]) -> list[str]:
            check(next(codes), "ask")
            return keys

        assert cluster.at_coordinators("group", ["a", "b", "a"], ask) == ["a", "b"]
        refusals = [problem.code for problem in told if isinstance(problem, KafkaRefusal)]
        assert refusals[-2:] == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR]


def test_connecting_fails_at_the_first_attempt() -> None:
    told: list[WireError] = []
    with (
        Cluster(options_of("127.0.0.1:1"), lambda problem, _: told.append(problem)) as cluster,
        pytest.raises(ConnectionLost, match=r"no broker answers at 127.0.0.1:1 \(connection refused\)"),
    ):
        cluster.connect()
    assert told == []


def test_waiting_is_told_with_what_for(target: Target) -> None:
    told: list[tuple[WireError, float]] = []
    options = options_of(target.bootstrap_servers, default_api_timeout_ms="400")

    def refuse(_: Connection) -> None:
        check(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "ask")

    with (
        Cluster(options, lambda *waiting: told.append(waiting)) as cluster,
        pytest.raises(KafkaRefusal, match="still loading"),
    ):
        cluster.at_broker(min(cluster.brokers()), refuse)
    assert {str(problem) for problem, _ in told} == {
        "ask: COORDINATOR_LOAD_IN_PROGRESS: The coordinator is still loading its state."
    }
    assert [waited_s for _, waited_s in told] == sorted(waited_s for _, waited_s in told)
