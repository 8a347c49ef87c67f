"""The same client against Mainstem and against Apache Kafka, and what every test of it needs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mainstem.testing import Broker
from mainstem.wire import Cluster
from tests.support.kafka_peer import shared_kafka
from tests.support.target import Target
from tests.wire.helpers import options_of


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


@pytest.fixture
def cluster(target: Target) -> Iterator[Cluster]:
    """A client of the target."""
    with Cluster(options_of(target.bootstrap_servers)) as client:
        yield client


@pytest.fixture
def topic(target: Target) -> str:
    """A fresh topic with one partition."""
    return target.create_topic()
