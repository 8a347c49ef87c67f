"""Reading offset ranges of several partitions to their ends, as fast as their leaders can send.

The next request to a broker is under way while the caller works on its last answer. Partitions move with
their leaders; a range that does not advance for too long is an error. Records are not looked into: where a
batch ends is known from its header, so compacted gaps, control batches and aborted ones are passed over by
themselves.
"""

from __future__ import annotations

import math
import select
import time
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Self

from mainstem.protocol.apis.k01_fetch import PartitionData
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import TopicPartition
from mainstem.wire.attempts import UNKNOWN_TOPIC_GRACE_S, is_unknown_topic, retry_backoff
from mainstem.wire.batch_walk import walk
from mainstem.wire.brokers import STALE_LEADER_CODES, Brokers
from mainstem.wire.errors import (
    ConnectionLost,
    KafkaRefusal,
    NoProgress,
    OffsetOutOfRange,
    TopicGone,
    WireError,
    error_code,
    name_of,
)
from mainstem.wire.fetch_channel import Channel, Position
from mainstem.wire.fetching import Fetched, FetchSettings, fetched
from mainstem.wire.frames import ReceiveBuffer
from mainstem.wire.list_offsets import EARLIEST, LATEST, list_offsets

Item = tuple[TopicPartition, Fetched]

_RETRIED_CODES = STALE_LEADER_CODES | {ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.REQUEST_TIMED_OUT}


class FetchStream:
    """An iterator of (partition, Fetched) until every range [start, end) is read.

    `Fetched.records` holds complete batches only, none that begins at or behind the range's end; the first
    may begin before `fetch_offset` and the last may reach behind the end, so that a decoder is told both.

    Lifetime of the records: answers alternate between two buffers. A view stays valid while the caller
    handles the items of its answer and of the next one, whichever brokers they are from; then its memory is
    written again. Whoever keeps records longer copies them.

    `OffsetOutOfRange` leaves the stream usable: after `seek` or `drop` of its partition the iteration goes
    on.
    """

    def __init__(
        self,
        brokers: Brokers,
        ranges: Mapping[TopicPartition, tuple[int, int]],
        settings: FetchSettings,
        progress_timeout_ms: int,
    ) -> None:
        self._brokers = brokers
        self._settings = settings
        self._timeout_s = progress_timeout_ms / 1000
        self._positions = {
            partition: Position(partition, start, end, settings.partition_bytes)
            for partition, (start, end) in ranges.items()
            if start < end
        }
        self._channels: dict[int, Channel] = {}
        self._ready: deque[Item] = deque()
        self._buffers = (ReceiveBuffer(), ReceiveBuffer())
        self._turn = 0
        # Positions whose leader has to be looked up, not before `_retry_at`.
        self._leaderless = dict(self._positions)
        self._retry_at = 0.0
        self._backoff = retry_backoff(brokers.options)
        self._refused: deque[Position] = deque()
        self._problem: WireError | None = None
        self._progress_at = time.monotonic()

    def __iter__(self) -> Iterator[Item]:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the connections back; one that is being answered is closed."""
        for channel in self._channels.values():
            self._brokers.give_back(channel.node_id, channel.connection)
        self._channels.clear()
        self._positions.clear()

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Go on reading this partition's range at another offset."""
        position = self._positions[partition]
        position.offset = offset
        for channel in self._channels.values():
            channel.positions.pop(partition, None)
        self._settle(position)
        if partition in self._positions:
            self._leaderless[partition] = position
            self._retry_at = 0.0

    def drop(self, partition: TopicPartition) -> None:
        """Read no more of this partition."""
        position = self._positions[partition]
        position.offset = position.end
        self._settle(position)

    def __next__(self) -> Item:
        if self._ready:
            return self._ready.popleft()
        # The caller's own time does not count.
        self._progress_at = time.monotonic()
        while not self._ready:
            if self._refused:
                raise self._out_of_range(self._refused.popleft())
            if not self._positions:
                self.close()
                raise StopIteration
            self._find_leaders()
            self._receive()
            self._check_progress()
        return self._ready.popleft()

    def _find_leaders(self) -> None:
        """Give positions to the channels of their leaders, and send what can be sent."""
        now = time.monotonic()
        if self._leaderless and now >= self._retry_at:
            self._retry_at = now + self._backoff.next_s()
            try:
                self._brokers.refresh({name for name, _ in self._leaderless})
            except (ConnectionLost, KafkaRefusal) as error:
                self._problem = error
                return
            dead: set[int] = set()
            for position in list(self._leaderless.values()):
                self._place(position, dead)
        for channel in list(self._channels.values()):
            self._send(channel)

    def _place(self, position: Position, dead: set[int]) -> None:
        """Give a position to its leader's channel, unless the leader turns out, or is known, to be dead."""
        try:
            leader = self._brokers.leader(position.partition)
            self._check_same_topic(position, leader.topic_id)
        except KafkaRefusal as error:
            if isinstance(error, TopicGone):
                raise
            self._note(position, error)
            return
        if leader.node_id in dead:
            return
        channel = self._channels.get(leader.node_id)
        if channel is None:
            try:
                connection = self._brokers.take(leader.node_id)
            except ConnectionLost as error:
                dead.add(leader.node_id)
                self._note(position, error)
                return
            channel = self._channels[leader.node_id] = Channel(leader.node_id, connection)
        position.leader = leader
        channel.positions[position.partition] = position
        del self._leaderless[position.partition]

    def _check_same_topic(self, position: Position, topic_id: bytes) -> None:
        if position.leader is not None and position.leader.topic_id != topic_id:
            raise TopicGone(
                position.partition,
                ErrorCode.INCONSISTENT_TOPIC_ID,
                "it was deleted and created again while it was being read",
            )

    def _note(self, position: Position, problem: WireError) -> None:
        """Remember why a position cannot be read now; raises when it never can be."""
        self._problem = problem
        if not is_unknown_topic(problem):
            position.unknown_since = None
            return
        now = time.monotonic()
        position.unknown_since = position.unknown_since or now
        if now - position.unknown_since > UNKNOWN_TOPIC_GRACE_S:
            raise TopicGone(
                position.partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "it is not there any more"
            )

    def _send(self, channel: Channel) -> None:
        try:
            channel.send(self._settings, self._brokers.options.request_timeout_ms)
        except ConnectionLost as error:
            self._lose(channel, error)

    def _lose(self, channel: Channel, error: WireError) -> None:
        self._problem = error
        channel.connection.close()
        del self._channels[channel.node_id]
        self._leaderless.update(channel.positions)
        self._retry_at = time.monotonic() + self._backoff.next_s()

    def _receive(self) -> None:
        """Wait for an answer of any broker and take it in; empty-handed when it is time to retry."""
        waiting = [channel for channel in self._channels.values() if channel.asked]
        until = [self._progress_at + self._timeout_s, *(channel.answer_due for channel in waiting)]
        if self._leaderless:
            until.append(self._retry_at)
        channel = readable(waiting, max(0.0, min(until) - time.monotonic()))
        if channel is not None:
            self._take_in(channel)
            return
        now = time.monotonic()
        for silent in [channel for channel in waiting if channel.answer_due < now]:
            self._lose(silent, ConnectionLost(silent.connection.address, "it did not answer Fetch in time"))

    def _take_in(self, channel: Channel) -> None:
        try:
            self._turn ^= 1
            timeout_s = self._brokers.options.request_timeout_ms / 1000
            asked, answers = channel.receive(self._buffers[self._turn], timeout_s)
        except (ConnectionLost, KafkaRefusal) as error:
            self._lose(channel, error)
            return
        items: list[Item] = []
        for position, offset in asked:
            data = answers.get(position.partition)
            # What was sought or dropped since has no use for this answer.
            if data is not None and position.offset == offset and position.partition in channel.positions:
                items += self._advance(channel, position, offset, data)
        if items:
            self._backoff.reset()
            self._problem = None
            self._progress_at = time.monotonic()
        self._send(channel)
        self._ready.extend(items)

    def _advance(self, channel: Channel, position: Position, offset: int, data: PartitionData) -> list[Item]:
        """Take one partition's part of an answer; its item if it has one."""
        code = error_code(data.error_code)
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            del channel.positions[position.partition]
            self._refused.append(position)
            return []
        if code in _RETRIED_CODES:
            self._move(
                channel, position, KafkaRefusal(data.error_code, f"fetch {name_of(position.partition)}")
            )
            return []
        if code != ErrorCode.NONE:
            raise KafkaRefusal(data.error_code, f"fetch {name_of(position.partition)}")
        part = fetched(data, offset, self._settings.isolation)
        walked = walk(part.records, position.end, position.partition)
        if walked.needed_bytes:
            position.grow(walked.needed_bytes, self._brokers.options.answer_bytes_max)
        if walked.next_offset is None:
            return []
        if walked.next_offset <= offset:
            problem = WireError(f"{name_of(position.partition)} has no batch with offset {offset}")
            self._move(channel, position, problem)
            return []
        position.unknown_since = None
        position.advance(walked.next_offset, walked.size)
        self._settle(position)
        channel.to_the_end(position)
        if not walked.size:
            return []
        return [(position.partition, part.up_to(walked.size, walked.next_offset))]

    def _move(self, channel: Channel, position: Position, problem: WireError) -> None:
        """Look its leader up again after a pause."""
        channel.positions.pop(position.partition, None)
        self._leaderless[position.partition] = position
        self._retry_at = time.monotonic() + self._backoff.next_s()
        self._note(position, problem)

    def _settle(self, position: Position) -> None:
        """Forget a range that is read."""
        if position.offset >= position.end:
            self._positions.pop(position.partition, None)
            self._leaderless.pop(position.partition, None)
            for channel in self._channels.values():
                channel.positions.pop(position.partition, None)

    def _out_of_range(self, position: Position) -> OffsetOutOfRange:
        """What the log holds is not in a Fetch answer with this error: it is asked for."""
        bounds = [-1, -1]
        for number, timestamp in enumerate((EARLIEST, LATEST)):
            try:
                found = list_offsets(self._brokers, {position.partition: timestamp})
                bounds[number] = found[position.partition]
            except WireError:
                break
        return OffsetOutOfRange(position.partition, position.offset, *bounds)

    def _check_progress(self) -> None:
        if self._ready or self._refused or not self._positions:
            return
        if time.monotonic() - self._progress_at >= self._timeout_s:
            some = [
                f"{name_of(position.partition)} at offset {position.offset} of {position.end}"
                for position in list(self._positions.values())[:3]
            ]
            more = f" and {len(self._positions) - 3} more" if len(self._positions) > 3 else ""
            why = f"; the last problem was: {self._problem}" if self._problem else ""
            raise NoProgress(f"nothing came for {self._timeout_s:g} s of {', '.join(some)}{more}{why}")


def readable(channels: list[Channel], wait_s: float) -> Channel | None:
    """The first of the channels on which an answer has begun to come, if one does in this time."""
    poll = select.poll()
    by_number = {channel.connection.fileno(): channel for channel in channels}
    for number in by_number:
        poll.register(number, select.POLLIN)
    # Rounded up: a pause that ends a moment early would be spent in a busy loop.
    return next((by_number[number] for number, _ in poll.poll(math.ceil(wait_s * 1000))), None)
