"""Offset ranges become few tasks of about the same size; the same offsets always give the same plan."""

from hypothesis import given
from hypothesis import strategies as st

from mainstem.spark.source.planning import WORTHWHILE_RECORDS, OffsetRange, divide, group, merge, plan, rounds


def sizes(ranges: list[OffsetRange]) -> list[tuple[int, int]]:
    return [(part.start, part.end) for part in ranges]


def test_ranges_without_records_have_no_task() -> None:
    assert plan([OffsetRange("t", 0, 5, 5), OffsetRange("t", 1, 9, 3)], parallelism=4) == []


def test_large_ranges_have_a_task_each_as_with_sparks_connector() -> None:
    ranges = [OffsetRange("t", number, 0, WORTHWHILE_RECORDS) for number in range(10)]
    assert plan(ranges, parallelism=2) == [(part,) for part in ranges]


def test_small_ranges_share_the_tasks_that_can_run_at_once() -> None:
    ranges = [OffsetRange("t", number, 0, 10) for number in range(100)]
    tasks = plan(ranges, parallelism=4)
    assert [len(task) for task in tasks] == [25] * 4
    assert len(plan(ranges, parallelism=4, max_tasks=3)) == 3
    assert len(plan(ranges, parallelism=4, min_partitions=50)) == 50


def test_max_records_per_partition_holds_for_every_task() -> None:
    tasks = plan([OffsetRange("t", 0, 0, 100), OffsetRange("t", 1, 0, 7)], max_records=30, parallelism=1)
    assert [(part.partition, part.start, part.end) for (part,) in tasks] == [
        (0, 0, 25), (0, 25, 50), (0, 50, 75), (0, 75, 100), (1, 0, 7),
    ]  # fmt: skip


def test_min_partitions_divides_the_large_ranges_only() -> None:
    ranges = [OffsetRange("t", 0, 0, 1), OffsetRange("t", 1, 0, 1), OffsetRange("t", 2, 0, 60)]
    divided = divide(ranges, 5, None)
    assert sizes(divided) == [(0, 1), (0, 1), (0, 20), (20, 40), (40, 60)]
    assert sizes(divide([OffsetRange("t", 0, 0, 3)], 10, None)) == [(0, 1), (1, 2), (2, 3)]


def test_adjoining_ranges_of_a_partition_are_read_as_one() -> None:
    parts = [OffsetRange("t", 0, 5, 9), OffsetRange("t", 1, 0, 1), OffsetRange("t", 0, 0, 5)]
    assert merge(parts) == (OffsetRange("t", 0, 0, 9), OffsetRange("t", 1, 0, 1))


def test_rounds_hold_each_partition_once() -> None:
    task = (OffsetRange("t", 0, 0, 5), OffsetRange("t", 0, 7, 9), OffsetRange("t", 1, 0, 1))
    assert rounds(task) == [(task[0], task[2]), (task[1],)]


_RANGES = st.lists(
    st.builds(
        lambda topic, partition, start, size: OffsetRange(topic, partition, start, start + size),
        st.sampled_from(["a", "b"]),
        st.integers(0, 20),
        st.integers(0, 1000),
        st.integers(-5, 2_000_000),
    ),
    max_size=30,
    unique_by=lambda part: part.topic_partition,
)


@given(
    _RANGES,
    st.none() | st.integers(1, 60),
    st.none() | st.integers(10_000, 10**6),
    st.integers(1, 16),
    st.randoms(),
)
def test_a_plan_reads_every_offset_once(ranges, min_partitions, max_records, parallelism, random) -> None:  # type: ignore[no-untyped-def]
    limits = {"min_partitions": min_partitions, "max_records": max_records, "parallelism": parallelism}
    tasks = plan(ranges, **limits)
    read = sorted(part for task in tasks for part in task)
    by_partition = {part.topic_partition: (part.start, part.end) for part in ranges if part.size > 0}
    assert {part.topic_partition for part in read} == by_partition.keys()
    for partition, (start, end) in by_partition.items():
        parts = [part for part in read if part.topic_partition == partition]
        assert [part.start for part in parts] == [start, *(part.end for part in parts[:-1])]
        assert parts[-1].end == end
    if max_records is not None:
        assert all(part.size <= max_records for part in read)
    shuffled = list(ranges)
    random.shuffle(shuffled)
    assert plan(shuffled, **limits) == tasks


def test_groups_are_balanced() -> None:
    ranges = [OffsetRange("t", number, 0, size) for number, size in enumerate([100, 1, 1, 50, 49])]
    assert [sum(part.size for part in task) for task in group(ranges, 2)] == [101, 100]
