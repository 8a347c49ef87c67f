"""Everything `mainstem topics describe` shows of a topic: collected from five admin requests, then rendered.

Collecting and showing are apart so that the terminal, the pipe and JSON print the same facts.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from confluent_kafka import TopicCollection, TopicPartition, Uuid
from confluent_kafka.admin import (
    AdminClient,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    OffsetSpec,
    ResourceType,
)

from mainstem.cli.client import REQUEST_TIMEOUT_S
from mainstem.cli.groups.show import duration_text
from mainstem.cli.logs.requests import LogDirRequests, Replica
from mainstem.cli.rendering import print_table
from mainstem.cli.sizes import size_text


class PartitionFacts(NamedTuple):
    """One partition: who leads it, who keeps it, and which offsets it holds."""

    partition: int
    leader: int
    replicas: list[int]
    isr: list[int]
    earliest: int
    latest: int
    # Of the leader's log. Only Mainstem tells the rest; None is what a broker does not tell.
    size: int | None = None
    segments: int | None = None
    oldest_segment_ms: int | None = None
    clean_bytes: int | None = None
    cleanable_bytes: int | None = None
    uncleanable: str | None = None


class Policy(NamedTuple):
    """The settings that decide how long records stay."""

    cleanup: str
    retention_ms: int
    retention_bytes: int


class TopicFacts(NamedTuple):
    """One topic and its partitions; `configs` holds overrides, or every setting when asked for all."""

    name: str
    topic_id: str
    internal: bool
    partitions: list[PartitionFacts]
    configs: dict[str, str]
    # What keeps and removes its records.
    policy: Policy


def collect(admin: AdminClient, bootstrap: str, names: list[str], *, all_configs: bool) -> list[TopicFacts]:
    """Ask the brokers for the facts; raises KafkaException."""
    if not names:
        return []
    described = admin.describe_topics(TopicCollection(names), request_timeout=REQUEST_TIMEOUT_S)
    topics = {name: described[name].result() for name in names}
    partitions = [
        TopicPartition(name, part.id) for name, topic in topics.items() for part in topic.partitions
    ]
    earliest = _offsets(admin, partitions, OffsetSpec.earliest())
    latest = _offsets(admin, partitions, OffsetSpec.latest())
    settings = _settings(admin, names)
    logs = _logs(bootstrap, [(part.topic, part.partition) for part in partitions])
    found = []
    for name, topic in topics.items():
        rows = []
        for part in topic.partitions:
            leader = part.leader.id if part.leader else -1
            facts = PartitionFacts(
                part.id,
                leader,
                [node.id for node in part.replicas],
                [node.id for node in part.isr],
                earliest[name, part.id],
                latest[name, part.id],
            )
            log = logs.get((name, part.id, leader))
            rows.append(facts if log is None else _with_log(facts, log))
        entries = settings[name]
        values = {key: entry.value or "" for key, entry in entries.items()}
        configs = {key: values[key] for key, entry in entries.items() if all_configs or _is_own(entry)}
        policy = Policy(values["cleanup.policy"], int(values["retention.ms"]), int(values["retention.bytes"]))
        topic_id = _id_text(topic.topic_id)
        found.append(TopicFacts(name, topic_id, topic.is_internal, rows, configs, policy))
    return found


def _logs(bootstrap: str, partitions: list[tuple[str, int]]) -> dict[tuple[str, int, int], Replica]:
    """The logs by topic, partition and broker, without those that are on their way to another directory."""
    with LogDirRequests(bootstrap) as requests:
        _, replicas = requests.describe(partitions)
    return {(part.topic, part.partition, part.broker): part for part in replicas if not part.is_future}


def _with_log(facts: PartitionFacts, log: Replica) -> PartitionFacts:
    return facts._replace(
        size=log.size,
        segments=log.segments,
        oldest_segment_ms=log.oldest_segment_ms,
        clean_bytes=log.clean_bytes,
        cleanable_bytes=log.cleanable_bytes,
        uncleanable=log.uncleanable,
    )


def setting_names(admin: AdminClient, topic: str) -> set[str]:
    """The names of all settings that the topic can have; raises KafkaException."""
    return set(_settings(admin, [topic])[topic])


def as_json(topic: TopicFacts) -> dict[str, Any]:
    """The facts as `--json` prints them."""
    return topic._asdict() | {
        "partitions": [part._asdict() for part in topic.partitions],
        "policy": topic.policy._asdict(),
    }


def show(topic: TopicFacts) -> None:
    """Print one topic for a person."""
    copies = max((len(part.replicas) for part in topic.partitions), default=0)
    title = f"{topic.name}  id {topic.topic_id}  partitions {len(topic.partitions)}  replication {copies}"
    rows = [
        (
            part.partition,
            part.leader,
            _ids(part.replicas),
            _ids(part.isr),
            part.earliest,
            part.latest,
            "-" if part.size is None else size_text(part.size),
            "-" if part.segments is None else part.segments,
            part_state(topic.policy, part, int(time.time() * 1000)),
        )
        for part in topic.partitions
    ]
    columns = ("partition", "leader", "replicas", "isr", "earliest", "latest", "size", "segments", "state")
    print_table(columns, rows, title=title)
    print(f"  kept: {policy_text(topic.policy)}")
    for name, value in sorted(topic.configs.items()):
        print(f"  {name}={value}")


def policy_text(policy: Policy) -> str:
    """The rule by which records go, in words."""
    parts = []
    policies = policy.cleanup.split(",") if policy.cleanup else []
    if "compact" in policies:
        parts.append("the latest record of each key")
    if "delete" in policies:
        limits = []
        if policy.retention_ms >= 0:
            limits.append(f"for {duration_text(policy.retention_ms / 1000)}")
        if policy.retention_bytes >= 0:
            limits.append(f"up to {size_text(policy.retention_bytes)} a partition")
        parts.append(" and ".join(limits) or "for ever")
    return "; ".join(parts) or "for ever, whole"


def part_state(policy: Policy, part: PartitionFacts, now_ms: int) -> str:
    """How far retention and compaction are with a partition."""
    parts = []
    policies = policy.cleanup.split(",")
    if part.uncleanable is not None:
        parts.append(f"cannot be compacted: {part.uncleanable}")
    elif part.clean_bytes is not None and part.cleanable_bytes is not None:
        total = part.clean_bytes + part.cleanable_bytes
        share = 100 * part.cleanable_bytes // total if total else 0
        parts.append(f"{share}% to compact")
    if "delete" in policies and policy.retention_ms >= 0 and part.oldest_segment_ms is not None:
        left_ms = part.oldest_segment_ms + policy.retention_ms - now_ms
        when = f"in {duration_text(left_ms / 1000)}" if left_ms > 0 else "now"
        parts.append(f"oldest segment goes {when}")
    if "delete" in policies and policy.retention_bytes >= 0 and part.size is not None:
        excess = part.size - policy.retention_bytes
        if excess > 0:
            parts.append(f"{size_text(excess)} too large")
    return ", ".join(parts) or "-"


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


def _settings(admin: AdminClient, names: list[str]) -> dict[str, dict[str, ConfigEntry]]:
    """Every setting of these topics by its name."""
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    futures = admin.describe_configs(resources, request_timeout=REQUEST_TIMEOUT_S)
    return {resource.name: future.result() for resource, future in futures.items()}


def _is_own(entry: ConfigEntry) -> bool:
    override: Any = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    return bool(entry.source == override)
