"""Incremental fetch sessions (KIP-227): what a client fetches is remembered, so that requests and
responses carry only what changed, and cost only what changed.

Rules:
- A session belongs to one client connection's lifetime only by its id and epoch, never by the socket.
- A partition is left out of an incremental response unless it has data, an error, or a moved watermark.
- A partition that returned data goes to the end of the order, so that none starves under a response limit.
- A partition is ready while there may be something to tell of it: it was asked for by the request, it moved,
  or its last result was records or an error. Any other one was read to its end and hears of the next move,
  so that it need not be looked at.
"""

from operator import attrgetter
from typing import Final, Protocol

from mainstem.broker.logs.partition import Partition
from mainstem.protocol.apis.k01_fetch import FetchRequest, PartitionData
from mainstem.protocol.errors import ErrorCode, KafkaError

FINAL_EPOCH: Final = -1
INITIAL_EPOCH: Final = 0
READ_COMMITTED: Final = 1
_EPOCH_MAX: Final = 2**31 - 1

Key = tuple[str, bytes, int]  # topic name (empty when asked by id), topic id, partition


class FetchedPartition:
    """What is asked of one partition, and what its client was last told about it."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "follower_start_offset",
        "found",
        "has_moved",
        "high_watermark_sent",
        "last_fetched_epoch",
        "log_start_offset_sent",
        "max_bytes",
        "name_found",
        "partition",
        "place",
        "topic",
        "topic_id",
    )

    def __init__(self, topic: str, topic_id: bytes, partition: int, place: int) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partition = partition
        self.place = place  # in the order of the session
        self.fetch_offset = 0
        self.follower_start_offset = -1  # where the log of the follower that asks starts
        self.max_bytes = 0
        self.current_leader_epoch = -1
        self.last_fetched_epoch = -1
        self.high_watermark_sent = -1
        self.log_start_offset_sent = -1
        self.name_found = ""  # the name that the topic id had when it was last read
        self.found: Partition | None = None  # when it was last read
        self.has_moved = True  # there may be more to tell of it than records

    def was_told(self, data: PartitionData) -> bool:
        """Whether the client knows of these offsets already."""
        return (
            data.high_watermark == self.high_watermark_sent
            and data.log_start_offset == self.log_start_offset_sent
        )


Result = tuple[FetchedPartition, PartitionData, int]  # the last is the size of the records
_place = attrgetter("place")


# Which replica (-1 is a consumer), its isolation level, its principal, and the generation of the rules that
# say what the principal may read.
Reader = tuple[int, int, str, int]


class ParkedFetch(Protocol):
    """A fetch that waits for what the session asks for."""

    def touched(self, asked: FetchedPartition) -> None: ...

    def nudged(self) -> None:
        """There is something to tell, which may wait a little for more."""


class FetchSession:
    """The partitions that a client asks for. Outside of a session they are those of a single request."""

    __slots__ = (
        "_places",
        "epoch",
        "is_follower",
        "is_kept",
        "last_used_ms",
        "parked",
        "partitions",
        "reader",
        "ready",
        "session_id",
        "uses_topic_ids",
    )

    def __init__(self, session_id: int, uses_topic_ids: bool, reader: Reader, now_ms: int) -> None:
        self.session_id = session_id
        self.uses_topic_ids = uses_topic_ids
        self.reader = reader
        self.is_follower = reader[0] >= 0
        self.is_kept = session_id != 0  # for more than the requests that are being served
        self.epoch = 1
        self.last_used_ms = now_ms
        self.partitions: dict[Key, FetchedPartition] = {}
        self.ready: dict[FetchedPartition, None] = {}
        self.parked: list[ParkedFetch] = []
        self._places = 0

    def ask(self, request: FetchRequest) -> None:
        """Take over what the request adds and changes."""
        for topic in request.topics:
            for part in topic.partitions:
                key = (topic.topic, topic.topic_id, part.partition)
                asked = self.partitions.get(key)
                if asked is None:
                    self._places += 1
                    asked = self.partitions[key] = FetchedPartition(*key, self._places)
                asked.fetch_offset = part.fetch_offset
                asked.follower_start_offset = part.log_start_offset
                asked.max_bytes = part.partition_max_bytes
                asked.current_leader_epoch = part.current_leader_epoch
                asked.last_fetched_epoch = part.last_fetched_epoch
                asked.has_moved = True
                self.ready[asked] = None

    def read_as(self, reader: Reader) -> None:
        """For another reader each partition may end elsewhere, or be refused."""
        if reader != self.reader:
            for asked in self.partitions.values():
                _unsubscribe(asked)  # a follower hears of other things than a consumer
            self.reader = reader
            self.is_follower = reader[0] >= 0
            for asked in self.partitions.values():
                self.ready[asked] = None
                asked.has_moved = True

    def forget(self, request: FetchRequest) -> None:
        """Let go of what the request does not want any more."""
        for topic in request.forgotten_topics_data:
            for index in topic.partitions:
                asked = self.partitions.pop((topic.topic, topic.topic_id, index), None)
                if asked is not None:
                    self.ready.pop(asked, None)
                    _unsubscribe(asked)

    def in_order(self) -> list[FetchedPartition]:
        """The partitions that are ready, in the order in which they are read."""
        return sorted(self.ready, key=_place) if len(self.ready) > 1 else list(self.ready)

    # ---- the partitions

    def found(self, asked: FetchedPartition, partition: Partition) -> None:
        """The partition is there, or another one than before."""
        _unsubscribe(asked)
        asked.found = partition

    def subscribe(self, asked: FetchedPartition, partition: Partition) -> None:
        """Hear of the next move of the partition."""
        (partition.followers if self.is_follower else partition.subscribers)[asked] = self

    def partition_moved(self, asked: FetchedPartition) -> None:
        """There is something to tell of a partition. The next time is heard of when it was read again."""
        if asked.found is not None and asked.found.deleted:
            asked.found = None
        asked.has_moved = True
        self.ready[asked] = None
        for fetch in self.parked:
            fetch.touched(asked)

    def watermark_moved(self, asked: FetchedPartition) -> None:
        """More of what the follower has is committed."""
        asked.has_moved = True
        self.ready[asked] = None
        for fetch in self.parked:
            fetch.nudged()

    def park(self, fetch: ParkedFetch, results: list[Result]) -> None:
        """Let a fetch that has read its partitions hear of their moves."""
        self.parked.append(fetch)
        if self.is_kept:
            for asked, data, size in results:
                if not asked.was_told(data):
                    if self.is_follower:
                        fetch.nudged()
                elif self._is_at_end(asked, data, size):
                    self.ready.pop(asked, None)
        else:
            for asked in self.partitions.values():
                if asked.found is not None:
                    self.subscribe(asked, asked.found)

    def unpark(self, fetch: ParkedFetch) -> None:
        self.parked.remove(fetch)
        if not self.is_kept:
            self.close()

    def close(self) -> None:
        """No further request will come. A fetch that waits still hears of its partitions."""
        self.is_kept = False
        if not self.parked:
            for asked in self.partitions.values():
                _unsubscribe(asked)

    # ---- the answer

    def select(
        self, results: list[Result], *, is_incremental: bool
    ) -> list[tuple[FetchedPartition, PartitionData]]:
        """The results that go into the response."""
        if not self.session_id:
            return [(asked, data) for asked, data, _ in results]
        selected = []
        for asked, data, size in results:
            failed = is_told_at_once(data)
            changed = size > 0 or failed or not asked.was_told(data)
            asked.high_watermark_sent = data.high_watermark
            asked.log_start_offset_sent = data.log_start_offset
            if data.error_code:
                asked.high_watermark_sent = -1  # have the watermark sent again once the error is over
            asked.has_moved = failed  # an error is told again until it is over
            if size > 0:
                self._places += 1
                asked.place = self._places
            elif not failed and self._is_at_end(asked, data, size):
                self.ready.pop(asked, None)
            if changed or not is_incremental:
                selected.append((asked, data))
        return selected

    def _is_at_end(self, asked: FetchedPartition, data: PartitionData, size: int) -> bool:
        """Whether only a move of the partition can bring its reader more records."""
        if self.is_follower:
            found = asked.found
            return size == 0 and found is not None and asked.fetch_offset >= found.log.log_end_offset
        read_committed = self.reader[1] == READ_COMMITTED
        end_offset = data.last_stable_offset if read_committed else data.high_watermark
        return size == 0 and asked.fetch_offset >= end_offset


def is_told_at_once(data: PartitionData) -> bool:
    """Whether a result is more than records and offsets, so that nobody waits for more of them first."""
    return (
        data.error_code != ErrorCode.NONE
        or data.diverging_epoch is not None
        or data.preferred_read_replica >= 0
    )


def _unsubscribe(asked: FetchedPartition) -> None:
    if asked.found is not None:
        asked.found.subscribers.pop(asked, None)
        asked.found.followers.pop(asked, None)
        asked.found = None


class FetchSessionCache:
    """All sessions of a node, at most `slots` of them; an unused one gives way after the eviction time."""

    def __init__(self, slots: int, eviction_ms: int) -> None:
        self._slots = slots
        self._eviction_ms = eviction_ms
        self._sessions: dict[int, FetchSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def session(
        self, request: FetchRequest, uses_topic_ids: bool, reader: Reader, new_id: int, now_ms: int
    ) -> FetchSession:
        """Find, make or close the session that the request names. `new_id` is a random id for a new one.

        Raises the KafkaError that the whole response carries when the session is not what the client thinks.
        """
        if request.session_epoch in (FINAL_EPOCH, INITIAL_EPOCH):
            self._close(request.session_id)
            session = None
            if request.session_epoch == INITIAL_EPOCH:
                session = self._create(new_id, uses_topic_ids, reader, now_ms)
            if session is None:
                session = FetchSession(0, uses_topic_ids, reader, now_ms)
            session.ask(request)
            return session
        session = self._sessions.get(request.session_id)
        if session is None:
            raise KafkaError(
                ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"fetch session {request.session_id} is not known"
            )
        if session.epoch != request.session_epoch:
            raise KafkaError(
                ErrorCode.INVALID_FETCH_SESSION_EPOCH,
                f"session {session.session_id} is at epoch {session.epoch}, not {request.session_epoch}",
            )
        if session.uses_topic_ids != uses_topic_ids:
            raise KafkaError(
                ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
                f"fetch session {session.session_id} changed between topic names and topic ids",
            )
        session.ask(request)
        session.forget(request)
        if not session.partitions:
            self._close(session.session_id)
            return FetchSession(0, uses_topic_ids, reader, now_ms)
        session.read_as(reader)
        session.epoch = session.epoch + 1 if session.epoch < _EPOCH_MAX else 1
        session.last_used_ms = now_ms
        self._sessions[session.session_id] = self._sessions.pop(session.session_id)  # keep the oldest first
        return session

    def _create(self, new_id: int, uses_topic_ids: bool, reader: Reader, now_ms: int) -> FetchSession | None:
        if new_id in self._sessions or self._slots <= 0:
            return None
        if len(self._sessions) >= self._slots:
            oldest = next(iter(self._sessions.values()))
            if now_ms - oldest.last_used_ms < self._eviction_ms:
                return None
            self._close(oldest.session_id)
        session = FetchSession(new_id, uses_topic_ids, reader, now_ms)
        self._sessions[new_id] = session
        return session

    def _close(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.close()
