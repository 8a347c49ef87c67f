"""Produce, batch by batch: what is accepted, what is refused and how; sequences of idempotent producers."""

import struct
import time
from collections.abc import Callable
from typing import Any

from mainstem.protocol.apis.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from mainstem.protocol.uuids import ZERO_UUID, random_uuid
from mainstem.records.batch import set_crc
from mainstem.records.compression import Codec
from mainstem.records.record import Record, build_batch
from tests.support.scenario import batch, fetch_request, new_producer_id, produce_request, topic_id
from tests.support.target import Target
from tests.support.transcript import Transcript
from tests.support.wire import ConnectionClosedError, WireClient

_BASE_OFFSET, _LENGTH, _EPOCH, _MAGIC, _CRC, _ATTRIBUTES = 0, 8, 12, 16, 17, 21
_LAST_OFFSET_DELTA, _BASE_TIMESTAMP, _MAX_TIMESTAMP, _RECORD_COUNT = 23, 27, 35, 57
_DAY_MS = 24 * 3600 * 1000


def _patched(layout: str, position: int, value: int, *, count: int = 3, crc: bool = True) -> bytearray:
    """A good batch in which one header field was overwritten (and the CRC made right again)."""
    data = batch(count)
    struct.pack_into(layout, data, position, value)
    if crc:
        set_crc(data)
    return data


def _old_message_set() -> bytes:
    """One message in format 1, with its CRC-32 wrong or right: the format alone is refused."""
    body = struct.pack(">bbqi", 1, 0, int(time.time() * 1000), -1) + struct.pack(">i", 2) + b"hi"
    return struct.pack(">qiI", 0, 4 + len(body), 0) + body


def _odd_batches() -> dict[str, Any]:
    good = batch(3)
    return {
        "a good batch": good,
        "no bytes": b"",
        "half a header": good[:30],
        "cut off by one byte": good[:-1],
        "two batches": good + batch(2),
        "a wrong CRC": _patched(">I", _CRC, 1, crc=False),
        "format 0": _patched(">b", _MAGIC, 0),
        "format 1": _patched(">b", _MAGIC, 1),
        "format 3": _patched(">b", _MAGIC, 3),
        "a message set of format 1": _old_message_set(),
        "length too small": _patched(">i", _LENGTH, 10, crc=False),
        "length negative": _patched(">i", _LENGTH, -1, crc=False),
        "length beyond the end": _patched(">i", _LENGTH, 10_000, crc=False),
        "base offset 7": _patched(">q", _BASE_OFFSET, 7),
        "a leader epoch": _patched(">i", _EPOCH, 99),
        "last offset delta too large": _patched(">i", _LAST_OFFSET_DELTA, 3),
        "last offset delta too small": _patched(">i", _LAST_OFFSET_DELTA, 1),
        "last offset delta negative": _patched(">i", _LAST_OFFSET_DELTA, -1),
        "record count 0": _patched(">i", _RECORD_COUNT, 0),
        "record count -1": _patched(">i", _RECORD_COUNT, -1),
        "a control batch": _patched(">h", _ATTRIBUTES, 0x20),
        "transactional without a producer": _patched(">h", _ATTRIBUTES, 0x10),
        "log append time from the client": _patched(">h", _ATTRIBUTES, 0x08),
    }


def test_odd_batches(target: Target) -> None:
    transcript = Transcript(target, "produce_odd_batches")
    topic = transcript.stand_in(target.create_topic(), "topic")
    with WireClient(target) as client:
        for title, records in _odd_batches().items():
            transcript.note(title, client.call(produce_request(topic, records), 12))
        transcript.note("what is in the log", client.call(fetch_request(topic, 0), 12))
    transcript.check()


def test_timestamps(target: Target) -> None:
    transcript = Transcript(target, "produce_timestamps")
    configs = {
        "message.timestamp.before.max.ms": str(_DAY_MS),
        "message.timestamp.after.max.ms": str(_DAY_MS),
    }
    limited = transcript.stand_in(target.create_topic(configs=configs), "limited")
    free = transcript.stand_in(target.create_topic(), "free")
    stamped = target.create_topic(configs={"message.timestamp.type": "LogAppendTime"})
    transcript.stand_in(stamped, "stamped")
    now_ms = int(time.time() * 1000)
    with WireClient(target) as client:
        for title, timestamp_ms in {
            "now": now_ms,
            "two days ago": now_ms - 2 * _DAY_MS,
            "in two days": now_ms + 2 * _DAY_MS,
            "time 1": 1,
            "time -1": -1,
        }.items():
            for topic in (limited, free, stamped):
                records = build_batch([Record(0, timestamp_ms, None, b"x")])
                name = {limited: "limited", free: "free", stamped: "stamped"}[topic]
                transcript.note(f"{title}, topic {name}", client.call(produce_request(topic, records), 12))
    transcript.check()


def test_sizes_codecs_and_topics(target: Target) -> None:
    transcript = Transcript(target, "produce_sizes_codecs_topics")
    small = transcript.stand_in(target.create_topic(configs={"max.message.bytes": "500"}), "small")
    compacted = transcript.stand_in(target.create_topic(configs={"cleanup.policy": "compact"}), "compacted")
    gzipped = transcript.stand_in(target.create_topic(configs={"compression.type": "gzip"}), "gzipped")
    with WireClient(target) as client:

        def produce(title: str, topic: str, records: Any, version: int = 12, **fields: Any) -> None:
            transcript.note(title, client.call(produce_request(topic, records, **fields), version))

        produce("a batch within max.message.bytes", small, batch(1, value=b"x" * 400))
        produce("a batch over max.message.bytes", small, batch(1, value=b"x" * 500))
        produce("over it, but compressed below", small, batch(1, value=b"x" * 5000, codec=Codec.GZIP))
        produce("keys on a compacted topic", compacted, batch(2))
        keyless = build_batch([Record(0, 1, b"k", b"v"), Record(0, 1, None, b"v"), Record(0, 1, None, b"w")])
        produce("no key on a compacted topic", compacted, keyless)
        for codec in Codec:
            produce(f"{codec.name} to compression.type=gzip", gzipped, batch(2, codec=codec))
        produce("zstd in version 6", compacted, batch(2, codec=Codec.ZSTD), version=6)
        produce("zstd in version 7", compacted, batch(2, codec=Codec.ZSTD), version=7)
        produce("an unknown topic", "no-such-topic", batch(1))
        produce("an unknown partition", compacted, batch(1), partition=1)
        produce("a negative partition", compacted, batch(1), partition=-1)
        produce("an internal topic's name that is not there", "__share_group_state", batch(1))
        for version in (3, 5, 7, 8, 10, 12):
            produce(f"version {version}", compacted, batch(1), version=version)
            produce(
                f"version {version}, refused", compacted, _patched(">I", _CRC, 1, crc=False), version=version
            )
        transcript.note("what is in the log of gzipped", client.call(fetch_request(gzipped, 0), 12))
    transcript.check()


def test_acks(target: Target) -> None:
    transcript = Transcript(target, "produce_acks")
    topic = transcript.stand_in(target.create_topic(), "topic")
    with WireClient(target) as client:
        for acks in (-1, 1, 2, -2, 32767):
            transcript.note(f"acks {acks}", client.call(produce_request(topic, batch(1), acks=acks), 12))
        client.send(produce_request(topic, batch(1), acks=0), 12, expect_response=False)
        transcript.note("acks 0, then acks 1", client.call(produce_request(topic, batch(1), acks=1), 12))
        client.send(produce_request(topic, b"junk", acks=0), 12, expect_response=False)
        transcript.note("acks 0 with an error", "closed" if client.is_closed_by_broker() else "open")
    transcript.check()


def test_a_topic_with_fewer_replicas_than_must_be_in_sync(target: Target) -> None:
    transcript = Transcript(target, "produce_min_insync_replicas")
    topic = transcript.stand_in(target.create_topic(configs={"min.insync.replicas": "2"}), "topic")
    with WireClient(target) as client:
        for acks in (-1, 1):
            transcript.note(f"acks {acks}", client.call(produce_request(topic, batch(1), acks=acks), 12))
        transcript.note("what is in the log", client.call(fetch_request(topic, 0), 12))
    transcript.check()


def test_several_partitions_in_one_request(target: Target) -> None:
    transcript = Transcript(target, "produce_several")
    first = transcript.stand_in(target.create_topic(partitions=2), "first")
    second = transcript.stand_in(target.create_topic(), "second")
    with WireClient(target) as client:
        request = ProduceRequest(
            acks=-1,
            timeout_ms=5000,
            topic_data=[
                TopicProduceData(
                    first,
                    partition_data=[PartitionProduceData(n, batch(n + 1)) for n in (1, 0, 5)],
                ),
                TopicProduceData(
                    second,
                    partition_data=[PartitionProduceData(0, _patched(">I", _CRC, 1, crc=False))],
                ),
                TopicProduceData("no-such-topic", partition_data=[PartitionProduceData(0, batch(1))]),
            ],
        )
        answer = client.call(request, 12)
        answer.responses.sort(
            key=lambda topic: [first, second].index(topic.name) if topic.name in (first, second) else 9
        )
        for topic in answer.responses:
            topic.partition_responses.sort(key=lambda partition: partition.index)
        transcript.note("good and bad ones together", answer)
        answer = client.call(ProduceRequest(acks=-1, timeout_ms=1), 12)
        transcript.note("no topics", answer)
    transcript.check()


def test_topics_by_id(target: Target) -> None:
    transcript = Transcript(target, "produce_topic_ids")
    topic = target.create_topic()
    with WireClient(target) as client:
        known = transcript.stand_in(topic_id(client, topic), "id")
        unknown = transcript.stand_in(random_uuid(), "unknown id")
        for name, uuid in (("known", known), ("unknown", unknown), ("zero", ZERO_UUID)):
            for partition in (0, 3):
                data = [PartitionProduceData(partition, batch(2))]
                request = ProduceRequest(
                    acks=-1,
                    timeout_ms=5000,
                    topic_data=[TopicProduceData(topic_id=uuid, partition_data=data)],
                )
                transcript.note(f"{name} id, partition {partition}", client.call(request, 13))
    transcript.check()


def test_versions_that_are_refused(target: Target, topic: str) -> None:
    outcomes: list[str] = []
    for version in (0, 1, 2, 14):
        with WireClient(target) as client:
            client.send_body(0, version, struct.pack(">hii", 1, 1000, 0))
            try:
                client.receive_frame()
                outcomes.append("answered")
            except ConnectionClosedError:
                outcomes.append("closed")
    assert outcomes == ["closed", "closed", "closed", "closed"]


def _sequences(target: Target, transcript: Transcript, topic: str, client: WireClient) -> None:
    producer = new_producer_id(client)

    def produce(
        title: str, sequence: int, count: int = 2, epoch: int = 0, producer_id: int = producer
    ) -> None:
        records = batch(
            count, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, timestamp_ms=1 << 40
        )
        transcript.note(title, client.call(produce_request(topic, records), 12))

    produce("sequence 0..1", 0)
    produce("sequence 2..3", 2)
    produce("sequence 2..3 again", 2)
    produce("sequence 0..1 again", 0)
    produce("a gap, 6..7", 6)
    produce("overlapping, 3..4", 3)
    for sequence in range(4, 14, 2):
        produce(f"sequence {sequence}..{sequence + 1}", sequence)
    produce("sequence 0..1, too old to be remembered", 0)
    produce("sequence 4..5, the fifth last", 4)
    produce("next sequence under a new epoch", 14, epoch=2)
    produce("sequence 0 under the new epoch", 0, epoch=2)
    produce("the old epoch", 2, epoch=1)
    produce("sequence 0 under the same epoch, other length", 0, count=1, epoch=2)
    produce("an unknown producer that starts at 5", 5, producer_id=producer + 100_000)
    produce("an unknown producer that starts at 0", 0, producer_id=producer + 200_000)
    produce("a producer without an epoch", 0, epoch=-1)
    produce("a producer without a sequence", -1)
    produce("no producer but a sequence", 3, producer_id=-1, epoch=-1)


def test_sequences_of_idempotent_producers(target: Target) -> None:
    transcript = Transcript(target, "produce_sequences")
    topic = transcript.stand_in(target.create_topic(configs={"retention.ms": "-1"}), "topic")
    with WireClient(target) as client:
        _sequences(target, transcript, topic, client)
    transcript.check()


def test_sequences_wrap_around(target: Target) -> None:
    transcript = Transcript(target, "produce_sequence_wrap")
    topic = transcript.stand_in(target.create_topic(), "topic")
    with WireClient(target) as client:
        producer = new_producer_id(client)
        send: Callable[[int, int], Any] = lambda sequence, count: client.call(  # noqa: E731
            produce_request(
                topic, batch(count, producer_id=producer, producer_epoch=0, base_sequence=sequence)
            ),
            12,
        )
        transcript.note("starts near the end", send(2**31 - 3, 2))
        transcript.note("over the end: 2^31-1, 0, 1", send(2**31 - 1, 3))
        transcript.note("goes on at 2", send(2, 1))
        transcript.note("the wrapped batch again", send(2**31 - 1, 3))
    transcript.check()
