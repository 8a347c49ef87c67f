"""Everything `mainstem topics describe` shows of a topic: collected from four admin requests, then rendered.

Collecting and showing are apart so that the terminal, the pipe and JSON print the same facts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from confluent_kafka import TopicCollection, TopicPartition, Uuid
from confluent_kafka.admin import AdminClient, ConfigResource, ConfigSource, OffsetSpec, ResourceType

from mainstem.cli.client import REQUEST_TIMEOUT_S
from mainstem.cli.render import print_table


class PartitionFacts(NamedTuple):
    """One partition: who leads it, who keeps it, and which offsets it holds."""

    partition: int
    leader: int
    replicas: list[int]
    isr: list[int]
    earliest: int
    latest: int


class TopicFacts(NamedTuple):
    """One topic and its partitions; `configs` holds overrides, or every setting when asked for all."""

    name: str
    topic_id: str
    internal: bool
    partitions: list[PartitionFacts]
    configs: dict[str, str]


def collect(admin: AdminClient, names: list[str], *, all_configs: bool) -> list[TopicFacts]:
    """Ask the broker for the facts; raises KafkaException."""
    if not names:
        return []
    described = admin.describe_topics(TopicCollection(names), request_timeout=REQUEST_TIMEOUT_S)
    topics = {name: described[name].result() for name in names}
    partitions = [
        TopicPartition(name, part.id) for name, topic in topics.items() for part in topic.partitions
    ]
    earliest = _offsets(admin, partitions, OffsetSpec.earliest())
    latest = _offsets(admin, partitions, OffsetSpec.latest())
    configs = _configs(admin, names, all_configs=all_configs)
    found = []
    for name, topic in topics.items():
        rows = [
            PartitionFacts(
                part.id,
                part.leader.id if part.leader else -1,
                [node.id for node in part.replicas],
                [node.id for node in part.isr],
                earliest[name, part.id],
                latest[name, part.id],
            )
            for part in topic.partitions
        ]
        found.append(TopicFacts(name, _id_text(topic.topic_id), topic.is_internal, rows, configs[name]))
    return found


def setting_names(admin: AdminClient, topic: str) -> set[str]:
    """The names of all settings that the topic can have; raises KafkaException."""
    return set(_configs(admin, [topic], all_configs=True)[topic])


def as_json(topic: TopicFacts) -> dict[str, Any]:
    """The facts as `--json` prints them."""
    return topic._asdict() | {"partitions": [part._asdict() for part in topic.partitions]}


def show(topic: TopicFacts) -> None:
    """Print one topic for a person."""
    copies = max((len(part.replicas) for part in topic.partitions), default=0)
    title = f"{topic.name}  id {topic.topic_id}  partitions {len(topic.partitions)}  replication {copies}"
    rows = [
        (part.partition, part.leader, _ids(part.replicas), _ids(part.isr), part.earliest, part.latest)
        for part in topic.partitions
    ]
    print_table(("partition", "leader", "replicas", "isr", "earliest", "latest"), rows, title=title)
    for name, value in sorted(topic.configs.items()):
        print(f"  {name}={value}")


def _id_text(topic_id: Uuid) -> str:
    """Kafka's spelling of an id: base64 with `-` and `_`."""
    return str(topic_id).replace("+", "-").replace("/", "_")


def _ids(ids: list[int]) -> str:
    return ",".join(map(str, ids))


def _offsets(
    admin: AdminClient, partitions: list[TopicPartition], spec: OffsetSpec
) -> dict[tuple[str, int], int]:
    if not partitions:
        return {}
    futures = admin.list_offsets(dict.fromkeys(partitions, spec), request_timeout=REQUEST_TIMEOUT_S)
    return {(part.topic, part.partition): future.result().offset for part, future in futures.items()}


def _configs(admin: AdminClient, names: list[str], *, all_configs: bool) -> dict[str, dict[str, str]]:
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    futures = admin.describe_configs(resources, request_timeout=REQUEST_TIMEOUT_S)
    override = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    return {
        resource.name: {
            entry.name: entry.value
            for entry in future.result().values()
            if all_configs or entry.source == override
        }
        for resource, future in futures.items()
    }
