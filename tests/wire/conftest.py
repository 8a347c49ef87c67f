"""The same client against Mainstem and against Apache Kafka, and what every test of it needs."""

from collections.abc import Iterator

import pytest

from mainstem.wire import Cluster
from tests.support.target import Target
from tests.wire.helpers import options_of


@pytest.fixture
def cluster(target: Target) -> Iterator[Cluster]:
    """A client of the target."""
    with Cluster(options_of(target.bootstrap_servers)) as client:
        yield client


@pytest.fixture
def topic(target: Target) -> str:
    """A fresh topic with one partition."""
    return target.create_topic()
