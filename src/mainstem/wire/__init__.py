"""A blocking Kafka client on the project's own protocol code, for bulk reading and writing without
librdkafka.

    from mainstem.wire import Cluster, from_kafka_options

    with Cluster(from_kafka_options({"bootstrap.servers": "localhost:9092"})) as cluster:
        for partition, fetched in cluster.stream({("orders", 0): (0, 1_000_000)}):
            ...

It works on whole record batches and never looks at single records. It imports nothing of the broker. A part
is imported when it is first asked for: a broker that speaks to another one needs few of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mainstem.wire.cluster import Cluster
    from mainstem.wire.configs import (
        ConfigResource,
        DescribedSetting,
        broker_resource,
        group_resource,
        topic_resource,
    )
    from mainstem.wire.connection import Connection, address_text
    from mainstem.wire.errors import (
        ConnectionLost,
        InvalidOption,
        KafkaRefusal,
        NoBrokerAnswers,
        NoProgress,
        NotServed,
        OffsetOutOfRange,
        SecurityError,
        TopicGone,
        UnsupportedOption,
        WireError,
    )
    from mainstem.wire.fetching import READ_COMMITTED, Fetched
    from mainstem.wire.group_offsets import CommittedOffset
    from mainstem.wire.kafka_options import from_kafka_options
    from mainstem.wire.list_offsets import EARLIEST, LATEST, MAX_TIMESTAMP
    from mainstem.wire.metadata import TopicMetadata
    from mainstem.wire.nodes import (
        PREFERRED,
        SAFE_DOWNGRADE,
        UNCLEAN,
        UNSAFE_DOWNGRADE,
        UPGRADE,
        BrokerNode,
    )
    from mainstem.wire.options import ClientOptions, SaslOptions, TlsOptions
    from mainstem.wire.quorum import QuorumReplica, QuorumState
    from mainstem.wire.stream import FetchStream
    from mainstem.wire.topics import CreatedTopic, NewTopic
    from mainstem.wire.transactions import ProducerIdentity

_MODULES = {
    "BrokerNode": "nodes",
    "ClientOptions": "options",
    "Cluster": "cluster",
    "CommittedOffset": "group_offsets",
    "ConfigResource": "configs",
    "Connection": "connection",
    "ConnectionLost": "errors",
    "CreatedTopic": "topics",
    "DescribedSetting": "configs",
    "EARLIEST": "list_offsets",
    "FetchStream": "stream",
    "Fetched": "fetching",
    "InvalidOption": "errors",
    "KafkaRefusal": "errors",
    "LATEST": "list_offsets",
    "MAX_TIMESTAMP": "list_offsets",
    "NewTopic": "topics",
    "NoBrokerAnswers": "errors",
    "NoProgress": "errors",
    "NotServed": "errors",
    "OffsetOutOfRange": "errors",
    "PREFERRED": "nodes",
    "ProducerIdentity": "transactions",
    "QuorumReplica": "quorum",
    "QuorumState": "quorum",
    "READ_COMMITTED": "fetching",
    "SAFE_DOWNGRADE": "nodes",
    "SaslOptions": "options",
    "SecurityError": "errors",
    "TlsOptions": "options",
    "TopicGone": "errors",
    "TopicMetadata": "metadata",
    "UNCLEAN": "nodes",
    "UNSAFE_DOWNGRADE": "nodes",
    "UPGRADE": "nodes",
    "UnsupportedOption": "errors",
    "WireError": "errors",
    "address_text": "connection",
    "broker_resource": "configs",
    "from_kafka_options": "kafka_options",
    "group_resource": "configs",
    "topic_resource": "configs",
}

__all__ = [
    "EARLIEST",
    "LATEST",
    "MAX_TIMESTAMP",
    "PREFERRED",
    "READ_COMMITTED",
    "SAFE_DOWNGRADE",
    "UNCLEAN",
    "UNSAFE_DOWNGRADE",
    "UPGRADE",
    "BrokerNode",
    "ClientOptions",
    "Cluster",
    "CommittedOffset",
    "ConfigResource",
    "Connection",
    "ConnectionLost",
    "CreatedTopic",
    "DescribedSetting",
    "FetchStream",
    "Fetched",
    "InvalidOption",
    "KafkaRefusal",
    "NewTopic",
    "NoBrokerAnswers",
    "NoProgress",
    "NotServed",
    "OffsetOutOfRange",
    "ProducerIdentity",
    "QuorumReplica",
    "QuorumState",
    "SaslOptions",
    "SecurityError",
    "TlsOptions",
    "TopicGone",
    "TopicMetadata",
    "UnsupportedOption",
    "WireError",
    "address_text",
    "broker_resource",
    "from_kafka_options",
    "group_resource",
    "topic_resource",
]


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
    return value
