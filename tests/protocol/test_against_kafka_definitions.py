"""Every message, metadata record and control record is declared as Kafka's own definitions have it."""

from collections.abc import Iterator
from typing import Any

import pytest

from mainstem.cluster.raft import control_records
from mainstem.cluster.records import RECORD_CLASSES, versions_of
from mainstem.protocol.layout import layout_of
from mainstem.protocol.registry import API_KEYS, request_class, response_class
from mainstem.protocol.schema import parse_versions
from mainstem.security.principal_data import DefaultPrincipalData
from tests.protocol.kafka_definitions import definitions, lines_of_definition, lines_of_layout

pytestmark = pytest.mark.peer

# Both the newest one for clients, whose fields are for two-phase commit, and not stable.
UNSTABLE = {"InitProducerIdRequest": 6, "InitProducerIdResponse": 6}
DATA = [
    DefaultPrincipalData,
    control_records.LeaderChangeMessage,
    control_records.SnapshotHeaderRecord,
    control_records.SnapshotFooterRecord,
    control_records.KRaftVersionRecord,
    control_records.VotersRecord,
]


def messages() -> Iterator[tuple[type[Any], range]]:
    for info in API_KEYS.values():
        for cls in (request_class(info.key), response_class(info.key)):
            yield cls, range(info.min_version, info.max_version + 1)
    for cls in DATA:
        first, last = versions_of(cls)
        yield cls, range(first, last + 1)


def check(cls: type[Any], versions: range, definition: dict[str, Any]) -> None:
    first, last = parse_versions(definition["validVersions"])
    last -= UNSTABLE.get(cls.__name__) == last
    assert versions == range(first, last + 1)
    for version in versions:
        ours = lines_of_layout(layout_of(cls, version))
        assert ours == lines_of_definition(definition, version), f"version {version}"


@pytest.mark.parametrize(
    ("cls", "versions"), list(messages()), ids=lambda value: getattr(value, "__name__", "")
)
def test_messages_are_those_of_kafka(cls: type[Any], versions: range) -> None:
    definition = definitions("kafka-clients", "common/message/")[cls.__name__]
    check(cls, versions, definition)
    schema = cls.SCHEMA
    assert getattr(schema, "api_key", None) == definition.get("apiKey")


@pytest.mark.parametrize("cls", RECORD_CLASSES, ids=lambda cls: cls.__name__)
def test_metadata_records_are_those_of_kafka(cls: type[Any]) -> None:
    definition = definitions("kafka-metadata", "common/metadata/")[cls.__name__]
    first, last = versions_of(cls)
    check(cls, range(first, last + 1), definition)
    assert cls.SCHEMA.record_api_key == definition["apiKey"]


def test_every_metadata_record_is_known() -> None:
    names = set(definitions("kafka-metadata", "common/metadata/"))
    assert {cls.__name__ for cls in RECORD_CLASSES} == names
