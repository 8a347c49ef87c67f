"""Transactions in the log, request by request: transactional batches, markers, what readers are shown."""

from typing import Any

from mainstem.protocol.apis.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from mainstem.protocol.apis.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from mainstem.protocol.apis.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from mainstem.records.batch import CONTROL_MASK, HEADER_SIZE, TRANSACTIONAL_MASK, read_header
from tests.support.scenario import append, batch, fetch_request, new_producer_id, produce_request, topic_id
from tests.support.target import Target
from tests.support.transaction_scenario import (
    PRODUCE_ABORTABLE_SINCE,
    Actor,
    as_verified,
    describe_producers,
    marker,
    write_markers,
)
from tests.support.transcript import Transcript, recorded
from tests.support.wire import WireClient

_UNCOMMITTED, _COMMITTED = 0, 1
_LATEST, _EARLIEST, _NEWEST = -1, -2, -3
# Up to this version of Produce a producer names its partitions beforehand, from the next on it need not.
_OLD_PRODUCE, _NEW_PRODUCE = 11, 12


def _note_log(transcript: Transcript, client: WireClient, topic: str, title: str, offset: int = 0) -> None:
    """What each kind of reader sees, and where each is told that the log ends."""
    for name, level in (("everything", _UNCOMMITTED), ("what is committed", _COMMITTED)):
        answer = client.call(fetch_request(topic, offset, isolation_level=level), 12)
        transcript.note(f"{title}: {name} from {offset}", _in_order(answer))
        end = client.call(_list_offsets(topic, _LATEST, level), 8).topics[0].partitions[0]
        transcript.note(f"{title}: the end of {name}", end)


def _in_order(answer: Any) -> Any:
    """Without the aborted transactions that begin after the messages: Apache Kafka, which goes by its sparse
    index, may name them too.
    """
    for topic in answer.responses:
        for partition in topic.partitions:
            last = _last_offset(bytes(partition.records or b""))
            aborted = [it for it in partition.aborted_transactions or () if it.first_offset <= last]
            partition.aborted_transactions = sorted(aborted, key=lambda it: it.first_offset)
    return answer


def _last_offset(data: bytes) -> int:
    position, last = 0, -1
    while position + HEADER_SIZE <= len(data):
        header = read_header(data, position)
        last = header.base_offset + header.last_offset_delta
        position += header.size
    return last


def _list_offsets(topic: str, timestamp: int, level: int, epoch: int = -1) -> ListOffsetsRequest:
    wanted = [ListOffsetsPartition(0, epoch, timestamp)]
    return ListOffsetsRequest(-1, level, [ListOffsetsTopic(topic, wanted)])


def test_transactional_batches(target: Target) -> None:
    with recorded(target, "txn_produce") as (transcript, client):
        for version in range(3, 13):
            topic = transcript.stand_in(target.create_topic(partitions=2), "topic")
            actor = Actor(client, transcript, f"id {version}")
            transcript.note(f"without a producer, version {version}", actor.produce(topic, version=version))
            actor.init()
            transcript.note("a partition that was not added", actor.produce(topic, version=version))
            transcript.note("the view", actor.view())
            transcript.note("added", actor.add({topic: [0]}))
            transcript.note("then", actor.produce(topic, 2, version=version))
            transcript.note("and again", actor.produce(topic, 3, version=version))
            transcript.note("the first again", actor.produce(topic, 2, sequence=0, version=version))
            transcript.note("a gap in the sequence", actor.produce(topic, sequence=9, version=version))
            transcript.note("another partition", actor.produce(topic, 1, 1, version=version))
            transcript.note("an unknown partition", actor.produce(topic, 1, 2, version=version))
            transcript.note("the view", actor.view())
            strangers: dict[str, dict[str, Any]] = {
                "an unknown transactional id": {"transactional_id": "nobody"},
                "an empty transactional id": {"transactional_id": ""},
                "no transactional id": {"transactional_id": None},
                "another producer id": {"producer_id": actor.producer_id + 1_000_000},
                "a later epoch": {"producer_epoch": actor.epoch + 1},
                "not transactional": {"attributes": 0},
                "a marker from a client": {"attributes": TRANSACTIONAL_MASK | CONTROL_MASK},
            }
            for title, fields in strangers.items():
                transcript.note(title, actor.produce(topic, sequence=5, version=version, **fields))
            transcript.note("the end", actor.end())
            transcript.note("after the end", actor.produce(topic, version=version))
            transcript.note("the view", actor.view())
            _note_log(transcript, client, topic, "the log")


def test_strangers_in_a_partition_that_is_not_added(target: Target) -> None:
    """The coordinator is asked before the log looks at the producer."""
    with recorded(target, "txn_produce_strangers") as (transcript, client):
        topic = transcript.stand_in(target.create_topic(), "topic")
        actor = Actor(client, transcript)
        actor.init()
        actor.init()
        strangers: dict[str, dict[str, Any]] = {
            "an unknown transactional id": {"transactional_id": "nobody"},
            "an empty transactional id": {"transactional_id": ""},
            "no transactional id": {"transactional_id": None},
            "another producer id": {"producer_id": actor.producer_id + 1_000_000},
            "an earlier epoch": {"producer_epoch": actor.epoch - 1},
            "a later epoch": {"producer_epoch": actor.epoch + 1},
            "a sequence that is not 0": {"sequence": 5},
        }
        for version in (_OLD_PRODUCE, _NEW_PRODUCE):
            for title, fields in strangers.items():
                transcript.note(
                    f"{title}, version {version}", actor.produce(topic, version=version, **fields)
                )
            transcript.note("the view", actor.view())
        for version in (_OLD_PRODUCE, _NEW_PRODUCE):
            records = batch(1, producer_id=actor.producer_id, producer_epoch=actor.epoch, base_sequence=0)
            request = produce_request(topic, records, transactional_id=actor.id)
            title = f"not transactional but with a transactional id, version {version}"
            transcript.note(title, client.call(request, version))
        _note_log(transcript, client, topic, "the log")


def test_several_partitions_in_one_request(target: Target) -> None:
    with recorded(target, "txn_produce_several") as (transcript, client):
        topic = transcript.stand_in(target.create_topic(partitions=3), "topic")
        identity = transcript.stand_in(topic_id(client, topic), "topic id")
        for version in (_OLD_PRODUCE, _NEW_PRODUCE, 13):
            actor = Actor(client, transcript, f"id {version}")
            actor.init()
            actor.add({topic: [0]})
            parts = [
                PartitionProduceData(
                    number,
                    batch(
                        1,
                        attributes=TRANSACTIONAL_MASK,
                        producer_id=actor.producer_id,
                        producer_epoch=actor.epoch,
                        base_sequence=0,
                    ),
                )
                for number in (0, 1, 2, 5)
            ]
            data = TopicProduceData(name=topic, topic_id=identity, partition_data=parts)
            request = ProduceRequest(actor.id, -1, 10_000, [data])
            answer = _written(transcript, client, request, version)
            for part in answer.responses:
                part.partition_responses.sort(key=lambda it: it.index)
            transcript.note(f"one is added, one is unknown, version {version}", answer)
            transcript.note("the view", actor.view())
            transcript.note("the end", actor.end(5, committed=False))


def _written(transcript: Transcript, client: WireClient, request: ProduceRequest, version: int) -> Any:
    return as_verified(
        transcript, lambda: client.call(request, version), is_abortable=version >= PRODUCE_ABORTABLE_SINCE
    )


def test_what_readers_see(target: Target) -> None:
    """Two transactions and a plain producer take turns; one commits, one aborts."""
    with recorded(target, "txn_fetch") as (transcript, client):
        topic = transcript.stand_in(target.create_topic(), "topic")
        one, two = Actor(client, transcript, "one"), Actor(client, transcript, "two")
        one.init()
        two.init()
        _note_log(transcript, client, topic, "nothing yet")
        append(client, topic, [2])
        one.produce(topic, 3, version=_NEW_PRODUCE)
        _note_log(transcript, client, topic, "one is open")
        two.produce(topic, 2, version=_NEW_PRODUCE)
        append(client, topic, [1])
        two.end(5, committed=False)
        _note_log(transcript, client, topic, "two is aborted")
        _note_log(transcript, client, topic, "inside what is open", 5)
        one.end(5)
        append(client, topic, [1])
        _note_log(transcript, client, topic, "one is committed")
        for offset in (1, 5, 6, 8, 9, 10, 11):
            _note_log(transcript, client, topic, "all is over", offset)
        identity = topic_id(client, topic)
        transcript.stand_in(identity, "topic id")
        for version in (4, 5, 7, 10, 11, 12):
            answer = client.call(fetch_request(topic, 0, isolation_level=_COMMITTED), version)
            transcript.note(f"version {version}", _in_order(answer))
        for version in (13, 15, 18):
            where = FetchPartition(0, fetch_offset=0, partition_max_bytes=1 << 20)
            places = [FetchTopic(topic_id=identity, partitions=[where])]
            answer = client.call(FetchRequest(isolation_level=_COMMITTED, topics=places), version)
            transcript.note(f"version {version}", _in_order(answer))
        answer = client.call(fetch_request(topic, 0, isolation_level=_COMMITTED, max_bytes=1), 12)
        transcript.note("one batch at a time", _in_order(answer))
        answer = client.call(fetch_request(topic, 5, isolation_level=_COMMITTED, max_bytes=1), 12)
        transcript.note("one batch at a time, the aborted one", _in_order(answer))


def test_ends_of_a_log(target: Target) -> None:
    with recorded(target, "txn_list_offsets") as (transcript, client):
        topic = transcript.stand_in(target.create_topic(), "topic")
        actor = Actor(client, transcript)
        actor.init()
        records = batch(2, timestamp_ms=1_000_000_000_000)
        client.call(produce_request(topic, records), _OLD_PRODUCE)
        actor.produce(topic, 2, version=_NEW_PRODUCE)
        for state in ("open", "over"):
            for version in (1, 2, 4, 6, 8, 11):
                for level in (_UNCOMMITTED, _COMMITTED) if version > 1 else (_UNCOMMITTED,):
                    for name, timestamp in (("latest", _LATEST), ("earliest", _EARLIEST)):
                        answer = client.call(_list_offsets(topic, timestamp, level), version)
                        transcript.note(f"{state}: {name}, level {level}, version {version}", answer)
            for level in (_UNCOMMITTED, _COMMITTED):
                for name, timestamp in (("old", 1), ("of a later message", 1_000_000_000_001)):
                    answer = client.call(_list_offsets(topic, timestamp, level), 8)
                    transcript.note(f"{state}: a time {name}, level {level}", answer)
                # Both brokers write times of their own here.
                newest = client.call(_list_offsets(topic, _NEWEST, level), 8).topics[0].partitions[0]
                transcript.note(f"{state}: the newest message, level {level}", str(newest.offset))
                future = client.call(_list_offsets(topic, 1_000_000_000_002, level), 8)
                offset = future.topics[0].partitions[0].offset
                transcript.note(f"{state}: the first message of now, level {level}", str(offset))
                answer = client.call(_list_offsets(topic, _LATEST, level, epoch=7), 8)
                transcript.note(f"{state}: a later leader epoch, level {level}", answer)
            actor.end(5, committed=False)


def test_a_parked_fetch_of_what_is_committed(target: Target) -> None:
    transcript = Transcript(target, "txn_fetch_parked")
    topic = transcript.stand_in(target.create_topic(), "topic")
    with WireClient(target) as waiting, WireClient(target) as client:
        for version in (_OLD_PRODUCE, _NEW_PRODUCE):
            actor = Actor(client, transcript, f"id {version}")
            actor.init()
            actor.add({topic: [0]})
            start = client.call(_list_offsets(topic, _LATEST, _UNCOMMITTED), 8).topics[0].partitions[0].offset
            request = fetch_request(topic, start, isolation_level=_COMMITTED, min_bytes=1, max_wait_ms=20_000)
            waiting.send(request, 12)
            actor.produce(topic, 2, version=version)
            in_time = fetch_request(topic, start, isolation_level=_COMMITTED, min_bytes=1, max_wait_ms=100)
            transcript.note("nothing is committed in time", client.call(in_time, 12))
            actor.end()
            transcript.note("parked until the transaction is over", _in_order(waiting.receive()))
    transcript.check()


def test_markers(target: Target) -> None:
    with recorded(target, "txn_markers") as (transcript, client):
        topic = transcript.stand_in(target.create_topic(partitions=3), "topic")
        first = transcript.stand_in(new_producer_id(client), "first", "producer_id")
        second = transcript.stand_in(new_producer_id(client), "second", "producer_id")

        def step(title: str, *markers: Any) -> None:
            for version in (1, 2):
                transcript.note(f"{title}, version {version}", write_markers(client, markers, version))

        step("none")
        step("without partitions", marker(first, 0, {}))
        step("a topic without partitions", marker(first, 0, {topic: []}))
        step("an unknown topic", marker(first, 0, {"no-such-topic": [0]}))
        step("an unknown partition", marker(first, 0, {topic: [3]}))
        step("a negative partition", marker(first, 0, {topic: [-1]}))
        step("a producer that wrote nothing", marker(first, 3, {topic: [0]}))
        step("known and unknown partitions", marker(first, 3, {topic: [0, 9], "no-such-topic": [0]}))
        step("an earlier epoch", marker(first, 2, {topic: [0]}))
        step("a later epoch", marker(first, 4, {topic: [0]}))
        step("the epoch of a later version", marker(first, 4, {topic: [0]}, transaction_version=2))
        step("a coordinator epoch", marker(first, 5, {topic: [0]}, coordinator_epoch=5))
        step("an earlier coordinator epoch", marker(first, 6, {topic: [0]}, coordinator_epoch=4))
        step("a negative coordinator epoch", marker(second, 0, {topic: [1]}, coordinator_epoch=-1))
        step("two producers", marker(first, 7, {topic: [0, 1]}), marker(second, 1, {topic: [1, 2]}))
        step("no producer", marker(-1, 0, {topic: [2]}))
        step("epoch -1", marker(second, -1, {topic: [2]}))
        step("an unknown transaction version", marker(second, 9, {topic: [2]}, transaction_version=9))
        step("an aborted one", marker(second, 10, {topic: [2]}, committed=False))
        answer = describe_producers(client, {topic: [0, 1, 2]})
        transcript.note("the producers", answer)
        _note_log(transcript, client, topic, "the log")


def test_markers_against_an_open_transaction(target: Target) -> None:
    """What an administrator does to a transaction that hangs."""
    with recorded(target, "txn_markers_open") as (transcript, client):
        for transaction_version in (0, 1, 2):
            for committed in (True, False):
                topic = transcript.stand_in(target.create_topic(), "topic")
                actor = Actor(client, transcript, f"id {transaction_version} {committed}")
                actor.init()
                actor.init()
                actor.produce(topic, 2, version=_NEW_PRODUCE)
                transcript.note("the producers", describe_producers(client, {topic: [0]}))
                for step in (-1, 0, 1):
                    what = marker(
                        actor.producer_id,
                        actor.epoch + step,
                        {topic: [0]},
                        committed=committed,
                        transaction_version=transaction_version,
                    )
                    title = f"version {transaction_version}, committed {committed}, epoch {step:+d}"
                    transcript.note(title, write_markers(client, [what]))
                    _note_log(transcript, client, topic, title)
                transcript.note("the producers", describe_producers(client, {topic: [0]}))
                transcript.note("the producer goes on", actor.produce(topic, 1, version=_NEW_PRODUCE))
                transcript.note("it ends", actor.end(5))
                _note_log(transcript, client, topic, "it ended")


def test_describe_producers(target: Target) -> None:
    with recorded(target, "txn_describe_producers") as (transcript, client):
        topic = transcript.stand_in(target.create_topic(partitions=2), "topic")

        def step(title: str, places: dict[str, list[int]]) -> None:
            transcript.note(title, describe_producers(client, places))

        step("none", {})
        step("a topic without partitions", {topic: []})
        step("an unknown topic", {"no-such-topic": [0]})
        step("an unknown partition", {topic: [0, 2]})
        step("a negative partition", {topic: [-1]})
        step("no producers", {topic: [0, 1]})
        plain = transcript.stand_in(new_producer_id(client), "plain", "producer_id")
        records = batch(3, producer_id=plain, producer_epoch=0, base_sequence=0)
        client.call(produce_request(topic, records), _OLD_PRODUCE)
        actor = Actor(client, transcript)
        actor.init()
        actor.produce(topic, 2, version=_NEW_PRODUCE)
        actor.produce(topic, 2, version=_NEW_PRODUCE)
        step("a plain producer and an open transaction", {topic: [0, 1]})
        actor.end(5)
        step("the transaction is committed", {topic: [0]})
        actor.produce(topic, 1, version=_NEW_PRODUCE)
        step("the next is open", {topic: [0]})
        actor.end(4, committed=False)
        step("the next is aborted with the older protocol", {topic: [0]})
