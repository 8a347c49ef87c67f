"""Which partition a row goes to: where its column says, where its key's hash says, or where it is convenient.

As Java's default partitioner: murmur2 of the key, and rows without a key stay on one partition until a batch
is full, because a few large batches cost less than many small ones.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mainstem.records.columnar import murmur2_partitions
from mainstem.spark.sink.columns import Rows
from mainstem.spark.sink.errors import SinkError
from mainstem.spark.sink.options import SinkOptions
from mainstem.spark.sink.topics import WritableTopic

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NO_PARTITION = -1


class Partitioner:
    """The partitions of one topic, for one task."""

    def __init__(
        self, topic: str, count: int, available: Sequence[int], *, batch_bytes: int, ignore_keys: bool
    ) -> None:
        self._topic = topic
        self._count = count
        self._batch_bytes = batch_bytes
        self._ignore_keys = ignore_keys
        # Partitions without a leader get no keyless row unless there is no other.
        self._ring = np.array(available or range(count), dtype=np.int32)
        self._first = random.randrange(len(self._ring))
        self._keyless_bytes = 0

    def place(self, rows: Rows) -> NDArray[np.int32]:
        """The partition of each row."""
        if rows.key is None or self._ignore_keys:
            places = np.full(len(rows.value), _NO_PARTITION, dtype=np.int32)
        else:
            places = murmur2_partitions(rows.key, self._count)
        if rows.partition is not None:
            self._take_given(rows, places)
        keyless = np.flatnonzero(places == _NO_PARTITION)
        if len(keyless):
            places[keyless] = self._sticky(len(keyless), rows.value.nbytes // len(rows.value) + 1)
        return places

    def _take_given(self, rows: Rows, places: NDArray[np.int32]) -> None:
        assert rows.partition is not None
        given = rows.partition.is_valid().to_numpy(zero_copy_only=False)
        wanted = rows.partition.fill_null(0).to_numpy()
        wrong = given & ((wanted < 0) | (wanted >= self._count))
        if wrong.any():
            example = int(wanted[int(np.argmax(wrong))])
            raise SinkError(
                f"the column partition has {example}, but the topic {self._topic} has the partitions 0 to "
                f"{self._count - 1}: correct the column, or leave it null to have rows placed by their keys"
            )
        places[given] = wanted[given]

    def _sticky(self, count: int, row_bytes: int) -> NDArray[np.int32]:
        ends = self._keyless_bytes + np.arange(count, dtype=np.int64) * row_bytes
        self._keyless_bytes += count * row_bytes
        return self._ring[(self._first + ends // self._batch_bytes) % len(self._ring)]


class PlacedTopic(NamedTuple):
    """A topic that rows go to, and how large a record batch for it may be."""

    partitioner: Partitioner
    batch_bytes: int


class PlacedTopics:
    """The topics of one task, each looked up when its first row comes."""

    def __init__(self, options: SinkOptions, find_topic: Callable[[str], WritableTopic]) -> None:
        self._find_topic = find_topic
        self._options = options
        self._topics: dict[str, PlacedTopic] = {}

    def __getitem__(self, topic: str) -> PlacedTopic:
        return self._topics.get(topic) or self._learn(topic)

    def _learn(self, topic: str) -> PlacedTopic:
        found = self._find_topic(topic)
        batch_bytes = min(self._options.batch_bytes, found.batch_bytes_max or self._options.batch_bytes)
        partitioner = Partitioner(
            topic,
            found.partitions,
            found.led,
            batch_bytes=batch_bytes,
            ignore_keys=self._options.ignore_keys,
        )
        self._topics[topic] = known = PlacedTopic(partitioner, batch_bytes)
        return known
