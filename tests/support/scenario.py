"""The words of a wire scenario: short ways to build the requests that most transcripts need."""

import time
from collections.abc import Sequence
from typing import Any

from mainstem.protocol.apis.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from mainstem.protocol.apis.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from mainstem.protocol.apis.k03_metadata import MetadataRequest, MetadataRequestTopic
from mainstem.protocol.apis.k22_init_producer_id import InitProducerIdRequest
from mainstem.protocol.errors import ErrorCode
from mainstem.records.compression import Codec
from mainstem.records.record import Record, build_batch
from tests.support.wire import WireClient


def topic_id(client: WireClient, topic: str) -> bytes:
    answer = client.call(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]))
    return answer.topics[0].topic_id


def new_producer_id(client: WireClient) -> int:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    deadline = time.monotonic() + 30
    # Apache Kafka fetches its first block of ids when the first producer asks.
    while (answer := client.call(request)).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        assert time.monotonic() < deadline
    assert answer.error_code == 0
    return answer.producer_id


def batch(
    count: int, *, codec: Codec = Codec.NONE, value: bytes = b"value", timestamp_ms: int = 0, **fields: Any
) -> bytearray:
    """A batch of `count` records, by default with the time of now."""
    timestamp_ms = timestamp_ms or int(time.time() * 1000)
    records = [Record(0, timestamp_ms + number, b"key", value) for number in range(count)]
    return build_batch(records, compression=codec, **fields)


def produce_request(
    topic: str, records: Any, *, partition: int = 0, acks: int = -1, **fields: Any
) -> ProduceRequest:
    """A request by topic name, for versions up to 12."""
    return ProduceRequest(
        acks=acks,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(name=topic, partition_data=[PartitionProduceData(partition, records)])],
        **fields,
    )


def append(client: WireClient, topic: str, counts: Sequence[int], partition: int = 0) -> None:
    """Write one batch of each of these sizes."""
    for count in counts:
        answer = client.call(produce_request(topic, batch(count), partition=partition), 12)
        assert answer.responses[0].partition_responses[0].error_code == 0, answer


def fetch_request(
    topic: str, offset: int, *, partition: int = 0, max_bytes: int = 1 << 20, **fields: Any
) -> FetchRequest:
    """A request by topic name, for versions up to 12. `epoch` and `last_epoch` are the partition's."""
    where = FetchPartition(
        partition,
        current_leader_epoch=fields.pop("epoch", -1),
        fetch_offset=offset,
        last_fetched_epoch=fields.pop("last_epoch", -1),
        partition_max_bytes=max_bytes,
    )
    fields.setdefault("max_wait_ms", 0)
    return FetchRequest(topics=[FetchTopic(topic=topic, partitions=[where])], **fields)
