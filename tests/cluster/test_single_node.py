"""What still takes it for granted that a node is alone, by name: each of these has to change, and will fail
here, when there can be other nodes.
"""

import pytest

from mainstem.cluster.controller.controller import Controller
from mainstem.cluster.image import MetadataImage
from mainstem.cluster.raft.quorum import Quorum
from mainstem.cluster.raft.quorum_state import QuorumState
from mainstem.config import BrokerConfig
from mainstem.protocol.apis.k19_create_topics import CreatableTopic, CreateTopicsRequest
from mainstem.protocol.errors import ErrorCode
from tests.cluster.cluster_model import apply, cluster_of


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


def test_cordoned_directories_are_those_in_the_settings_of_the_controllers_own_broker() -> None:
    """Those of other brokers count as they are in the image; its own are in no record."""
    config = BrokerConfig({"log.dirs": "/a", "cordoned.log.dirs": "/a"})
    request = CreateTopicsRequest([CreatableTopic("t", 3, 1)])
    answer, _ = controller(cluster_of((1,)), config).create_topics(request)
    assert answer.topics[0].error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    _, records = controller(cluster_of((1, 2)), config).create_topics(request)
    placed = apply(cluster_of((1, 2)), records).topics_by_name["t"].partitions
    assert {part.replicas for part in placed} == {(2,)}
