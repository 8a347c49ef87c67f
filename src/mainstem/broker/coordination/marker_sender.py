"""Has the markers that end a transaction written into its partitions, and tells the coordinator when they are
in.

A decision comes here only when it is committed, so that a marker never says what may be undone. Markers are
written until every partition has its own, by this node where it leads, by the leader elsewhere: a partition
that is gone needs none, one that fails is tried again, at the latest when the metadata changes. Those of a
large transaction are written in several turns of the event loop.
"""

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from mainstem.broker.coordination.markers import Marker, write_marker
from mainstem.broker.turns import Turn
from mainstem.coordinator.transaction.completion import MarkersDue
from mainstem.coordinator.transaction.time_limits import ProducerIdDue
from mainstem.logs import about
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import TopicPartition

if TYPE_CHECKING:
    from mainstem.broker.coordination.node_coordinators import NodeCoordinators
    from mainstem.broker.coordination.remote_markers import RemoteMarkers

logger = logging.getLogger(__name__)

_RETRY_SECONDS_MIN: Final = 0.05
_RETRY_SECONDS_MAX: Final = 2.0
# The partition needs no marker of this transaction: it is gone, or its producer has gone on.
_NOT_NEEDED: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_PRODUCER_EPOCH)


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
        # Those that have failed somewhere and will be tried there again.
        self._timers: dict[_Delivery, asyncio.TimerHandle] = {}
        self._elsewhere: RemoteMarkers | None = None
        self.closed = False

    @property
    def elsewhere(self) -> "RemoteMarkers":
        """The way to partitions of other brokers."""
        if self._elsewhere is None:
            from mainstem.broker.coordination.remote_markers import RemoteMarkers  # only a cluster needs it

            self._elsewhere = RemoteMarkers(self._coordinators.server)
        return self._elsewhere

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
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        if self._elsewhere is not None:
            self._elsewhere.close()

    def metadata_changed(self) -> None:
        """Partitions may have other leaders now, enough replicas, or be gone: nobody waits any longer."""
        if self._elsewhere is not None:
            self._elsewhere.metadata_changed()
        waiting, self._timers = self._timers, {}
        for delivery, timer in waiting.items():
            timer.cancel()
            delivery.send_failed()

    def send(self) -> None:
        """Write the markers that are due, at the end of a turn; in between the coordinator is not to be
        disturbed.
        """
        if self._due:
            due, self._due = self._due, []
            self.turns.run([_Delivery(self._coordinators, self, markers) for markers in due])

    def try_again(self, delivery: "_Delivery", seconds: float) -> None:
        """When the time is over, or the metadata changes."""

        def send() -> None:
            del self._timers[delivery]
            delivery.send_failed()

        if not self.closed:
            self._timers[delivery] = self._coordinators.server.loop.call_later(seconds, send)


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
        self._unsent = sorted(due.partitions)
        self._written: set[TopicPartition] = set()  # and not told to the coordinator yet
        self._failed: set[TopicPartition] = set()
        self._sending = False
        self._will_report = False
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

    def _is_lacking(self, place: TopicPartition) -> bool:
        return place in self._lacking()

    def _write(self, place: TopicPartition) -> None:
        server = self._coordinators.server
        part = server.image.partition(*place)
        if part is None:
            self._done(place, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        elif part.leader == server.node_id:
            self._write_here(place)
        elif part.leader < 0:
            self._retry(place, ErrorCode.LEADER_NOT_AVAILABLE)
        else:
            elsewhere = self._sender.elsewhere
            elsewhere.write(part.leader, place, self._marker, self._is_lacking, self._done_elsewhere)

    def _write_here(self, place: TopicPartition) -> None:
        try:
            write_marker(self._coordinators, place, self._marker, self._done)
        except Exception:
            logger.exception(
                "cannot write a marker into %s-%d", *place, extra=about(topic=place[0], partition=place[1])
            )
            self._done(place, ErrorCode.UNKNOWN_SERVER_ERROR)

    def _done_elsewhere(self, place: TopicPartition, error: ErrorCode) -> None:
        """Whether a partition is gone is for the metadata of this node to say: the other broker's may be
        older.
        """
        if error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            self._retry(place, error)
        else:
            self._done(place, error)

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
        if not self._sending and not self._will_report:
            # One answer of another broker may tell of many partitions.
            self._will_report = True
            self._coordinators.server.loop.call_soon(self._report)

    def _report(self) -> None:
        """Tell the coordinator of the partitions that have their marker, when each was tried."""
        self._will_report = False
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
            self._sender.try_again(self, self._next_retry_seconds())
        self._failed.add(place)

    def send_failed(self) -> None:
        """Try again where it has failed."""
        failed, self._failed = self._failed, set()
        if not self._unsent:
            self._sender.turns.later(self)
        self._unsent += sorted(failed)

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
