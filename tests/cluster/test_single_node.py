"""What still takes it for granted that a node is alone, by name: each of these has to change, and will fail
here, when there can be other nodes.
"""

import pytest

from mainstem.cluster.controller import Controller
from mainstem.cluster.image import MetadataImage
from mainstem.cluster.placement import place_replicas
from mainstem.cluster.raft.quorum import Quorum
from mainstem.cluster.raft.quorum_state import QuorumState
from mainstem.config import BrokerConfig
from mainstem.protocol.apis.k19_create_topics import CreatableTopic, CreateTopicsRequest
from mainstem.protocol.apis.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import ConfigResourceType
from tests.cluster.cluster_model import apply, cluster_of, registration


def controller(image: MetadataImage, config: BrokerConfig | None = None) -> Controller:
    return Controller(1, config or BrokerConfig({}), lambda: b"\x55" * 16, lambda: image)


def test_a_start_replays_to_the_end_of_the_log_because_nobody_else_votes() -> None:
    """With other voters the end of the log may be cut; only what is below the high watermark is settled."""
    quorum = Quorum(1, (1,), QuorumState(), 3, 10)
    quorum.start()
    quorum.log_is_durable_to(12)
    assert quorum.high_watermark == 12
    with pytest.raises(ValueError, match="only a quorum of node 1 alone"):
        Quorum(1, (1, 2), QuorumState(), 3, 10)


def test_a_broker_of_another_node_begins_fenced() -> None:
    image = cluster_of((1,))
    _, own = controller(image).register_broker(registration(1))
    _, other = controller(image).register_broker(registration(2))
    assert not apply(image, own).brokers[1].fenced
    joined = apply(image, other)
    assert joined.brokers[2].fenced
    assert place_replicas(joined.brokers.values(), 3, 1, 0) == [(1,)] * 3, "nothing is placed on it before"


def test_only_the_settings_of_the_controllers_own_broker_can_be_altered() -> None:
    """What another broker was started with is not known here, and so is not what a change would lead to."""
    resource = AlterConfigsResource(
        ConfigResourceType.BROKER, "2", [AlterableConfig("log.retention.ms", 0, "5")]
    )
    answer, records = controller(cluster_of((1, 2))).incremental_alter_configs(
        IncrementalAlterConfigsRequest([resource])
    )
    assert answer.responses[0].error_code == ErrorCode.INVALID_REQUEST
    assert records == []


def test_cordoned_directories_are_those_in_the_settings_of_the_controllers_own_broker() -> None:
    """Those of other brokers count as they are in the image; its own are in no record."""
    config = BrokerConfig({"log.dirs": "/a", "cordoned.log.dirs": "/a"})
    request = CreateTopicsRequest([CreatableTopic("t", 3, 1)])
    answer, _ = controller(cluster_of((1,)), config).create_topics(request)
    assert answer.topics[0].error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    _, records = controller(cluster_of((1, 2)), config).create_topics(request)
    placed = apply(cluster_of((1, 2)), records).topics_by_name["t"].partitions
    assert {part.replicas for part in placed} == {(2,)}
