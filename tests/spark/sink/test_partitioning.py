"""Where rows go: where a column says, where the key's hash says, or to the partition that is being filled."""

from collections.abc import Sequence
from itertools import groupby

import pyarrow as pa
import pytest

from mainstem.records.columnar import murmur2_partitions
from mainstem.spark.sink.columns import Rows
from mainstem.spark.sink.errors import SinkError
from mainstem.spark.sink.partitioning import Partitioner

COUNT = 6


def partitioner(
    batch_bytes: int = 1_000, available: Sequence[int] = range(COUNT), ignore_keys: bool = False
) -> Partitioner:
    return Partitioner("t", COUNT, available, batch_bytes=batch_bytes, ignore_keys=ignore_keys)


def some_rows(
    count: int, keys: list[bytes | None] | None = None, partitions: list[int | None] | None = None
) -> Rows:
    return Rows(
        key=None if keys is None else pa.array(keys, pa.binary()),
        value=pa.array([b"v" * 100] * count, pa.binary()),
        headers=None,
        partition=None if partitions is None else pa.array(partitions, pa.int32()),
    )


def test_keys_go_where_java_sends_them() -> None:
    keys: list[bytes | None] = [b"key-%d" % number for number in range(200)]
    placed = partitioner().place(some_rows(200, keys)).tolist()
    assert placed == murmur2_partitions(pa.array(keys), COUNT).tolist()
    # From kafka-clients 4.3: Utils.toPositive(Utils.murmur2(key)) % 6.
    assert partitioner().place(some_rows(5, [b"a", b"b", b"order-17", b"21", b""])).tolist() == [
        4,
        2,
        3,
        0,
        3,
    ]


def test_rows_without_a_key_stay_on_a_partition_until_a_batch_is_full_and_reach_all() -> None:
    placed = partitioner(batch_bytes=1_000).place(some_rows(300)).tolist()
    runs = [(partition, len(list(run))) for partition, run in groupby(placed)]
    assert {partition for partition, _ in runs} == set(range(COUNT))
    assert all(8 <= length <= 11 for _, length in runs[1:-1])


def test_a_partition_is_filled_on_over_several_calls() -> None:
    one = partitioner(batch_bytes=100_000)
    assert len({partition for _ in range(5) for partition in one.place(some_rows(10)).tolist()}) == 1


def test_partitions_without_a_leader_get_no_row_without_a_key() -> None:
    assert set(partitioner(available=[1, 4]).place(some_rows(300)).tolist()) == {1, 4}
    assert set(partitioner(available=[]).place(some_rows(300)).tolist()) == set(range(COUNT))


def test_keys_can_be_ignored() -> None:
    keys: list[bytes | None] = [b"key-%d" % number for number in range(50)]
    placed = partitioner(batch_bytes=1_000_000, ignore_keys=True).place(some_rows(50, keys))
    assert len(set(placed.tolist())) == 1


def test_a_column_is_stronger_than_a_key() -> None:
    rows = some_rows(4, [b"b", b"b", b"b", None], [5, None, 0, 3])
    assert partitioner().place(rows).tolist() == [5, 2, 0, 3]


@pytest.mark.parametrize("wrong", [-1, COUNT])
def test_a_partition_that_the_topic_does_not_have_is_an_error(wrong: int) -> None:
    with pytest.raises(SinkError, match=f"partition has {wrong}, but the topic t has the partitions 0 to 5"):
        partitioner().place(some_rows(2, None, [0, wrong]))
