"""What is lost between the ends of a micro-batch fails the query, or is left out with a warning."""

import logging

import pytest

from mainstem.spark.source.errors import DataLossError
from mainstem.spark.source.planning import OffsetRange
from mainstem.spark.source.stream_planning import stream_ranges

A, B = ("t", 0), ("t", 1)


def test_a_batch_reads_from_its_start_to_its_end_and_added_partitions_from_their_beginning() -> None:
    ranges = stream_ranges({A: 5}, {A: 9, B: 3}, {B: 0}, fail_on_data_loss=True)
    assert ranges == [OffsetRange("t", 0, 5, 9), OffsetRange("t", 1, 0, 3)]


@pytest.mark.parametrize(
    ("start", "end", "added", "words", "left"),
    [
        ({A: 5, B: 2}, {A: 9}, {}, "t-1 have been deleted", [(0, 5, 9)]),
        ({A: 5}, {A: 9, B: 8}, {B: 4}, "t-1 starts from 4, not from 0", [(0, 5, 9), (1, 4, 8)]),
        ({A: 5}, {A: 9, B: 8}, {}, "The first offsets of t-1 cannot be found", [(0, 5, 9)]),
        ({A: 5}, {A: 3}, {}, "t-0 went back from 5 to 3", [(0, 5, 3)]),
    ],
)
def test_losses_follow_fail_on_data_loss(  # type: ignore[no-untyped-def]
    start, end, added, words: str, left: list[tuple[int, int, int]], caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(DataLossError, match=words) as lost:
        stream_ranges(start, end, added, fail_on_data_loss=True)
    assert "set the option failOnDataLoss to false" in str(lost.value)
    with caplog.at_level(logging.WARNING):
        ranges = stream_ranges(start, end, added, fail_on_data_loss=False)
    assert [(part.partition, part.start, part.end) for part in ranges] == left
    assert words in caplog.text
