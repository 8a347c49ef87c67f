"""The pytest plugin: a Mainstem broker or cluster for the whole session, or a fresh one for a single test.

pytest loads it in every run of every project that has Mainstem installed, so it imports nothing but pytest;
the rest is imported when a test asks for a broker.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from mainstem.testing import Broker, Cluster
    from mainstem.testing.settings import SettingValue


@pytest.fixture(scope="session")
def mainstem_config() -> Mapping[str, SettingValue]:
    """Broker settings for all fixtures; override it in a conftest.py to change them."""
    return {}


@pytest.fixture(scope="session")
def mainstem_broker(mainstem_config: Mapping[str, SettingValue]) -> Iterator[Broker]:
    """One broker for all tests of the session (of the worker, under pytest-xdist)."""
    from mainstem.testing import Broker

    with Broker(mainstem_config) as broker:
        yield broker


@pytest.fixture
def fresh_mainstem_broker(mainstem_config: Mapping[str, SettingValue]) -> Iterator[Broker]:
    """A broker of its own for one test: empty, on its own port."""
    from mainstem.testing import Broker

    with Broker(mainstem_config) as broker:
        yield broker


@pytest.fixture(scope="session")
def mainstem_cluster(mainstem_config: Mapping[str, SettingValue]) -> Iterator[Cluster]:
    """Three nodes for all tests of the session; a test that ends one starts it again."""
    from mainstem.testing import Cluster

    with Cluster(3, mainstem_config) as cluster:
        yield cluster


@pytest.fixture
def fresh_mainstem_cluster(mainstem_config: Mapping[str, SettingValue]) -> Iterator[Cluster]:
    """Three nodes of its own for one test."""
    from mainstem.testing import Cluster

    with Cluster(3, mainstem_config) as cluster:
        yield cluster
