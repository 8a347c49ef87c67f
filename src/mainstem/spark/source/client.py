"""The cluster as the source sees it: topics, offsets, and the records of ranges.

Two clients do this: ours, and librdkafka for the SASL mechanisms that ours does not speak.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Protocol, Self

from mainstem.protocol.resources import TopicPartition
from mainstem.spark.librdkafka_options import needs_librdkafka
from mainstem.spark.source.errors import OptionError
from mainstem.spark.source.options import ReadOptions
from mainstem.spark.source.partitions import Offsets
from mainstem.spark.source.planning import Task
from mainstem.wire import InvalidOption, UnsupportedOption

if TYPE_CHECKING:
    from mainstem.records.columnar import Decoded

logger = logging.getLogger(__name__)


class Client(Protocol):
    """A context manager; one thread at a time."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
    def close(self) -> None: ...

    def topics(self, names: Iterable[str] | None) -> dict[str, tuple[int, ...]]:
        """The partitions of these topics, or of all that are not internal. One that is missing is absent."""

    def offsets(self, at: Mapping[TopicPartition, int]) -> Offsets:
        """The offsets at timestamps, or at LATEST or EARLIEST; -1 where no record is that young."""

    def read(self, ranges: Task) -> Iterator[tuple[TopicPartition, Decoded]]:
        """The records of ranges, each of another partition."""


def open_client(options: ReadOptions) -> Client:
    """The client for these options: the fast one wherever it can be."""
    from mainstem.spark.source.fast_client import FastClient

    try:
        if options.client == "librdkafka" or needs_librdkafka(options.kafka):
            from mainstem.spark.source.librdkafka_client import LibrdkafkaClient

            logger.warning("reading through librdkafka, which is several times slower than the own client")
            return LibrdkafkaClient(options)
        return FastClient(options)
    except (UnsupportedOption, InvalidOption) as error:
        text = str(error)  # it begins with the name of an option, as a rule
        raise OptionError(f"kafka.{text}" if text[:1].islower() else text) from None
