"""Transactions at their edges, request by request: internal topics, deleted topics and records, segments, and
markers that an administrator writes for offsets.
"""

from typing import Any

from mainstem.protocol.apis.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from mainstem.protocol.apis.k21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from mainstem.records.batch import TRANSACTIONAL_MASK
from tests.support.offset_scenario import new_group, offset_fetch
from tests.support.scenario import append, batch, fetch_request, produce_request
from tests.support.target import Target, when_settled
from tests.support.transaction_scenario import Actor, marker, write_markers
from tests.support.transcript import recorded
from tests.support.wire import WireClient

_OFFSETS, _STATE = "__consumer_offsets", "__transaction_state"
_OFFSETS_PARTITIONS = 50


def _stable_end(client: WireClient, topic: str) -> str:
    """Where each kind of reader is told that the log begins and ends."""
    places: list[str] = []
    for timestamp in (-2, -1):
        for level in (0, 1):
            wanted = [ListOffsetsTopic(topic, [ListOffsetsPartition(0, -1, timestamp)])]
            found = client.call(ListOffsetsRequest(-1, level, wanted), 8).topics[0].partitions[0]
            places.append(str(found.offset))
    return f"begins at {places[0]} and {places[1]}, ends at {places[2]} and {places[3]}"


def test_acknowledgements(target: Target) -> None:
    with recorded(target, "txn_produce_acks") as (transcript, client):
        topic = transcript.stand_in(target.create_topic(), "topic")
        for version in (11, 12):
            for acks in (1, -1, 2):
                actor = Actor(client, transcript, f"id {version} {acks}")
                actor.init()
                actor.add({topic: [0]})
                records = batch(
                    1,
                    attributes=TRANSACTIONAL_MASK,
                    producer_id=actor.producer_id,
                    producer_epoch=actor.epoch,
                    base_sequence=0,
                )
                request = produce_request(topic, records, acks=acks, transactional_id=actor.id)
                transcript.note(f"acks {acks}, version {version}", client.call(request, version))
                transcript.note("the end", actor.end())
        transcript.note("the log", _stable_end(client, topic))


def test_internal_topics(target: Target) -> None:
    with recorded(target, "txn_internal_topics") as (transcript, client):
        topic = transcript.stand_in(target.create_topic(), "topic")
        new_group(client)
        actor = Actor(client, transcript)
        actor.init()
        for name in (_OFFSETS, _STATE):
            for version in (0, 3):
                answer = actor.add({name: [0], topic: [0]}, version)
                transcript.note(f"{name} is added, version {version}", answer)
        transcript.note("the view", actor.view())


def test_a_topic_is_deleted_while_a_transaction_is_open(target: Target) -> None:
    with recorded(target, "txn_deleted_topic") as (transcript, client):
        admin = target.admin()
        for end_version, committed in ((4, True), (5, True), (5, False)):
            kept = transcript.stand_in(target.create_topic(), "kept")
            lost = transcript.stand_in(target.create_topic(), "lost")
            actor = Actor(client, transcript, f"id {end_version} {committed}")
            actor.init()
            actor.add({kept: [0], lost: [0]})
            actor.produce(kept)
            actor.produce(lost)
            admin.delete_topics([lost])[lost].result(30)
            unknown = when_settled(
                lambda: actor.add({lost: [0]}),  # noqa: B023
                lambda answer: (
                    answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code != 0
                ),
            )
            transcript.note("the topic is added once more", unknown)
            transcript.note("the end", actor.end(end_version, committed=committed))
            transcript.note("the view", actor.view())
            transcript.note("the other topic", _stable_end(client, kept))


def test_records_of_an_open_transaction_are_deleted(target: Target) -> None:
    with recorded(target, "txn_delete_records") as (transcript, client):
        topic = transcript.stand_in(target.create_topic(), "topic")
        actor = Actor(client, transcript)
        actor.init()
        append(client, topic, [2])
        for count in (2, 2):
            actor.produce(topic, count, version=12)
        append(client, topic, [2])
        # Within a batch Apache Kafka's last stable offset falls behind the beginning of the log.
        for offset in (1, 2, 4, 6, -1):
            place = DeleteRecordsTopic(topic, [DeleteRecordsPartition(0, offset)])
            answer = client.call(DeleteRecordsRequest([place], 30_000))
            transcript.note(f"records below {offset} are deleted", answer)
            transcript.note("the log then", _stable_end(client, topic))
        transcript.note("what is committed", client.call(fetch_request(topic, 8, isolation_level=1), 12))
        transcript.note("the end", actor.end(5, committed=False))
        transcript.note("the log then", _stable_end(client, topic))
        transcript.note("what is committed", client.call(fetch_request(topic, 8, isolation_level=1), 12))


def test_transactions_over_many_segments(target: Target) -> None:
    """Each segment has room for one batch; every second transaction is aborted."""
    with recorded(target, "txn_segments") as (transcript, client):
        topic = transcript.stand_in(target.create_topic(configs={"segment.bytes": str(1 << 20)}), "topic")
        value = bytes(700_000)
        long = Actor(client, transcript, "long")
        long.init()
        long.produce(topic, 1, version=12)
        for number in range(4):
            actor = Actor(client, transcript, f"id {number}")
            actor.init()
            actor.produce(topic, 1, version=12, value=value)
            actor.end(5, committed=number % 2 == 1)
        transcript.note("one is open since the beginning", _stable_end(client, topic))
        answer = client.call(fetch_request(topic, 0, isolation_level=1, max_bytes=10 << 20), 12)
        transcript.note("what is committed", answer)
        long.end(5, committed=False)
        transcript.note("all are over", _stable_end(client, topic))
        for offset in range(10):
            answer = client.call(fetch_request(topic, offset, isolation_level=1, max_bytes=1), 12)
            transcript.note(f"from {offset}", _known(answer))


def _known(answer: Any) -> Any:
    """The aborted transactions that overlap what was sent: Apache Kafka may name later ones too."""
    (partition,) = answer.responses[0].partitions
    aborted = sorted(partition.aborted_transactions or (), key=lambda it: it.first_offset)
    first = int.from_bytes(bytes(partition.records or b"")[:8], "big")
    partition.aborted_transactions = [it for it in aborted if it.first_offset <= first]
    return answer


def test_markers_for_offsets(target: Target) -> None:
    """An administrator ends what hangs in a group's partition; its offsets count, or are gone."""
    with recorded(target, "txn_markers_offsets") as (transcript, client):
        topic = transcript.stand_in(target.create_topic(), "topic")
        for committed in (True, False):
            name = new_group(client)
            while _hash(name) % _OFFSETS_PARTITIONS == 0:
                name = new_group(client)  # partition 0 is the topic's, and must not get a stand-in
            group = transcript.stand_in(name, "group")
            actor = Actor(client, transcript, f"id {committed}")
            actor.init()
            actor.commit_offsets(group, {topic: {0: 7}})
            index = _hash(group) % _OFFSETS_PARTITIONS
            transcript.stand_in(index, "group's partition", "partition_index")
            for step in (0, 1):
                what = marker(
                    actor.producer_id,
                    actor.epoch + step,
                    {_OFFSETS: [index]},
                    committed=committed,
                    transaction_version=2,
                )
                transcript.note(f"committed {committed}, epoch +{step}", write_markers(client, [what]))
                for stable in (True, False):
                    answer = client.call(offset_fetch(group, {topic: [0]}, stable=stable), 8)
                    transcript.note(f"then, stable {stable}", answer)


def _hash(text: str) -> int:
    """The absolute value of Java's."""
    value = 0
    for character in text:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    return min(value, (1 << 32) - value)
