"""The records of the consumer protocol, as Apache Kafka's tool prints them: the same from both brokers."""

import json
import re
from itertools import groupby
from typing import Any

import pytest

from mainstem.broker.coordination.java_hash import java_hash
from mainstem.protocol.apis.k42_delete_groups import DeleteGroupsRequest
from mainstem.protocol.uuids import uuid_to_text
from tests.support.classic_scenario import ClassicMember, protocols
from tests.support.consumer_group_scenario import GroupMember, new_prompt_group, owned
from tests.support.kafka_peer import kafka_tool
from tests.support.scenario import topic_id
from tests.support.target import Target, unique_name, when_settled
from tests.support.transcript import Transcript
from tests.support.wire import WireClient

pytestmark = pytest.mark.peer

# Times, versions of the metadata and a hash whose function is each broker's own business.
_VARYING = ("assignmentTimestamp", "metadataHash", "timestamp", "version")


def dump(target: Target, group: str) -> list[tuple[Any, Any]]:
    """Key and value of every record of the group, in the order of the log."""
    file = target.log_dir / f"__consumer_offsets-{java_hash(group) % 50}" / f"{0:020}.log"
    text = kafka_tool("DumpLogSegments", "--offsets-decoder", "--files", str(file)).check()
    assert "isvalid: false" not in text
    records: list[tuple[Any, Any]] = []
    for key, value in re.findall(r"^\| offset: .*? key: (\{.*?\})(?: payload: (.*))?$", text, re.M):
        decoded = json.loads(key)
        if decoded["data"].get("groupId") == group:
            records.append((decoded, json.loads(value) if value.startswith("{") else value))
    return records


def in_words(records: list[tuple[Any, Any]], names: dict[str, str]) -> str:
    """One line for each. Records of one kind in a row come in the order of a hash table."""
    lines: list[str] = []
    for kind, some in groupby(records, lambda record: record[0]["type"]):
        lines += sorted(f"{kind} {_text(key['data'], names)} = {_text(value, names)}" for key, value in some)
    return "\n".join(lines)


def _text(value: Any, names: dict[str, str]) -> str:
    if not isinstance(value, dict):
        return str(value)
    data = value.get("data", value)
    for name in _VARYING:
        if data.get(name):
            data[name] = f"<{name}>"
    for topics in ("topicPartitions", "assignedPartitions", "partitionsPendingRevocation"):
        for topic in data.get(topics, ()):
            order = sorted(range(len(topic["partitions"])), key=topic["partitions"].__getitem__)
            for field in ("partitions", "assignmentEpochs"):
                if topic.get(field):
                    topic[field] = [topic[field][place] for place in order]
    for protocol in (data.get("classicMemberMetadata") or {}).get("supportedProtocols", ()):
        protocol["metadata"] = "<metadata>"
    text = json.dumps(value, sort_keys=True)
    for found, name in names.items():
        text = text.replace(found, name)
    return text


def test_the_records_of_a_consumer_group(target: Target) -> None:
    transcript = Transcript(target, "consumer_group_records")
    prefix = unique_name("records")
    topic = target.create_topic(f"{prefix}-topic", partitions=3)
    with WireClient(target) as client:
        group = new_prompt_group(client)
        identity = topic_id(client, topic)
        names = {topic: "<topic>", group: "<group>", uuid_to_text(identity): "<topic id>", prefix: "<prefix>"}
        first = GroupMember(client, group, "first", rack_id="rack", server_assignor="uniform")
        first.join(topic)
        transcript.note("a member joins", in_words(dump(target, group), names))
        second = GroupMember(client, group, "second", instance_id="instance")
        second.join(topic)
        first.beat(topic_partitions=owned(identity, 0, 1, 2))
        first.beat(topic_partitions=owned(identity, 0, 1))
        second.beat()
        second.leave(-2)
        third = GroupMember(client, group, "third", instance_id="instance")
        third.join(topic)
        transcript.note("and another, whose place is taken", in_words(dump(target, group), names))
        third.leave()
        first.leave()
        fourth = GroupMember(client, group, "fourth")
        fourth.join(subscribed_topic_regex=f"{prefix}.*")
        when_settled(fourth.beat, lambda answer: answer.assignment is not None)
        fourth.leave()
        assert client.call(DeleteGroupsRequest([group])).results[0].error_code == 0
        transcript.note("a pattern, and the end", in_words(dump(target, group), names))
    transcript.check()


def test_the_records_of_a_classic_member(target: Target) -> None:
    transcript = Transcript(target, "consumer_group_classic_records")
    topic = target.create_topic(partitions=2)
    with WireClient(target) as client:
        group = new_prompt_group(client)
        identity = uuid_to_text(topic_id(client, topic))
        GroupMember(client, group, "member").join(topic)
        offered = {"protocols": protocols(range=topic, roundrobin=topic)}
        with ClassicMember(target, transcript, group, "classic", **offered) as classic:
            classic.get_id()
            classic.join()
            names = {
                topic: "<topic>",
                group: "<group>",
                identity: "<topic id>",
                classic.member_id: "<classic>",
            }
        transcript.note("a classic member joins", in_words(dump(target, group), names))
    transcript.check()
