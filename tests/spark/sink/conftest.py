"""The brokers that rows are written to: Mainstem, and Apache Kafka."""

from pathlib import Path

import pytest

from mainstem.testing import Broker
from tests.support.kafka_peer import shared_kafka
from tests.support.target import Target


@pytest.fixture(scope="session")
def mainstem(mainstem_broker: Broker) -> Target:
    """One Mainstem broker per worker."""
    return Target("mainstem", mainstem_broker.bootstrap_servers, mainstem_broker.data_dir)


@pytest.fixture(scope="session")
def kafka() -> Target:
    """The Apache Kafka broker that all workers share."""
    peer = shared_kafka()
    return Target("kafka", peer.bootstrap_servers, Path(peer.log_dir))


@pytest.fixture(params=["mainstem", pytest.param("kafka", marks=pytest.mark.peer)])
def target(request: pytest.FixtureRequest) -> Target:
    """Mainstem, then Apache Kafka."""
    return request.getfixturevalue(request.param)
