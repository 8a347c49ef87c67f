"""The offset ranges of a micro-batch, and what counts as lost between its start and its end."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from mainstem.protocol.resources import TopicPartition
from mainstem.spark.source.errors import DataLossError
from mainstem.spark.source.partitions import names
from mainstem.spark.source.planning import OffsetRange

logger = logging.getLogger(__name__)


def stream_ranges(
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    added_earliest: Mapping[TopicPartition, int],
    *,
    fail_on_data_loss: bool,
) -> list[OffsetRange]:
    """`added_earliest` has the first offsets of the partitions that are in `end` and not yet in `start`."""

    def report(loss: str) -> None:
        if fail_on_data_loss:
            raise DataLossError(loss)
        logger.warning("%s Records may have been lost; failOnDataLoss is false, so the query goes on.", loss)

    added = end.keys() - start.keys()
    vanished = added - added_earliest.keys()
    if vanished:
        report(f"The first offsets of {names(vanished)} cannot be found: they may have been deleted.")
    for partition in sorted(added_earliest):
        if added_earliest[partition] != 0:
            first = added_earliest[partition]
            report(f"The added partition {names([partition])} starts from {first}, not from 0.")
    deleted = start.keys() - end.keys()
    if deleted:
        report(f"The partitions {names(deleted)} have been deleted.")
    ranges = []
    for partition in sorted(end.keys() - vanished):
        first = start[partition] if partition in start else added_earliest[partition]
        if end[partition] < first:
            report(
                f"The offset of {names([partition])} went back from {first} to {end[partition]}: the "
                "starting offset was behind the end of the log, or the topic was deleted and made again."
            )
        ranges.append(OffsetRange(*partition, first, end[partition]))
    return ranges
