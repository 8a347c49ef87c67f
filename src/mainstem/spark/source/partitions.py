"""Topic partitions and their offsets as the JSON of Spark's own connector: `{"topic":{"0":23,"1":-2}}`."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from mainstem.protocol.resources import TopicPartition

Offsets = dict[TopicPartition, int]
OffsetsJson = dict[str, dict[str, int]]

LATEST = -1
EARLIEST = -2

ASSIGN_EXAMPLE = '{"topicA":[0,1],"topicB":[0,1]}'
OFFSETS_EXAMPLE = '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}'
TIMESTAMPS_EXAMPLE = '{"topicA":{"0":1700000000000,"1":1700000000000}}'


def parse_assignment(text: str) -> tuple[TopicPartition, ...]:
    """`{"topic":[0,1]}`; ValueError without words when it is something else."""
    parsed = _object(text)
    found: set[TopicPartition] = set()
    for topic, numbers in parsed.items():
        if not isinstance(numbers, list):
            raise ValueError
        found.update((topic, _whole(number)) for number in numbers)
    return tuple(sorted(found))


def parse_by_partition(text: str) -> Offsets:
    """`{"topic":{"0":23}}`; ValueError without words when it is something else."""
    return from_json(_object(text))


def from_json(parsed: Mapping[str, Any]) -> Offsets:
    """Offsets as Spark keeps them in a checkpoint."""
    found: Offsets = {}
    for topic, numbers in parsed.items():
        if not isinstance(numbers, dict):
            raise ValueError
        for number, offset in numbers.items():
            found[topic, _whole(int(number))] = _whole(offset, least=None)
    return found


def to_json(offsets: Mapping[TopicPartition, int]) -> OffsetsJson:
    """The same offsets always become the same text: Spark compares them."""
    result: OffsetsJson = {}
    for topic, number in sorted(offsets):
        result.setdefault(topic, {})[str(number)] = offsets[topic, number]
    return result


def names(partitions: Iterable[TopicPartition]) -> str:
    """For a sentence: `orders-0, orders-1`, the first dozen."""
    ordered = [f"{topic}-{number}" for topic, number in sorted(partitions)]
    more = f" and {len(ordered) - 12} more" if len(ordered) > 12 else ""
    return (", ".join(ordered[:12]) or "none") + more


def _object(text: str) -> dict[str, Any]:
    parsed = json.loads(text)
    if not isinstance(parsed, dict):
        raise ValueError
    return parsed


def _whole(number: Any, *, least: int | None = 0) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or (least is not None and number < least):
        raise ValueError
    return number
