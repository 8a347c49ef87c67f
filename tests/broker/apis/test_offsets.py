"""ListOffsets, OffsetForLeaderEpoch and DeleteRecords."""

from typing import Any

import pytest

from mainstem.protocol.apis.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
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
from mainstem.protocol.errors import ErrorCode
from tests.broker.conftest import Connect, MakeBroker
from tests.broker.harness import Client, Topic, create_topic, fetch, produce, values_of

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = range(-1, -7, -1)
KEEP = {"retention.ms": "-1", "message.timestamp.before.max.ms": "9223372036854775807"}


async def list_offset(
    client: Client, topic: Topic, timestamp: int, version: int | None = None, **options: Any
) -> Any:
    index = options.pop("partition", 0)
    asked = ListOffsetsPartition(partition_index=index, timestamp=timestamp, **options)
    topics = [ListOffsetsTopic(name=topic.name, partitions=[asked])]
    response = await client.call(ListOffsetsRequest(topics=topics, isolation_level=0), version)
    (answer,) = response.topics[0].partitions
    return answer


async def delete_to(client: Client, topic: Topic, offset: int, partition: int = 0) -> Any:
    asked = DeleteRecordsPartition(partition_index=partition, offset=offset)
    topics = [DeleteRecordsTopic(name=topic.name, partitions=[asked])]
    response = await client.call(DeleteRecordsRequest(topics=topics, timeout_ms=1000))
    return response.topics[0].partitions[0]


async def with_records(client: Client) -> Topic:
    """Offsets 0 to 4 with timestamps 1000, 2000, 5000, 3000, 4000."""
    topic = await create_topic(client, configs=KEEP)
    for timestamp in (1000, 2000, 5000, 3000, 4000):
        assert (await produce(client, topic, b"v", timestamp=timestamp)).error_code == 0
    return topic


@pytest.mark.parametrize("version", range(1, 12))
async def test_earliest_and_latest_in_every_version(client: Client, version: int) -> None:
    topic = await with_records(client)
    await delete_to(client, topic, 2)
    earliest = await list_offset(client, topic, EARLIEST, version)
    latest = await list_offset(client, topic, LATEST, version)
    assert (earliest.error_code, earliest.offset, earliest.timestamp) == (0, 2, -1)
    assert (latest.error_code, latest.offset, latest.timestamp) == (0, 5, -1)
    assert latest.leader_epoch == (0 if version >= 4 else -1)


async def test_a_timestamp_finds_the_first_record_at_or_after_it(client: Client) -> None:
    topic = await with_records(client)
    for timestamp, found in ((0, (1000, 0)), (1001, (2000, 1)), (2001, (5000, 2)), (5000, (5000, 2))):
        answer = await list_offset(client, topic, timestamp)
        assert (answer.timestamp, answer.offset) == found
    nothing = await list_offset(client, topic, 5001)
    assert (nothing.error_code, nothing.offset, nothing.timestamp) == (0, -1, -1)


async def test_special_timestamps_are_answered_as_without_tiered_storage(client: Client) -> None:
    topic = await with_records(client)
    largest = await list_offset(client, topic, MAX_TIMESTAMP)
    assert (largest.timestamp, largest.offset) == (5000, 2)
    assert (await list_offset(client, topic, EARLIEST_LOCAL)).offset == 0
    for special in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        answer = await list_offset(client, topic, special)
        assert (answer.error_code, answer.offset) == (0, -1)


async def test_of_an_empty_partition_there_is_no_largest_timestamp(client: Client) -> None:
    topic = await create_topic(client)
    answer = await list_offset(client, topic, MAX_TIMESTAMP)
    assert (answer.error_code, answer.offset, answer.timestamp) == (0, -1, -1)
    assert (await list_offset(client, topic, EARLIEST)).offset == 0


@pytest.mark.parametrize(("special", "since"), [(-3, 7), (-4, 8), (-5, 9), (-6, 11), (-7, 99)])
async def test_a_special_timestamp_is_refused_in_versions_before_it(
    client: Client, special: int, since: int
) -> None:
    topic = await create_topic(client)
    refused = await list_offset(client, topic, special, min(since - 1, 11))
    assert refused.error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_list_offsets_checks_partition_and_epoch(client: Client) -> None:
    topic = await create_topic(client)
    unknown = await list_offset(client, topic, LATEST, partition=3)
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    ahead = await list_offset(client, topic, LATEST, current_leader_epoch=5)
    assert ahead.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


async def test_the_same_partition_twice_in_list_offsets_is_an_invalid_request(client: Client) -> None:
    topic = await create_topic(client)
    twice = [ListOffsetsPartition(partition_index=0, timestamp=LATEST)] * 2
    topics = [ListOffsetsTopic(name=topic.name, partitions=twice)]
    response = await client.call(ListOffsetsRequest(topics=topics))
    assert {p.error_code for p in response.topics[0].partitions} == {ErrorCode.INVALID_REQUEST}


# ---- DeleteRecords


async def test_delete_records_moves_the_start_and_never_back(client: Client) -> None:
    topic = await with_records(client)
    assert (await delete_to(client, topic, 3)).low_watermark == 3
    assert (await delete_to(client, topic, 1)).low_watermark == 3
    assert (await delete_to(client, topic, -1)).low_watermark == 5
    assert values_of((await fetch(client, topic, offset=5)).records) == []
    assert (await produce(client, topic, b"next")).base_offset == 5


async def test_delete_records_refuses_what_is_not_there(client: Client) -> None:
    topic = await with_records(client)
    assert (await delete_to(client, topic, 6)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert (await delete_to(client, topic, -2)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    unknown = await delete_to(client, topic, 1, partition=9)
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    compacted = await create_topic(client, configs={"cleanup.policy": "compact"})
    assert (await delete_to(client, compacted, 0)).error_code == ErrorCode.POLICY_VIOLATION
    kept = await create_topic(client, configs={"cleanup.policy": ""})
    assert (await delete_to(client, kept, 0)).low_watermark == 0


async def test_the_new_start_survives_a_restart(make_broker: MakeBroker, connect: Connect) -> None:
    broker = await make_broker()
    client = await connect(broker)
    topic = await with_records(client)
    await delete_to(client, topic, 3)
    await broker.restart()
    client = await connect(broker)
    assert (await list_offset(client, topic, EARLIEST)).offset == 3
    assert (await list_offset(client, topic, LATEST)).offset == 5


# ---- OffsetForLeaderEpoch


async def epoch_end(
    client: Client, topic: Topic, epoch: int, version: int | None = None, current: int = -1
) -> Any:
    asked = OffsetForLeaderPartition(partition=0, leader_epoch=epoch, current_leader_epoch=current)
    topics = [OffsetForLeaderTopic(topic=topic.name, partitions=[asked])]
    response = await client.call(OffsetForLeaderEpochRequest(replica_id=-1, topics=topics), version)
    return response.topics[0].partitions[0]


async def test_each_epoch_ends_where_the_next_began(make_broker: MakeBroker, connect: Connect) -> None:
    broker = await make_broker()
    client = await connect(broker)
    topic = await create_topic(client)
    await produce(client, topic, b"a", b"b")
    await broker.restart()
    client = await connect(broker)
    await produce(client, topic, b"c")
    for version in (2, 3, 4):
        first, second = [await epoch_end(client, topic, epoch, version) for epoch in (0, 1)]
        assert (first.error_code, first.leader_epoch, first.end_offset) == (0, 0, 2)
        assert (second.error_code, second.leader_epoch, second.end_offset) == (0, 1, 3)
    future = await epoch_end(client, topic, 7)
    assert (future.error_code, future.leader_epoch, future.end_offset) == (0, -1, -1)


async def test_epochs_are_checked_against_the_current_one(client: Client) -> None:
    topic = await create_topic(client)
    assert (await epoch_end(client, topic, 0, current=4)).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    missing = Topic("missing", bytes(16))
    assert (await epoch_end(client, missing, 0)).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
