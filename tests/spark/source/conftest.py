"""The clusters that are read: Mainstem, and Apache Kafka."""

import pytest

from mainstem.testing import Broker
from tests.spark.source.topics import Topics
from tests.support.kafka_peer import shared_kafka


@pytest.fixture(scope="session")
def mainstem(mainstem_broker: Broker) -> Topics:
    """One Mainstem broker per worker."""
    return Topics(mainstem_broker.bootstrap_servers)


@pytest.fixture(scope="session")
def kafka() -> Topics:
    """The Apache Kafka broker that all workers share."""
    return Topics(shared_kafka().bootstrap_servers)


@pytest.fixture(params=["mainstem", pytest.param("kafka", marks=pytest.mark.peer)])
def topics(request: pytest.FixtureRequest) -> Topics:
    """Mainstem, then Apache Kafka."""
    return request.getfixturevalue(request.param)
