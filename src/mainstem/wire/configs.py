"""Settings of topics, groups and brokers: describing and altering them, at the right broker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

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
from mainstem.wire.brokers import Brokers
from mainstem.wire.connection import Connection
from mainstem.wire.errors import check

SET, DELETE = 0, 1


class ConfigResource(NamedTuple):
    """Whose settings. The name of all brokers together is empty."""

    type: ConfigResourceType
    name: str
    words: str  # what it is called in a sentence

    @property
    def broker_id(self) -> int | None:
        """The broker that must be asked itself."""
        return int(self.name) if self.type == ConfigResourceType.BROKER and self.name else None


def topic_resource(name: str) -> ConfigResource:
    return ConfigResource(ConfigResourceType.TOPIC, name, f"topic {name}")


def group_resource(name: str) -> ConfigResource:
    return ConfigResource(ConfigResourceType.GROUP, name, f"group {name}")


def broker_resource(broker_id: int | None) -> ConfigResource:
    """One broker, or all of them."""
    if broker_id is None:
        return ConfigResource(ConfigResourceType.BROKER, "", "all brokers")
    return ConfigResource(ConfigResourceType.BROKER, str(broker_id), f"broker {broker_id}")


class SettingLayer(NamedTuple):
    """One of the places that could give the value; the first of them does. `source` is Kafka's code."""

    source: int
    name: str
    value: str | None


class DescribedSetting(NamedTuple):
    """One setting as a broker describes it; `type` and `source` are Kafka's codes."""

    name: str
    value: str | None
    type: int
    source: int
    read_only: bool
    sensitive: bool
    layers: list[SettingLayer]
    doc: str


def describe_configs(
    brokers: Brokers, resources: Sequence[ConfigResource], names: Iterable[str] | None
) -> list[list[DescribedSetting]]:
    """The settings of each of these, which one broker can tell of; all settings when none is named."""
    keys = None if names is None else list(names)
    request = DescribeConfigsRequest(
        resources=[DescribeConfigsResource(resource.type, resource.name, keys) for resource in resources],
        include_synonyms=True,
        include_documentation=True,
    )
    results = {
        (result.resource_type, result.resource_name): result
        for result in _connection_for(brokers, resources[0]).call(request).results
    }
    found: list[list[DescribedSetting]] = []
    for resource in resources:
        result = results[resource.type, resource.name]
        check(result.error_code, f"describe {resource.words}", result.error_message)
        settings = (_described(entry) for entry in result.configs)
        found.append(sorted(settings, key=lambda setting: setting.name))
    return found


def alter_configs(brokers: Brokers, resource: ConfigResource, changes: Mapping[str, str | None]) -> None:
    configs = [
        AlterableConfig(name, DELETE if value is None else SET, value) for name, value in changes.items()
    ]
    request = IncrementalAlterConfigsRequest(
        resources=[AlterConfigsResource(resource.type, resource.name, configs)]
    )
    (result,) = _connection_for(brokers, resource).call(request).responses
    check(result.error_code, f"alter {resource.words}", result.error_message)


def _connection_for(brokers: Brokers, resource: ConfigResource) -> Connection:
    if resource.broker_id is None:
        return brokers.any_connection()
    if resource.broker_id not in brokers.addresses:
        brokers.refresh(())
    return brokers.connection(resource.broker_id)


def _described(entry: DescribeConfigsResourceResult) -> DescribedSetting:
    return DescribedSetting(
        entry.name,
        entry.value,
        entry.config_type,
        entry.config_source,
        entry.read_only,
        entry.is_sensitive,
        [SettingLayer(part.source, part.name, part.value) for part in entry.synonyms],
        entry.documentation or "",
    )
