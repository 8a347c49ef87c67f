"""IncrementalAlterConfigs and AlterConfigs for topics, groups and brokers: what may be set, as which records.

Each resource stands or falls alone and as a whole. A value that is already there makes no record. Where
eligible leader replicas are kept (KIP-966), who is eligible follows from min.insync.replicas: a new value
forgets them all, and the one of the cluster is always there, the same for all brokers.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import TypeVar

from msgspec import Struct

from mainstem.cluster.controller.facts import MIN_INSYNC_REPLICAS, elr_is_on
from mainstem.cluster.image import MetadataImage
from mainstem.cluster.records import ClearElrRecord, ConfigRecord, MetadataRecord
from mainstem.cluster.topic_names import name_problem
from mainstem.config import BrokerConfig, ConfigError, validate_group_configs, validate_topic_configs
from mainstem.config.describe import describe_topic
from mainstem.config.dynamic import (
    is_list_broker_setting,
    validate_broker_outcome,
    validate_dynamic_broker,
)
from mainstem.config.resolve import base_setting, canonical_broker_name
from mainstem.config.topic import append_to_list, canonical_topic_name, is_list_setting, subtract_from_list
from mainstem.protocol.apis import k33_alter_configs as legacy
from mainstem.protocol.apis import k44_incremental_alter_configs as incremental
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.protocol.resources import ConfigResourceType


class ConfigOperation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Operation(Struct, frozen=True):
    """One change of one setting."""

    name: str
    kind: int
    value: str | None


_Resource = TypeVar("_Resource", incremental.AlterConfigsResource, legacy.AlterConfigsResource)
_Answer = TypeVar("_Answer")


class ConfigChanges:
    """Decides changes against one image; of broker `node_id` the settings at its start are known here."""

    def __init__(self, image: MetadataImage, config: BrokerConfig, node_id: int) -> None:
        self._image = image
        self._config = config
        self._node_id = node_id
        # Of this broker and of all brokers, as the image has them: they may not be in force yet.
        self._altered: dict[str, Mapping[str, str]] = {
            name: image.config(ConfigResourceType.BROKER, name) for name in (str(node_id), "")
        }

    def alter(
        self, resource_type: int, resource_name: str, operations: list[Operation]
    ) -> list[MetadataRecord]:
        """The records that perform the operations; KafkaError when any of them is not allowed."""
        self._check_resource(resource_type, resource_name)
        self._check_operations(operations)
        current = self._image.config(resource_type, resource_name)
        wanted = dict(current)
        for operation in operations:
            self._apply(resource_type, operation, wanted)
        if resource_type == ConfigResourceType.TOPIC:
            self._check_values(validate_topic_configs, wanted)
        elif resource_type == ConfigResourceType.GROUP:
            self._check_values(validate_group_configs, wanted)
        else:
            self._check_broker(resource_name, operations, current, wanted)
        names = [_canonical(resource_type, operation.name) for operation in operations]
        records: list[MetadataRecord] = [
            ConfigRecord(resource_type, resource_name, name, wanted.get(name))
            for name in dict.fromkeys(names)
            if wanted.get(name) != current.get(name)
        ]
        if elr_is_on(self._image) and wanted.get(MIN_INSYNC_REPLICAS) != current.get(MIN_INSYNC_REPLICAS):
            self._check_min_isr(resource_type, resource_name, wanted)
            records.append(ClearElrRecord(resource_name if resource_type == ConfigResourceType.TOPIC else ""))
        return records

    def replace(
        self, resource_type: int, resource_name: str, values: list[legacy.AlterableConfig]
    ) -> list[MetadataRecord]:
        """The same for the older API, which gives all settings at once and takes away what it leaves out."""
        given = {_canonical(resource_type, value.name) for value in values}
        operations = [Operation(value.name, ConfigOperation.SET, value.value) for value in values]
        operations += [
            Operation(name, ConfigOperation.DELETE, None)
            for name in self._image.config(resource_type, resource_name)
            if name not in given
        ]
        return self.alter(resource_type, resource_name, operations)

    def _check_resource(self, resource_type: int, name: str) -> None:
        if resource_type == ConfigResourceType.TOPIC:
            if not name:
                raise _invalid("Settings for all topics at once do not exist; name a topic.")
            problem = name_problem(name)
            if problem is not None:
                raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
            if name not in self._image.topics_by_name:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {name}.")
        elif resource_type == ConfigResourceType.BROKER:
            if name and name != str(self._node_id) and not self._is_registered(name):
                raise _invalid(f"This is broker {self._node_id}, and it knows of no broker {name}.")
        elif resource_type == ConfigResourceType.GROUP:
            if not name:
                raise _invalid("Settings for all groups at once do not exist; name a group.")
        else:
            raise _invalid(
                "Settings can be altered for topics (2), brokers (4) and groups (32), "
                f"not for type {resource_type}."
            )

    def _is_registered(self, name: str) -> bool:
        return name.isascii() and name.isdigit() and int(name) in self._image.brokers

    def _check_min_isr(self, resource_type: int, resource_name: str, wanted: Mapping[str, str]) -> None:
        if resource_type != ConfigResourceType.BROKER:
            return
        if resource_name:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"{MIN_INSYNC_REPLICAS} is one for all brokers while eligible leader replicas are kept.",
            )
        if MIN_INSYNC_REPLICAS not in wanted:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"{MIN_INSYNC_REPLICAS} of the cluster cannot be taken away while eligible leader replicas "
                "are kept.",
            )

    def _check_operations(self, operations: list[Operation]) -> None:
        for name, times in Counter(operation.name for operation in operations).items():
            if times > 1:
                raise _invalid(f"The setting {name} is in the request {times} times.")
        for operation in operations:
            if operation.kind not in ConfigOperation._value2member_map_:
                raise _invalid(f"{operation.kind} is not an operation on settings (0 to 3 are).")
            if operation.value is None and operation.kind != ConfigOperation.DELETE:
                raise _invalid(f"The setting {operation.name} was given without a value.")

    def _apply(self, resource_type: int, operation: Operation, wanted: dict[str, str]) -> None:
        name = _canonical(resource_type, operation.name)
        value = operation.value or ""
        if operation.kind == ConfigOperation.DELETE:
            wanted.pop(name, None)
        elif operation.kind == ConfigOperation.SET:
            wanted[name] = value
        else:
            if not _is_list(resource_type, name):
                raise KafkaError(
                    ErrorCode.INVALID_CONFIG,
                    f"{name} is not a list, so nothing can be appended to it or subtracted from it.",
                )
            change = append_to_list if operation.kind == ConfigOperation.APPEND else subtract_from_list
            wanted[name] = change(wanted.get(name, self._inherited(resource_type, name)), value)

    def _inherited(self, resource_type: int, name: str) -> str | None:
        """What holds while the resource has no value of its own."""
        if resource_type == ConfigResourceType.TOPIC:
            return next((e.value for e in describe_topic(self._config, {}) if e.name == name), None)
        setting = base_setting(name)
        given = self._config.override(name)
        if given is not None or setting is None or setting.name != name:
            return given
        return setting.format(self._config.get(name))

    def _check_values(
        self, validate: Callable[[Mapping[str, str], BrokerConfig], None], wanted: Mapping[str, str]
    ) -> None:
        try:
            validate(wanted, self._config)
        except ConfigError as error:
            raise KafkaError(ErrorCode.INVALID_CONFIG, error.message) from error

    def _check_broker(
        self,
        resource_name: str,
        operations: Iterable[Operation],
        current: Mapping[str, str],
        wanted: Mapping[str, str],
    ) -> None:
        """Each change by itself, and then what all of them together lead to, where it is known with what the
        broker was started.
        """
        given = set()
        try:
            for operation in operations:
                name = canonical_broker_name(operation.name)
                if operation.kind != ConfigOperation.DELETE:
                    given.add(name)
                elif name not in current:
                    continue
                validate_dynamic_broker(name, wanted.get(name), per_broker=resource_name != "")
            if resource_name not in self._altered:
                return
            altered = {**self._altered, resource_name: wanted}
            outcome = self._with(altered)
            validate_broker_outcome(self._with(self._altered), outcome, given)
        except ConfigError as error:
            raise _invalid(error.message) from error
        # What else the request asks for holds together with this.
        self._altered, self._config = altered, outcome

    def _with(self, altered: Mapping[str, Mapping[str, str]]) -> BrokerConfig:
        return self._config.with_dynamic(altered[str(self._node_id)], altered[""])


def incremental_alter_configs(
    image: MetadataImage,
    config: BrokerConfig,
    node_id: int,
    request: incremental.IncrementalAlterConfigsRequest,
) -> tuple[incremental.IncrementalAlterConfigsResponse, list[MetadataRecord]]:
    changes = ConfigChanges(image, config, node_id)

    def alter(resource: incremental.AlterConfigsResource) -> list[MetadataRecord]:
        operations = [Operation(c.name, c.config_operation, c.value) for c in resource.configs]
        return changes.alter(resource.resource_type, resource.resource_name, operations)

    results, records = _each(request.resources, alter, incremental.AlterConfigsResourceResponse)
    response = incremental.IncrementalAlterConfigsResponse(responses=results)
    return response, [] if request.validate_only else records


def alter_configs(
    image: MetadataImage, config: BrokerConfig, node_id: int, request: legacy.AlterConfigsRequest
) -> tuple[legacy.AlterConfigsResponse, list[MetadataRecord]]:
    changes = ConfigChanges(image, config, node_id)

    def replace(resource: legacy.AlterConfigsResource) -> list[MetadataRecord]:
        return changes.replace(resource.resource_type, resource.resource_name, resource.configs)

    results, records = _each(request.resources, replace, legacy.AlterConfigsResourceResponse)
    return legacy.AlterConfigsResponse(responses=results), [] if request.validate_only else records


def _each(
    resources: list[_Resource],
    change: Callable[[_Resource], list[MetadataRecord]],
    answer: Callable[[int, str | None, int, str], _Answer],
) -> tuple[list[_Answer], list[MetadataRecord]]:
    """Change resource by resource: what becomes of one is no matter for the others."""
    times = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    results: list[_Answer] = []
    records: list[MetadataRecord] = []
    for resource in resources:
        code, message = ErrorCode.NONE, None
        try:
            if times[resource.resource_type, resource.resource_name] > 1:
                raise _invalid("A resource can be in a request only once.")
            records += change(resource)
        except KafkaError as error:
            code, message = error.code, error.message
        results.append(answer(code, message, resource.resource_type, resource.resource_name))
    return results, records


def _canonical(resource_type: int, name: str) -> str:
    if resource_type == ConfigResourceType.TOPIC:
        return canonical_topic_name(name)
    return canonical_broker_name(name) if resource_type == ConfigResourceType.BROKER else name


def _is_list(resource_type: int, name: str) -> bool:
    if resource_type == ConfigResourceType.TOPIC:
        return is_list_setting(name)
    return resource_type == ConfigResourceType.BROKER and is_list_broker_setting(name)


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
