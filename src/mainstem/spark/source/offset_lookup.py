"""What the driver asks the cluster: which partitions there are, and the offsets that limits stand for."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Set
from typing import TypeVar

from mainstem.nearest import did_you_mean
from mainstem.protocol.resources import TopicPartition
from mainstem.spark.source.client import Client, open_client
from mainstem.spark.source.errors import OffsetsError, ReadError, TopicMissingError
from mainstem.spark.source.limits import AtOffsets, AtTimestamp, AtTimestamps, Earliest, Limit
from mainstem.spark.source.options import ReadOptions, describe
from mainstem.spark.source.partitions import EARLIEST, LATEST, Offsets, names
from mainstem.spark.source.patterns import matches
from mainstem.wire import NoBrokerAnswers, SecurityError, WireError

logger = logging.getLogger(__name__)

T = TypeVar("T")


class OffsetLookup:
    """Keeps its connection between questions; `close` when there are no more."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._client: Client | None = None

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def assigned(self, *, may_be_gone: Set[str] = frozenset()) -> set[TopicPartition]:
        """The partitions that are read. A topic that does not exist is an error, unless it may be gone."""
        return self._attempt(lambda client: self._assigned(client, may_be_gone))

    def at(self, timestamps: Mapping[TopicPartition, int]) -> Offsets:
        return self._attempt(lambda client: client.offsets(timestamps))

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return self.at(dict.fromkeys(partitions, EARLIEST))

    def latest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return self.at(dict.fromkeys(partitions, LATEST))

    def latest_not_before(
        self, partitions: Iterable[TopicPartition], known: Mapping[TopicPartition, int]
    ) -> Offsets:
        """The latest offsets, asked again while they are lower than what was known: a broker may lag."""
        partitions = list(partitions)
        for attempt in range(1, self._options.lookup_attempts + 1):
            found = self.latest(partitions)
            lower = [partition for partition in found if known.get(partition, 0) > found[partition]]
            if not lower or attempt == self._options.lookup_attempts:
                break
            logger.warning("the latest offsets of %s went back: asking again", names(lower))
            time.sleep(self._options.lookup_interval_ms / 1000)
        return found

    def resolve(self, limit: Limit, partitions: set[TopicPartition], *, starting: bool) -> Offsets:
        """The offset of each of the assigned partitions at a limit."""
        return self.settle(self.wanted(limit, partitions, starting=starting))

    def wanted(self, limit: Limit, partitions: set[TopicPartition], *, starting: bool) -> Offsets:
        """The same, where LATEST and EARLIEST stand as such."""
        if isinstance(limit, AtOffsets):
            check_same(limit.offsets.keys(), partitions, "offsets", starting=starting)
            return dict(limit.offsets)
        if isinstance(limit, AtTimestamps):
            check_same(limit.timestamps.keys(), partitions, "timestamps", starting=starting)
            return self._at_timestamps(limit.timestamps, limit.no_match, starting=starting)
        if isinstance(limit, AtTimestamp):
            return self._at_timestamps(
                dict.fromkeys(partitions, limit.timestamp), limit.no_match, starting=starting
            )
        return dict.fromkeys(partitions, EARLIEST if isinstance(limit, Earliest) else LATEST)

    def settle(self, offsets: Mapping[TopicPartition, int]) -> Offsets:
        """Put offsets where LATEST and EARLIEST stand."""
        open_ones = {partition: offset for partition, offset in offsets.items() if offset < 0}
        return {**offsets, **(self.at(open_ones) if open_ones else {})}

    def _at_timestamps(
        self, timestamps: Mapping[TopicPartition, int], no_match: str, *, starting: bool
    ) -> Offsets:
        found = self.at(timestamps)
        for partition, offset in found.items():
            if offset >= 0:
                continue
            if starting and no_match == "error":
                raise OffsetsError(
                    f"{names([partition])} has no record at or after the timestamp {timestamps[partition]}; "
                    "to start at its end then, set startingOffsetsByTimestampStrategy to latest"
                )
            found[partition] = LATEST
        return found

    def _assigned(self, client: Client, may_be_gone: Set[str]) -> set[TopicPartition]:
        subscription = self._options.subscription
        if subscription.pattern:
            found = client.topics(None)
            chosen = {name for name in found if matches(subscription.pattern, name)}
            return {(name, number) for name in chosen for number in found[name]}
        wanted = set(subscription.topics) | {topic for topic, _ in subscription.partitions}
        found = client.topics(sorted(wanted))
        everything = {(name, number) for name, numbers in found.items() for number in numbers}
        self._check_there(client, wanted - found.keys() - may_be_gone)
        absent = {part for part in subscription.partitions if part not in everything}
        if any(topic not in may_be_gone for topic, _ in absent):
            raise TopicMissingError(f"assign names partitions that do not exist: {names(absent)}")
        return everything & set(subscription.partitions) if subscription.partitions else everything

    def _check_there(self, client: Client, missing: set[str]) -> None:
        if not missing:
            return
        first = min(missing)
        hint = did_you_mean(first, client.topics(None))
        raise TopicMissingError(
            f"topic {first} does not exist ({describe(self._options.subscription)}){hint}"
        )

    def _attempt(self, question: Callable[[Client], T]) -> T:
        """Ask, on a new connection when the old one failed, as often as fetchOffset.numRetries allows."""
        for attempt in range(1, self._options.lookup_attempts + 1):
            try:
                if self._client is None:
                    self._client = open_client(self._options)
                return question(self._client)
            except (NoBrokerAnswers, SecurityError) as error:
                # The client has tried for its whole time already, or will never be let in.
                self.close()
                raise ReadError(str(error)) from None
            except WireError as error:
                self.close()
                if attempt == self._options.lookup_attempts:
                    raise ReadError(str(error)) from None
                logger.warning("attempt %d to look up offsets failed: %s", attempt, error)
            except TopicMissingError:
                if attempt == self._options.lookup_attempts:
                    raise
            time.sleep(self._options.lookup_interval_ms / 1000)
        raise AssertionError("there is at least one attempt")


def check_same(
    given: Iterable[TopicPartition], assigned: set[TopicPartition], what: str, *, starting: bool
) -> None:
    """Offsets are given for all partitions that are read, and for no others."""
    given = set(given)
    if given != assigned:
        position = "starting" if starting else "ending"
        raise OffsetsError(
            f"the {position} {what} must name all partitions that are read and no others (use -1 for latest, "
            f"-2 for earliest): missing are {names(assigned - given)}, unknown are {names(given - assigned)}"
        )
