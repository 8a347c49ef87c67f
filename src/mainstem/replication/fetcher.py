"""What one connection of a follower's broker fetches from one leader's: an incremental session over all
partitions of a lane (KIP-227), the next request, and what an answer means for the session.

Rules:
- A request names only what changed since the one before: what is new, or whose fetch offset moved.
- The fetch offset is where the log ends. It is said again only when the log has what came before, so that a
  request is the acknowledgement of the answer before it.
- A partition that failed rests for a while: it leaves the session and comes back, others are not held up.
- An answer counts for a partition only as long as it is the one that was asked for: not when it was taken
  out, came back in another epoch, or was cut meanwhile.
"""

from collections.abc import Hashable, Iterator
from typing import Final, Generic, Protocol, TypeVar

from mainstem.protocol.apis.k01_fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)
from mainstem.protocol.errors import ErrorCode

_INITIAL_EPOCH: Final = 0
_EPOCH_MAX: Final = 2**31 - 1
_NO_SESSION: Final = 0

# The request was refused, and can be followed by another at once: only the session is not there any more.
SESSION_LOST: Final = frozenset(
    (
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    )
)


class Fetched(Protocol):
    """A partition as the fetcher sees it."""

    topic: str
    topic_id: bytes
    index: int
    leader_epoch: int

    @property
    def fetch_position(self) -> tuple[int, int, int]:
        """Where its log ends, the epoch of its last record (-1: none is known), and where it starts."""


F = TypeVar("F", bound=Fetched)
Key = tuple[bytes, int]


class Limits:
    """What a fetch may bring, and how long it may wait for it."""

    __slots__ = ("max_bytes", "max_wait_ms", "min_bytes", "partition_max_bytes")

    def __init__(self, max_wait_ms: int, min_bytes: int, max_bytes: int, partition_max_bytes: int) -> None:
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.partition_max_bytes = partition_max_bytes


class _Asked(Generic[F]):
    """One partition of the session, and what the leader was last told of it."""

    __slots__ = ("in_session", "leader_epoch", "partition", "position", "rests_until_ms")

    def __init__(self, partition: F) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.position: tuple[int, int, int] | None = None
        self.in_session = False
        self.rests_until_ms = 0


class FetcherSession(Generic[F]):
    """The partitions that are fetched through one connection, and the session with the leader's broker."""

    def __init__(self, replica_id: int, limits: Limits) -> None:
        self._replica_id = replica_id
        self._limits = limits
        self._asked: dict[Key, _Asked[F]] = {}
        # To be named in the next request, because they are new or moved; and those to be left out from it on.
        self._moved: dict[Key, None] = {}
        self._forgotten: dict[Key, str] = {}
        self._resting: dict[Key, None] = {}
        self._session_id = _NO_SESSION
        self._session_epoch = _INITIAL_EPOCH

    def __len__(self) -> int:
        return len(self._asked)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._asked

    # ---- the partitions

    def add(self, partition: F) -> None:
        """Fetch this partition from now on, or in another epoch."""
        key = (partition.topic_id, partition.index)
        former = self._asked.get(key)
        asked = _Asked(partition)
        if former is not None:
            if former.partition is partition and former.leader_epoch == partition.leader_epoch:
                return
            asked.in_session = former.in_session
        elif key in self._forgotten:
            del self._forgotten[key]
            asked.in_session = True
        self._asked[key] = asked
        self._resting.pop(key, None)
        self._moved[key] = None

    def remove(self, key: Key) -> None:
        """Fetch this partition no more."""
        asked = self._asked.pop(key, None)
        if asked is None:
            return
        self._moved.pop(key, None)
        self._resting.pop(key, None)
        self._leave_session(key, asked)

    def rest(self, partition: F, until_ms: int) -> None:
        """Leave it out until then: something is wrong with it, here or at its leader."""
        key = (partition.topic_id, partition.index)
        asked = self._asked.get(key)
        if asked is None:
            return
        asked.rests_until_ms = until_ms
        self._resting[key] = None
        self._moved.pop(key, None)
        self._leave_session(key, asked)

    def go_on(self, partition: F) -> None:
        """Fetch one that rested."""
        key = (partition.topic_id, partition.index)
        if self._resting.pop(key, key) is None:
            self._moved[key] = None

    def _leave_session(self, key: Key, asked: _Asked[F]) -> None:
        asked.position = None
        if asked.in_session:
            asked.in_session = False
            self._forgotten[key] = asked.partition.topic

    @property
    def next_end_of_rest_ms(self) -> int | None:
        """When the first of those that rest is to be fetched again."""
        return min((self._asked[key].rests_until_ms for key in self._resting), default=None)

    # ---- a request

    def request(self, broker_epoch: int, now_ms: int) -> FetchRequest | None:
        """The next one; None while there is nothing to fetch."""
        for key in [key for key in self._resting if self._asked[key].rests_until_ms <= now_ms]:
            del self._resting[key]
            self._moved[key] = None
        if len(self._resting) == len(self._asked):
            return None
        limits = self._limits
        request = FetchRequest(
            replica_id=self._replica_id,  # the field of older versions; newer ones have the state
            replica_state=ReplicaState(self._replica_id, broker_epoch),
            max_wait_ms=limits.max_wait_ms,
            min_bytes=limits.min_bytes,
            max_bytes=limits.max_bytes,
            session_id=self._session_id,
            session_epoch=self._session_epoch,
        )
        if self._session_epoch == _INITIAL_EPOCH:
            named: list[Key] = [key for key in self._asked if key not in self._resting]
            self._forgotten.clear()
        else:
            named = list(self._moved)
            for key in named:  # one that rested while nothing was asked: a leader adds first, then forgets
                self._forgotten.pop(key, None)
            request.forgotten_topics_data = _forgotten(self._forgotten)
            self._forgotten = {}
        self._moved = {}
        self._name(request, named)
        return request

    def _name(self, request: FetchRequest, keys: list[Key]) -> None:
        topics: dict[bytes, FetchTopic] = {}
        max_bytes = self._limits.partition_max_bytes
        for key in keys:
            asked = self._asked[key]
            partition = asked.partition
            position = asked.position = partition.fetch_position
            asked.in_session = True
            topic = topics.get(partition.topic_id)
            if topic is None:
                topic = topics[partition.topic_id] = FetchTopic(partition.topic, partition.topic_id, [])
                request.topics.append(topic)
            topic.partitions.append(
                FetchPartition(
                    partition=partition.index,
                    current_leader_epoch=asked.leader_epoch,
                    fetch_offset=position[0],
                    last_fetched_epoch=position[1],
                    log_start_offset=position[2],
                    partition_max_bytes=max_bytes,
                )
            )

    # ---- its answer

    def answered(self, response: FetchResponse) -> Iterator[tuple[F, PartitionData]]:
        """What came for partitions that still want it; nothing when the request as a whole was refused."""
        if response.error_code != ErrorCode.NONE or response.session_id == _NO_SESSION:
            self.begin_anew()  # without a session each request names everything
        else:
            self._session_id = response.session_id
            self._session_epoch = self._session_epoch + 1 if self._session_epoch < _EPOCH_MAX else 1
        for topic in response.responses:
            for data in topic.partitions:
                key = (topic.topic_id, data.partition_index)
                asked = self._asked.get(key)
                if asked is None or asked.position is None:
                    continue  # it was taken out since, or rests
                partition = asked.partition
                end_offset, last_epoch, _ = partition.fetch_position
                if asked.leader_epoch == partition.leader_epoch and asked.position[:2] == (
                    end_offset,
                    last_epoch,
                ):
                    yield partition, data
                    if asked.position is not None and asked.position != partition.fetch_position:
                        self._moved[key] = None
                else:
                    self._moved[key] = None

    def begin_anew(self) -> None:
        """The session is lost: the next request opens one and names everything."""
        self._session_id = _NO_SESSION
        self._session_epoch = _INITIAL_EPOCH
        self._forgotten.clear()
        for asked in self._asked.values():
            asked.in_session = False


def _forgotten(keys: dict[Key, str]) -> list[ForgottenTopic]:
    topics: dict[bytes, ForgottenTopic] = {}
    for (topic_id, index), name in keys.items():
        topic = topics.get(topic_id)
        if topic is None:
            topic = topics[topic_id] = ForgottenTopic(name, topic_id, [])
        topic.partitions.append(index)
    return list(topics.values())
