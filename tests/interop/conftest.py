"""Scenarios run against Mainstem and against Apache Kafka; both must give the answers that the test names."""

from collections.abc import Iterator

import pytest

from tests.support.group_members import Crew
from tests.support.target import Target


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
