"""What still takes it for granted that a node is alone, by name: each of these has to change, and will fail
here, when there can be other nodes.
"""

from mainstem.cluster.controller.controller import Controller
from mainstem.cluster.image import MetadataImage
from mainstem.config import BrokerConfig
from mainstem.protocol.apis.k19_create_topics import CreatableTopic, CreateTopicsRequest
from mainstem.protocol.errors import ErrorCode
from tests.cluster.cluster_model import apply, cluster_of


def controller(image: MetadataImage, config: BrokerConfig | None = None) -> Controller:
    return Controller(1, config or BrokerConfig({}), lambda: b"\x55" * 16, lambda: image)


def test_cordoned_directories_are_those_in_the_settings_of_the_controllers_own_broker() -> None:
    """Those of other brokers count as they are in the image; its own are in no record."""
    config = BrokerConfig({"log.dirs": "/a", "cordoned.log.dirs": "/a"})
    request = CreateTopicsRequest([CreatableTopic("t", 3, 1)])
    answer, _ = controller(cluster_of((1,)), config).create_topics(request)
    assert answer.topics[0].error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    _, records = controller(cluster_of((1, 2)), config).create_topics(request)
    placed = apply(cluster_of((1, 2)), records).topics_by_name["t"].partitions
    assert {part.replicas for part in placed} == {(2,)}
