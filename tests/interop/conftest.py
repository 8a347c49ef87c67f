"""Scenarios run against Mainstem and against Apache Kafka; both must give the answers that the test names."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mainstem.testing import Broker
from tests.support.group_members import Crew
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


@pytest.fixture
def topic(target: Target) -> str:
    """A fresh topic with one partition."""
    return target.create_topic()


@pytest.fixture
def crew(target: Target) -> Iterator[Crew]:
    """Group members, ended with the test."""
    crew = Crew(target)
    yield crew
    crew.close()


@pytest.fixture
def mainstem_crew(mainstem: Target) -> Iterator[Crew]:
    """Group members of Mainstem alone: a Java consumer costs a second, and that it agrees with Apache Kafka
    is no news.
    """
    crew = Crew(mainstem)
    yield crew
    crew.close()
