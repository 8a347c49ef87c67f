"""Requests about settings: DescribeConfigs and IncrementalAlterConfigs, spoken to the right broker.

librdkafka's own calls leave out the documentation, in which a Mainstem broker says what it does not act on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from mainstem.cli.client import admin_client, cluster_metadata
from mainstem.cli.cluster_requests import ClusterRequests, check
from mainstem.cli.errors import CommandError
from mainstem.cli.wire import Connection
from mainstem.config.definition import NOT_ACTED_ON, ConfigSource, ConfigType
from mainstem.protocol.apis.k32_describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
)
from mainstem.protocol.apis.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from mainstem.protocol.resources import ConfigResourceType

SET, DELETE = 0, 1


class Scope(NamedTuple):
    """Whose settings: a resource of Kafka's, and what it is called in a sentence."""

    resource_type: int
    name: str
    words: str

    @property
    def broker_id(self) -> int | None:
        """The broker that must be asked itself."""
        return int(self.name) if self.resource_type == ConfigResourceType.BROKER and self.name else None


def topic_scope(name: str) -> Scope:
    return Scope(ConfigResourceType.TOPIC, name, f"topic {name}")


def group_scope(name: str) -> Scope:
    return Scope(ConfigResourceType.GROUP, name, f"group {name}")


def broker_scope(broker_id: int | None) -> Scope:
    """One broker, or all of them."""
    if broker_id is None:
        return Scope(ConfigResourceType.BROKER, "", "all brokers")
    return Scope(ConfigResourceType.BROKER, str(broker_id), f"broker {broker_id}")


class Layer(NamedTuple):
    """One of the places that could give the value; the first of them does."""

    source: str
    name: str
    value: str | None


class Described(NamedTuple):
    """One setting as a broker describes it."""

    name: str
    value: str | None
    type: str
    source: str
    read_only: bool
    sensitive: bool
    layers: list[Layer]
    doc: str

    @property
    def acted_on(self) -> bool:
        return NOT_ACTED_ON not in self.doc


class ConfigRequests(ClusterRequests):
    """Use as a context manager."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._addresses = bootstrap

    def describe(self, scope: Scope, names: Iterable[str] | None = None) -> list[Described]:
        """Settings in the order of their names; all when none is named."""
        keys = None if names is None else list(names)
        request = DescribeConfigsRequest(
            resources=[DescribeConfigsResource(scope.resource_type, scope.name, keys)],
            include_synonyms=True,
            include_documentation=True,
        )
        (result,) = self._connection_for(scope).call(request).results
        check(result.error_code, f"describe {scope.words}", result.error_message)
        return sorted((_described(entry) for entry in result.configs), key=lambda setting: setting.name)

    def alter(self, scope: Scope, changes: Mapping[str, str | None]) -> None:
        """Set these, all or none; None takes away what was set."""
        configs = [
            AlterableConfig(name, DELETE if value is None else SET, value) for name, value in changes.items()
        ]
        request = IncrementalAlterConfigsRequest(
            resources=[AlterConfigsResource(scope.resource_type, scope.name, configs)]
        )
        (result,) = self._connection_for(scope).call(request).responses
        check(result.error_code, f"alter {scope.words}", result.error_message)

    def any_broker(self) -> int:
        """The id of a broker, for a person who has only one."""
        return min(cluster_metadata(admin_client(self._addresses), self._addresses).brokers)

    def _connection_for(self, scope: Scope) -> Connection:
        if scope.broker_id is None:
            return self.any_connection()
        brokers = cluster_metadata(admin_client(self._addresses), self._addresses).brokers
        broker = brokers.get(scope.broker_id)
        if broker is None:
            known = ", ".join(map(str, sorted(brokers)))
            raise CommandError(f"there is no broker {scope.broker_id}", f"there are: {known}")
        return self.connection(str(broker.host), broker.port)


def _described(entry: DescribeConfigsResourceResult) -> Described:
    return Described(
        entry.name,
        entry.value,
        _word(ConfigType, entry.config_type),
        _word(ConfigSource, entry.config_source),
        entry.read_only,
        entry.is_sensitive,
        [Layer(_word(ConfigSource, part.source), part.name, part.value) for part in entry.synonyms],
        entry.documentation or "",
    )


def _word(kind: type[ConfigType] | type[ConfigSource], code: int) -> str:
    """The name of a code in small letters; the code itself when it is newer than this program."""
    try:
        return kind(code).name.lower().removesuffix("_config").replace("_", " ")
    except ValueError:
        return str(code)
