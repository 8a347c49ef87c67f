"""Writes the markers that end a transaction into its partitions, and tells the coordinator when they are in.

A decision comes here only when it is committed, so that a marker never says what may be undone. Markers are
written until every partition has its own: a partition that is gone needs none, one that fails is tried again.
Those of a large transaction are written in several turns of the event loop.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from mainstem.broker.coordination.internal_topics import CONSUMER_OFFSETS
from mainstem.broker.logs.partition import Partition
from mainstem.broker.turns import Turn
from mainstem.coordinator.transaction.completion import MarkersDue
from mainstem.coordinator.transaction.time_limits import ProducerIdDue
from mainstem.logs import about
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.protocol.resources import TopicPartition

if TYPE_CHECKING:
    from mainstem.broker.coordination.node_coordinators import NodeCoordinators

logger = logging.getLogger(__name__)

_ACKS_ALL: Final = -1
_RETRY_SECONDS_MIN: Final = 0.05
_RETRY_SECONDS_MAX: Final = 2.0
# The partition needs no marker of this transaction: it is gone, or its producer has gone on.
_NOT_NEEDED: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_PRODUCER_EPOCH)


class Marker(NamedTuple):
    """What is written into each partition of a transaction."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    commit: bool
    transaction_version: int


def write_marker(
    coordinators: "NodeCoordinators",
    place: TopicPartition,
    marker: Marker,
    done: Callable[[TopicPartition, ErrorCode], None],
) -> None:
    """Write a marker into a partition of this node; `done` is called when it is committed, or cannot be."""
    topic, index = place
    try:
        partition = coordinators.replicas.by_topic(topic, index)
        if marker.producer_id < 0 or marker.producer_epoch < 0:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "a marker needs a producer id and an epoch")
        partition.check_enough_replicas()
        if topic == CONSUMER_OFFSETS:
            # The offsets in the transaction count from here on.
            coordinators.groups.write_marker(index, *marker)
        else:
            producer_id, producer_epoch, coordinator_epoch, commit, transaction_version = marker
            partition.append_marker(
                producer_id,
                producer_epoch,
                coordinator_epoch,
                commit,
                coordinators.server.clock.now_ms(),
                transaction_version,
            )
        partition.flush_in_time()
    except KafkaError as error:
        done(place, error.code)
        return
    last_offset = partition.log.log_end_offset - 1
    if partition.is_committed(last_offset, _ACKS_ALL):
        done(place, ErrorCode.NONE)
    else:
        partition.add_ack_waiter(last_offset, _ACKS_ALL, _Committing(place, done))


class _Committing:
    """A marker that waits for the high watermark of its partition."""

    __slots__ = ("_done", "_place")

    def __init__(self, place: TopicPartition, done: Callable[[TopicPartition, ErrorCode], None]) -> None:
        self._place = place
        self._done = done

    def acknowledged(self, partition: Partition, error: ErrorCode) -> None:
        self._done(self._place, error)


class _Nobody:
    """The token of an event that nobody waits for."""

    def reply(self, response: object) -> None: ...

    def fail(self, error: ErrorCode) -> None: ...


NOBODY: Final = _Nobody()


class MarkerSender:
    """The token to which coordinators say what they need done: mostly, which markers are due."""

    def __init__(self, coordinators: "NodeCoordinators") -> None:
        self._coordinators = coordinators
        self.turns = coordinators.server.turns
        self._due: list[MarkersDue] = []
        self._timers: set[asyncio.TimerHandle] = set()
        self.closed = False

    def reply(self, due: MarkersDue | ProducerIdDue) -> None:
        """Send them when the coordinator is done with its turn, but before the next request is read: a
        producer that goes on at once finds its former transaction completed, unless that was a large one. The
        shell calls `send` then; what comes outside of a turn, or late because of a slow replica, is sent
        soon.
        """
        if self.closed:
            return
        if isinstance(due, ProducerIdDue):
            self._coordinators.transactions.abort_with_fresh_id(due.transactional_id)
            return
        if not self._due:
            self._coordinators.server.loop.call_soon(self.send)
        self._due.append(due)

    def fail(self, error: ErrorCode) -> None:
        """The decision was not made durable: there is nothing to write."""

    def close(self) -> None:
        """What is not written yet is found in the coordinator's log after the next start."""
        self.closed = True
        self._due.clear()
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()

    def send(self) -> None:
        """Write the markers that are due, at the end of a turn; in between the coordinator is not to be
        disturbed.
        """
        if self._due:
            due, self._due = self._due, []
            self.turns.run([_Delivery(self._coordinators, self, markers) for markers in due])

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        def run() -> None:
            self._timers.discard(timer)
            action()

        if not self.closed:
            timer = self._coordinators.server.loop.call_later(seconds, run)
            self._timers.add(timer)


class _Delivery:
    """The markers of one transaction."""

    def __init__(self, coordinators: "NodeCoordinators", sender: MarkerSender, due: MarkersDue) -> None:
        self._coordinators = coordinators
        self._sender = sender
        self._due = due
        self._marker = Marker(
            due.producer_id, due.producer_epoch, due.coordinator_epoch, due.commit, due.transaction_version
        )
        self._coordinator_index = coordinators.transactions.partition_of(due.transactional_id)
        self._unsent = list(due.partitions)
        self._written: set[TopicPartition] = set()  # and not told to the coordinator yet
        self._failed: set[TopicPartition] = set()
        self._sending = False
        self._retry_seconds = _RETRY_SECONDS_MIN

    def go_on(self, turn: Turn) -> bool:
        """Write markers into partitions that lack them. Between two turns a topic may have been deleted and
        made again, the transaction completed, or the coordinator replaced.
        """
        lacking = self._lacking()
        unsent = self._unsent
        self._sending = True
        while unsent:
            place = unsent.pop()
            if place in lacking:
                self._write(place)
                if turn.is_over:
                    break
        self._sending = False
        self._report()
        return bool(unsent)

    def _lacking(self) -> frozenset[TopicPartition]:
        """The partitions that still need their marker from here."""
        if self._is_coordinated_here():
            machine = self._coordinators.transactions.shell.machine(self._coordinator_index)
            if machine is not None:
                return machine.lacking(self._due)
        return frozenset()

    def _write(self, place: TopicPartition) -> None:
        try:
            write_marker(self._coordinators, place, self._marker, self._done)
        except Exception:
            logger.exception(
                "cannot write a marker into %s-%d", *place, extra=about(topic=place[0], partition=place[1])
            )
            self._done(place, ErrorCode.UNKNOWN_SERVER_ERROR)

    def _done(self, place: TopicPartition, error: ErrorCode) -> None:
        if not error:
            self._written.add(place)
        elif error == ErrorCode.TRANSACTION_COORDINATOR_FENCED:
            logger.warning("%s-%d has heard of a newer coordinator of %s", *place, self._due.transactional_id)
            return
        elif error in _NOT_NEEDED:
            if error == ErrorCode.INVALID_PRODUCER_EPOCH:
                logger.warning("%s-%d: producer %d has gone on", *place, self._due.producer_id)
            self._written.add(place)
        else:
            self._retry(place, error)
        if not self._sending:
            self._report()

    def _report(self) -> None:
        """Tell the coordinator of the partitions that have their marker, when each was tried."""
        due = self._due
        if self._unsent or not self._written or not self._is_coordinated_here():
            return
        written, self._written = self._written, set()
        self._coordinators.transactions.shell.submit(
            self._coordinator_index,
            NOBODY,
            lambda machine, _, now_ms: machine.markers_written(due, written, now_ms),
        )

    def _retry(self, place: TopicPartition, error: ErrorCode) -> None:
        if not self._failed:
            logger.warning(
                "no marker in %s-%d yet, trying again: %s",
                *place,
                error.name,
                extra=about(topic=place[0], partition=place[1], cause=error.name),
            )
            self._sender.later(self._next_retry_seconds(), self._send_failed)
        self._failed.add(place)

    def _send_failed(self) -> None:
        failed, self._failed = self._failed, set()
        if not self._unsent:
            self._sender.turns.later(self)
        self._unsent += failed

    def _next_retry_seconds(self) -> float:
        seconds = self._retry_seconds
        self._retry_seconds = min(2 * seconds, _RETRY_SECONDS_MAX)
        return seconds

    def _is_coordinated_here(self) -> bool:
        """In the epoch of the decision. Whoever coordinates it next finds that in the log, and sees to the
        markers.
        """
        epoch = self._coordinators.transactions.shell.leader_epoch(self._coordinator_index)
        return not self._sender.closed and epoch == self._due.coordinator_epoch
