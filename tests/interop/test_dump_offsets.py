"""Apache Kafka's tool prints the committed offsets that Mainstem wrote, as it prints Kafka's own."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from mainstem.broker.coordination.java_hash import java_hash
from mainstem.protocol.apis.k42_delete_groups import DeleteGroupsRequest
from mainstem.protocol.uuids import uuid_to_text
from tests.support.kafka_peer import kafka_tool
from tests.support.offset_scenario import new_group, offset_commit, position
from tests.support.scenario import topic_id
from tests.support.target import Target, unique_name
from tests.support.wire import WireClient

pytestmark = pytest.mark.peer


def dump(log_dir: Path, groups: list[str]) -> list[tuple[Any, Any]]:
    """Key and value of every record of these groups, as the tool prints them, in the order of the log."""
    partitions = {java_hash(group) % 50 for group in groups}
    files = [str(log_dir / f"__consumer_offsets-{number}" / f"{0:020}.log") for number in partitions]
    text = kafka_tool("DumpLogSegments", "--offsets-decoder", "--files", ",".join(files)).check()
    assert "isvalid: false" not in text
    records: list[tuple[Any, Any]] = []
    for key, value in re.findall(r"^\| offset: .*? key: (\{.*?\})(?: payload: (.*))?$", text, re.M):
        decoded = json.loads(key)
        if decoded["data"].get("group") in groups:
            records.append((decoded, json.loads(value) if value.startswith("{") else value))
    return records


def test_kafka_prints_offsets_and_tombstones(target: Target) -> None:
    topic = target.create_topic(partitions=2)
    with WireClient(target) as client:
        group, deleted = new_group(client), new_group(client, unique_name("deleted"))
        identity = uuid_to_text(topic_id(client, topic))
        client.call(offset_commit(group, {topic: [position(1, 5, "note \N{SNOWMAN}", 3)]}), 9)
        client.call(offset_commit(group, {topic: [position(0, 6)]}, retention_time_ms=60_000), 4)
        client.call(offset_commit(deleted, {topic: [position(0, 7)]}), 9)
        client.call(DeleteGroupsRequest([deleted]))
    records = dump(target.log_dir, [group, deleted])

    def of(name: str) -> list[tuple[Any, Any]]:
        return [(key, value) for key, value in records if key["data"]["group"] == name]

    (first, first_value), (second, second_value) = of(group)
    assert first == {"type": "1", "data": {"group": group, "topic": topic, "partition": 1}}
    assert first_value["version"] == "4"
    time_ms = first_value["data"].pop("commitTimestamp")
    assert first_value["data"] == {
        "offset": 5,
        "leaderEpoch": 3,
        "metadata": "note \N{SNOWMAN}",
        "topicId": identity,
    }
    assert second["data"]["partition"] == 0
    assert second_value["version"] == "1"
    assert second_value["data"]["offset"] == 6
    assert second_value["data"]["expireTimestamp"] - second_value["data"]["commitTimestamp"] == 60_000
    assert time_ms <= second_value["data"]["commitTimestamp"]
    kinds = [(key["type"], value if isinstance(value, str) else "a value") for key, value in of(deleted)]
    assert kinds == [("1", "a value"), ("1", "<DELETE>"), ("2", "<DELETE>")]
