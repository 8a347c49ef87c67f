"""ListOffsets, OffsetForLeaderEpoch and DeleteRecords, with the special and the impossible values."""

import time

from mainstem.protocol.apis.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from mainstem.protocol.apis.k21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from mainstem.protocol.apis.k23_offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from mainstem.records.compression import Codec
from mainstem.records.record import Record, build_batch
from tests.support.scenario import append, fetch_request, produce_request
from tests.support.target import Target
from tests.support.transcript import Transcript
from tests.support.wire import WireClient


def _list_offsets(topic: str, timestamp: int, partition: int = 0, epoch: int = -1) -> ListOffsetsRequest:
    where = ListOffsetsPartition(partition, epoch, timestamp)
    return ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(topic, [where])])


def test_list_offsets(target: Target) -> None:
    transcript = Transcript(target, "list_offsets")
    topic = transcript.stand_in(target.create_topic(partitions=2), "topic")
    base = int(time.time() * 1000) - 60_000
    with WireClient(target) as client:
        # Times go up, then back: the maximum stands in the middle of a compressed batch.
        for codec, times in ((Codec.NONE, (0, 10, 20)), (Codec.GZIP, (30, 90, 40)), (Codec.NONE, (50, 60))):
            records = build_batch([Record(0, base + delta, b"k", b"v") for delta in times], compression=codec)
            client.call(produce_request(topic, records), 12)
        for delta in (0, 10, 20, 30, 40, 50, 90):
            transcript.stand_in(base + delta, f"base + {delta}")
        for name, special in {
            "latest": -1,
            "earliest": -2,
            "maximum timestamp": -3,
            "earliest local": -4,
            "latest tiered": -5,
            "earliest pending upload": -6,
            "no such special value": -7,
        }.items():
            transcript.note(name, client.call(_list_offsets(topic, special), 11))
            transcript.note(f"{name}, empty", client.call(_list_offsets(topic, special, partition=1), 11))
        for delta in (-5, 0, 5, 10, 25, 30, 35, 60, 90, 91):
            transcript.note(f"time base + {delta}", client.call(_list_offsets(topic, base + delta), 11))
        transcript.note("time 0", client.call(_list_offsets(topic, 0), 11))
        transcript.note("unknown partition", client.call(_list_offsets(topic, -1, partition=2), 11))
        transcript.note("unknown topic", client.call(_list_offsets("no-such-topic", -1), 11))
        for epoch in (0, 1):
            transcript.note(f"leader epoch {epoch}", client.call(_list_offsets(topic, -1, epoch=epoch), 11))
        for version in range(1, 12):
            transcript.note(f"latest, version {version}", client.call(_list_offsets(topic, -1), version))
        for version, special in ((6, -3), (7, -4), (8, -5), (10, -6)):
            answer = client.call(_list_offsets(topic, special), version)
            transcript.note(f"special value {special} in version {version}, too old for it", answer)
        twice = _list_offsets(topic, -1)
        twice.topics[0].partitions *= 2
        transcript.note("a partition twice", client.call(twice, 11))
    transcript.check()


def test_offset_for_leader_epoch(target: Target) -> None:
    transcript = Transcript(target, "offset_for_leader_epoch")
    topic = transcript.stand_in(target.create_topic(partitions=2), "topic")
    with WireClient(target) as client:
        append(client, topic, [3, 2])
        for title, partition, current, epoch in (
            ("epoch 0", 0, -1, 0),
            ("epoch 0, current 0", 0, 0, 0),
            ("current epoch too new", 0, 3, 0),
            ("epoch that is not there yet", 0, -1, 5),
            ("epoch -1", 0, -1, -1),
            ("empty partition", 1, -1, 0),
            ("unknown partition", 7, -1, 0),
        ):
            where = OffsetForLeaderPartition(partition, current, epoch)
            request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic, [where])])
            for version in (2, 4):
                transcript.note(f"{title}, version {version}", client.call(request, version))
        request.topics[0].topic = "no-such-topic"
        transcript.note("unknown topic", client.call(request))
    transcript.check()


def test_delete_records(target: Target) -> None:
    transcript = Transcript(target, "delete_records")
    topic = transcript.stand_in(target.create_topic(), "topic")
    compacted = transcript.stand_in(target.create_topic(configs={"cleanup.policy": "compact"}), "compacted")
    with WireClient(target) as client:
        append(client, topic, [4, 4])
        append(client, compacted, [4])

        def delete(title: str, offset: int, name: str = topic, partition: int = 0) -> None:
            where = DeleteRecordsTopic(name, [DeleteRecordsPartition(partition, offset)])
            transcript.note(title, client.call(DeleteRecordsRequest([where], timeout_ms=10_000)))

        delete("before offset 2, inside a batch", 2)
        delete("before offset 1, gone already", 1)
        delete("before offset 9, beyond the end", 9)
        delete("before offset -2", -2)
        transcript.note("fetch a deleted offset", client.call(fetch_request(topic, 1), 12))
        transcript.note("fetch the first offset left", client.call(fetch_request(topic, 2), 12))
        transcript.note("earliest", client.call(_list_offsets(topic, -2), 11))
        found = client.call(_list_offsets(topic, 0), 2)
        transcript.stand_in(found.topics[0].partitions[0].timestamp, "time")
        transcript.note("time 0", found)
        delete("everything", -1)
        transcript.note("fetch after everything went", client.call(fetch_request(topic, 8), 12))
        append(client, topic, [1])
        transcript.note("offsets go on", client.call(fetch_request(topic, 8), 12))
        delete("unknown partition", 0, partition=4)
        delete("unknown topic", 0, name="no-such-topic")
        delete("a compacted topic", 2, name=compacted)
    transcript.check()
