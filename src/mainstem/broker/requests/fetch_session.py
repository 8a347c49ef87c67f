"""Incremental fetch sessions (KIP-227): what a client fetches is remembered, so that requests and
responses carry only what changed.

Rules: a session belongs to one client connection's lifetime only by its id and epoch, never by the socket; a
partition is left out of an incremental response unless it has data, an error, or a moved watermark; a
partition that returned data goes to the end of the order, so that none starves under a response limit.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from mainstem.protocol.apis.k01_fetch import FetchRequest, PartitionData
from mainstem.protocol.errors import ErrorCode, KafkaError

FINAL_EPOCH: Final = -1
INITIAL_EPOCH: Final = 0
_EPOCH_MAX: Final = 2**31 - 1

Key = tuple[str, bytes, int]  # topic name (empty when asked by id), topic id, partition


class FetchedPartition:
    """What is asked of one partition, and what its client was last told about it."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "high_watermark_sent",
        "last_fetched_epoch",
        "log_start_offset_sent",
        "max_bytes",
        "name_found",
        "partition",
        "topic",
        "topic_id",
    )

    def __init__(self, topic: str, topic_id: bytes, partition: int) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partition = partition
        self.fetch_offset = 0
        self.max_bytes = 0
        self.current_leader_epoch = -1
        self.last_fetched_epoch = -1
        self.high_watermark_sent = -1
        self.log_start_offset_sent = -1
        self.name_found = ""  # the name that the topic id had when it was last read


class FetchSession:
    """The partitions of one session, in the order in which they are read."""

    __slots__ = ("epoch", "last_used_ms", "partitions", "session_id", "uses_topic_ids")

    def __init__(self, session_id: int, uses_topic_ids: bool, now_ms: int) -> None:
        self.session_id = session_id
        self.uses_topic_ids = uses_topic_ids
        self.epoch = 1
        self.last_used_ms = now_ms
        self.partitions: dict[Key, FetchedPartition] = {}

    def update(self, request: FetchRequest) -> None:
        """Take over what the request adds, changes and forgets."""
        for key, asked in _asked(request):
            known = self.partitions.get(key)
            if known is None:
                self.partitions[key] = asked
                continue
            known.fetch_offset = asked.fetch_offset
            known.max_bytes = asked.max_bytes
            known.current_leader_epoch = asked.current_leader_epoch
            known.last_fetched_epoch = asked.last_fetched_epoch
        for topic in request.forgotten_topics_data:
            for index in topic.partitions:
                self.partitions.pop((topic.topic, topic.topic_id, index), None)


class FetchContext:
    """The partitions to read for one request, and the rule which of their results the response carries."""

    __slots__ = ("_incremental", "_session", "partitions", "session_id")

    def __init__(
        self, partitions: Iterable[FetchedPartition], session: FetchSession | None, incremental: bool
    ) -> None:
        self.partitions = list(partitions)
        self._session = session
        self._incremental = incremental
        self.session_id = session.session_id if session is not None else 0

    def select(
        self, results: list[tuple[FetchedPartition, PartitionData, int]]
    ) -> list[tuple[FetchedPartition, PartitionData]]:
        """The results that go into the response; `results` holds the size of each one's records."""
        if self._session is None:
            return [(asked, data) for asked, data, _ in results]
        selected = []
        for asked, data, size in results:
            changed = (
                size > 0
                or data.error_code
                or data.high_watermark != asked.high_watermark_sent
                or data.log_start_offset != asked.log_start_offset_sent
                or data.diverging_epoch is not None
            )
            asked.high_watermark_sent = data.high_watermark
            asked.log_start_offset_sent = data.log_start_offset
            if data.error_code:
                asked.high_watermark_sent = -1  # have the watermark sent again once the error is over
            if size > 0:
                self._move_to_end(asked)
            if changed or not self._incremental:
                selected.append((asked, data))
        return selected

    def _move_to_end(self, asked: FetchedPartition) -> None:
        assert self._session is not None
        key = (asked.topic, asked.topic_id, asked.partition)
        if self._session.partitions.pop(key, None) is not None:
            self._session.partitions[key] = asked


class FetchSessionCache:
    """All sessions of a node, at most `slots` of them; an unused one gives way after the eviction time."""

    def __init__(self, slots: int, eviction_ms: int) -> None:
        self._slots = slots
        self._eviction_ms = eviction_ms
        self._sessions: dict[int, FetchSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def context(self, request: FetchRequest, uses_topic_ids: bool, new_id: int, now_ms: int) -> FetchContext:
        """Find, make or close the session that the request names. `new_id` is a random id for a new one.

        Raises the KafkaError that the whole response carries when the session is not what the client thinks.
        """
        if request.session_epoch in (FINAL_EPOCH, INITIAL_EPOCH):
            self._sessions.pop(request.session_id, None)
            partitions = dict(_asked(request))
            session = None
            if request.session_epoch == INITIAL_EPOCH:
                session = self._create(new_id, uses_topic_ids, now_ms)
            if session is not None:
                session.partitions = partitions
            return FetchContext(partitions.values(), session, incremental=False)
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
        session.update(request)
        if not session.partitions:
            del self._sessions[session.session_id]
            return FetchContext((), None, incremental=False)
        session.epoch = session.epoch + 1 if session.epoch < _EPOCH_MAX else 1
        session.last_used_ms = now_ms
        self._sessions[session.session_id] = self._sessions.pop(session.session_id)  # keep the oldest first
        return FetchContext(session.partitions.values(), session, incremental=True)

    def _create(self, new_id: int, uses_topic_ids: bool, now_ms: int) -> FetchSession | None:
        if new_id in self._sessions or self._slots <= 0:
            return None
        if len(self._sessions) >= self._slots:
            oldest = next(iter(self._sessions.values()))
            if now_ms - oldest.last_used_ms < self._eviction_ms:
                return None
            del self._sessions[oldest.session_id]
        session = FetchSession(new_id, uses_topic_ids, now_ms)
        self._sessions[new_id] = session
        return session


def _asked(request: FetchRequest) -> Iterator[tuple[Key, FetchedPartition]]:
    for topic in request.topics:
        for part in topic.partitions:
            asked = FetchedPartition(topic.topic, topic.topic_id, part.partition)
            asked.fetch_offset = part.fetch_offset
            asked.max_bytes = part.partition_max_bytes
            asked.current_leader_epoch = part.current_leader_epoch
            asked.last_fetched_epoch = part.last_fetched_epoch
            yield (topic.topic, topic.topic_id, part.partition), asked
