"""A stream read, driven as Spark drives it but without a JVM: where batches end, and what they hold."""

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

from mainstem.spark.source.errors import DataLossError, OffsetsError
from tests.spark.source.topics import Topics, read_between, stream_reader, values

EVERYTHING = ReadAllAvailable()


def test_a_query_starts_at_the_end_unless_told_otherwise(topics: Topics) -> None:
    name = topics.create(2)
    topics.send(name, range(5))
    assert stream_reader(topics.servers, subscribe=name).initialOffset() == {name: {"0": 5, "1": 0}}
    earliest = stream_reader(topics.servers, subscribe=name, startingOffsets="earliest")
    assert earliest.initialOffset() == {name: {"0": 0, "1": 0}}
    given = f'{{"{name}":{{"0":3,"1":-1}}}}'
    specific = stream_reader(topics.servers, subscribe=name, startingOffsets=given)
    assert specific.initialOffset() == {name: {"0": 3, "1": 0}}


def test_where_a_query_starts_does_not_move_with_the_end(topics: Topics) -> None:
    name = topics.create(1)
    reader = stream_reader(topics.servers, subscribe=name)
    start = reader.initialOffset()
    topics.send(name, ["a"])
    end = reader.latestOffset(start, EVERYTHING)
    topics.send(name, ["b"])
    # Spark asks once more when it plans the first batch.
    assert values(read_between(reader, reader.initialOffset(), end)) == ["a"]
    reader.stop()


def test_batches_follow_each_other(topics: Topics) -> None:
    name = topics.create(2)
    reader = stream_reader(topics.servers, subscribe=name)
    start = reader.initialOffset()
    assert reader.latestOffset(start, EVERYTHING) == start
    topics.send(name, ["a", "b"], partition=1)
    end = reader.latestOffset(start, EVERYTHING)
    assert end == {name: {"0": 0, "1": 2}}
    assert reader.reportLatestOffset() == end
    assert values(read_between(reader, start, end)) == ["a", "b"]
    assert reader.partitions(start, end) == reader.partitions(start, end)
    assert list(reader.partitions(end, end)) == []
    reader.commit(end)
    reader.stop()


def test_a_batch_reads_at_most_so_many_records(topics: Topics) -> None:
    name = topics.create(2)
    topics.send(name, range(90), partition=0)
    topics.send(name, range(10), partition=1)
    reader = stream_reader(
        topics.servers, subscribe=name, startingOffsets="earliest", maxOffsetsPerTrigger=10
    )
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMaxRows(10)
    start = reader.initialOffset()
    assert reader.latestOffset(start, limit) == {name: {"0": 9, "1": 1}}
    assert reader.latestOffset(start, EVERYTHING) == {name: {"0": 90, "1": 10}}, "as Trigger.Once asks"


def test_a_batch_waits_for_enough_records(topics: Topics) -> None:
    name = topics.create()
    options = {"subscribe": name, "startingOffsets": "earliest", "minOffsetsPerTrigger": 5}
    reader = stream_reader(topics.servers, maxTriggerDelay="10h", **options)
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMinRows(5)
    start = reader.initialOffset()
    topics.send(name, range(2))
    first = reader.latestOffset(start, limit)
    assert first == {name: {"0": 2}}, "the first batch does not wait"
    topics.send(name, range(4))
    assert reader.latestOffset(first, limit) == first
    topics.send(name, range(1))
    assert reader.latestOffset(first, limit) == {name: {"0": 7}}
    hasty = stream_reader(topics.servers, maxTriggerDelay="0s", **options)
    assert hasty.latestOffset(first, limit) == {name: {"0": 7}}
    both = stream_reader(topics.servers, maxOffsetsPerTrigger=6, maxTriggerDelay="10h", **options)
    assert both.getDefaultReadLimit() == ReadMaxRows(6)
    assert both.latestOffset(start, ReadMaxRows(6)) == {name: {"0": 6}}
    assert both.latestOffset({name: {"0": 6}}, ReadMaxRows(6)) == {name: {"0": 6}}


def test_available_now_ends_at_what_was_there_and_gets_there(topics: Topics) -> None:
    name = topics.create()
    topics.send(name, range(10))
    reader = stream_reader(
        topics.servers,
        subscribe=name,
        startingOffsets="earliest",
        maxOffsetsPerTrigger=8,
        minOffsetsPerTrigger=8,
    )
    reader.prepareForTriggerAvailableNow()
    start = reader.initialOffset()
    first = reader.latestOffset(start, ReadMaxRows(8))
    topics.send(name, range(100))
    last = reader.latestOffset(first, ReadMaxRows(8))
    assert (first, last) == ({name: {"0": 8}}, {name: {"0": 10}})
    assert reader.latestOffset(last, ReadMaxRows(8)) == last


def test_added_partitions_are_read_from_their_beginning(topics: Topics) -> None:
    name = topics.create()
    reader = stream_reader(topics.servers, subscribe=name, maxOffsetsPerTrigger=100)
    start = reader.initialOffset()
    topics.grow(name, 3)
    topics.send(name, ["new"], partition=2)
    end = reader.latestOffset(start, ReadMaxRows(100))
    assert end == {name: {"0": 0, "1": 0, "2": 1}}
    assert values(read_between(reader, start, end)) == ["new"]


def test_topics_that_match_later_are_read_from_their_beginning(topics: Topics) -> None:
    prefix = topics.create()
    reader = stream_reader(topics.servers, subscribePattern=f"^{prefix}")
    start = reader.initialOffset()
    topics.create(name=f"{prefix}-later")
    topics.send(f"{prefix}-later", ["x"])
    end = reader.latestOffset(start, EVERYTHING)
    assert end == {prefix: {"0": 0}, f"{prefix}-later": {"0": 1}}
    assert values(read_between(reader, start, end)) == ["x"]


def test_a_deleted_topic_follows_fail_on_data_loss(topics: Topics) -> None:
    kept, gone = topics.create(), topics.create()
    strict = stream_reader(topics.servers, subscribe=f"{kept},{gone}")
    lax = stream_reader(topics.servers, subscribe=f"{kept},{gone}", failOnDataLoss=False)
    start = strict.initialOffset()
    topics.delete(gone)
    topics.send(kept, ["x"])
    end = strict.latestOffset(start, EVERYTHING)
    assert end == {kept: {"0": 1}}
    with pytest.raises(DataLossError, match=f"{gone}-0 have been deleted"):
        strict.partitions(start, end)
    assert lax.latestOffset(start, EVERYTHING) == end
    assert values(read_between(lax, start, end)) == ["x"]
    assert lax.latestOffset(end, EVERYTHING) == end, "and the query goes on"


def test_a_topic_made_again_follows_fail_on_data_loss(topics: Topics) -> None:
    name = topics.create()
    options = {"subscribe": name, "fetchOffset.retryIntervalMs": 10}
    strict = stream_reader(topics.servers, **options)
    lax = stream_reader(topics.servers, failOnDataLoss=False, **options)
    topics.send(name, range(9))
    start = strict.initialOffset()
    topics.delete(name)
    topics.create(name=name)
    topics.send(name, ["x", "y"])
    end = strict.latestOffset(start, EVERYTHING)
    with pytest.raises(DataLossError, match="went back from 9 to 2"):
        strict.partitions(start, end)
    assert list(lax.partitions(start, end)) == []


def test_a_topic_that_never_was_is_a_wrong_name(topics: Topics) -> None:
    name = topics.create()
    with pytest.raises(OffsetsError, match="does not exist"):
        stream_reader(topics.servers, subscribe=f"{name},{name}x").initialOffset()
    with pytest.raises(OffsetsError, match="does not exist"):
        stream_reader(topics.servers, subscribe=f"{name},{name}x").latestOffset({name: {"0": 0}}, EVERYTHING)


def test_a_damaged_checkpoint_is_named(topics: Topics) -> None:
    reader = stream_reader(topics.servers, subscribe=topics.create())
    with pytest.raises(OffsetsError, match=r"the checkpoint holds .*, which are not offsets"):
        reader.latestOffset({"t": 5}, EVERYTHING)
