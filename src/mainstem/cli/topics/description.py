"""Everything `mainstem topics describe` shows of a topic: collected from five admin requests, then rendered.

Collecting and showing are apart so that the terminal, the pipe and JSON print the same facts.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from mainstem.cli.clusters.offsets import find_offsets
from mainstem.cli.logs.directories import Replica, describe_logs
from mainstem.cli.output.rendering import print_table
from mainstem.cli.output.units import duration_text, size_text
from mainstem.config.definition import ConfigSource
from mainstem.protocol.uuids import uuid_to_text
from mainstem.wire import EARLIEST, LATEST, Cluster, TopicMetadata


class PartitionFacts(NamedTuple):
    """One partition: who leads it, who keeps it, and which offsets it holds."""

    partition: int
    leader: int
    replicas: list[int]
    isr: list[int]
    # None while nobody leads it.
    earliest: int | None
    latest: int | None
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


def collect(cluster: Cluster, topics: Sequence[TopicMetadata], *, all_configs: bool) -> list[TopicFacts]:
    """Ask the brokers for the facts."""
    partitions = [(topic.name, number) for topic in topics for number in topic.partitions]
    if not topics:
        return []
    earliest = find_offsets(cluster, partitions, EARLIEST)
    latest = find_offsets(cluster, partitions, LATEST)
    settings = cluster.describe_topics_configs([topic.name for topic in topics])
    _, replicas = describe_logs(cluster, partitions)
    # Without those that are on their way to another directory.
    logs = {(part.topic, part.partition, part.broker): part for part in replicas if not part.is_future}
    found = []
    for topic in topics:
        rows = []
        for number, part in topic.partitions.items():
            at = topic.name, number
            ids = list(part.replicas), list(part.isr)
            facts = PartitionFacts(number, part.leader, *ids, earliest.get(at), latest.get(at))
            log = logs.get((*at, part.leader))
            rows.append(facts if log is None else _with_log(facts, log))
        entries = settings[topic.name]
        values = {entry.name: entry.value or "" for entry in entries}
        own = {entry.name for entry in entries if entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG}
        configs = {name: value for name, value in values.items() if all_configs or name in own}
        policy = Policy(values["cleanup.policy"], int(values["retention.ms"]), int(values["retention.bytes"]))
        topic_id = uuid_to_text(topic.topic_id)
        found.append(TopicFacts(topic.name, topic_id, topic.is_internal, rows, configs, policy))
    return found


def _with_log(facts: PartitionFacts, log: Replica) -> PartitionFacts:
    return facts._replace(
        size=log.size,
        segments=log.segments,
        oldest_segment_ms=log.oldest_segment_ms,
        clean_bytes=log.clean_bytes,
        cleanable_bytes=log.cleanable_bytes,
        uncleanable=log.uncleanable,
    )


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
            "-" if part.earliest is None else part.earliest,
            "-" if part.latest is None else part.latest,
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


def _ids(ids: list[int]) -> str:
    return ",".join(map(str, ids))
