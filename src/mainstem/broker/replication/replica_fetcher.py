"""Fetches from one leader's broker through one connection, and gives what comes to the partitions.

There is always one request under way, which waits at the leader until there is something new. The next one
leaves when all of an answer is written: it is the acknowledgement that leaders wait for. Where something has
to be on disk first, or the leader is asked where its log ends, it waits a little for that as well: else it
would be parked at the leader without the partitions concerned. What is to be asked is
`replication/fetcher.py`'s to say; what a partition does with an answer is the partition's.
"""

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mainstem.broker.logs.partition import Partition
from mainstem.broker.network.peers import PeerConnection, PeerOptions
from mainstem.cluster.features import metadata_version
from mainstem.cluster.image import MetadataImage
from mainstem.logs import about
from mainstem.protocol.apis.k01_fetch import FetchResponse, PartitionData
from mainstem.protocol.apis.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.replication.fetcher import SESSION_LOST, FetcherSession, Limits
from mainstem.storage.follower import UnexpectedOffsetError
from mainstem.wire.errors import Address, ConnectionLost, WireError
from mainstem.wire.options import ClientOptions

if TYPE_CHECKING:
    from mainstem.broker.shared_server import SharedServer

logger = logging.getLogger(__name__)

_FIRST_PAUSE_MS: Final = 20
_NEVER_MS: Final = 2**62
# For so long those who have nothing to wait for wait for those who have, and then ask for as long at a time.
_AWAITED_MS: Final = 100
_LATEST: Final = -1
_EARLIEST: Final = -2
_LIST_OFFSETS_VERSION: Final = 7

# What the metadata levels say about the Fetch versions of followers: from this level on, this version.
_FETCH_VERSIONS: Final = ((27, 18), (21, 17), (19, 16), (10, 15), (9, 14), (0, 13))

# A leader or a follower that has newer metadata than the other: that is over soon.
_PASSING: Final = frozenset(
    (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    )
)


def fetch_version(image: MetadataImage) -> int:
    """In which version followers fetch, so that every broker of the cluster understands it."""
    level = metadata_version(image)
    return next(version for first, version in _FETCH_VERSIONS if level >= first)


class Fetching:
    """How all fetchers of a broker fetch."""

    __slots__ = ("backoff_ms", "limits", "timeout_s")

    def __init__(self, limits: Limits, backoff_ms: int, timeout_s: float) -> None:
        self.limits = limits
        self.backoff_ms = backoff_ms
        self.timeout_s = timeout_s


class ReplicaFetcher:
    """One lane to one broker. It rests while nobody knows where that is."""

    def __init__(self, server: "SharedServer", leader_id: int, fetching: Fetching) -> None:
        self._server = server
        self._leader_id = leader_id
        self._fetching = fetching
        self._session: FetcherSession[Partition] = FetcherSession(server.node_id, fetching.limits)
        self._peer: PeerConnection | None = None
        self._address: Address | None = None
        self._is_scheduled = False
        self._is_under_way = False
        self._timer: Any = None
        self._problem = ""
        self._failures: dict[Partition, int] = {}
        # Left alone for something that is over soon.
        self._awaited: set[Partition] = set()
        self._patience: asyncio.TimerHandle | None = None

    @property
    def fetches_anything(self) -> bool:
        return len(self._session) > 0

    # ---- what is fetched, and where

    def add(self, partition: Partition) -> None:
        self._session.add(partition)
        self._awaited.discard(partition)
        try:
            partition.begin_to_follow()
        except KafkaError as error:
            self._rest(partition, error.code, error.message)
        self._schedule()

    def remove(self, partition: Partition) -> None:
        self._session.remove((partition.topic_id, partition.index))
        self._failures.pop(partition, None)
        self._awaited.discard(partition)

    def leave_alone(self, partition: Partition) -> None:
        """Until `go_on_with`, which will not be long."""
        self._session.rest(partition, _NEVER_MS)
        self._awaited.add(partition)

    def go_on_with(self, partition: Partition) -> None:
        """What it waited for has happened."""
        self._session.go_on(partition)
        self._awaited.discard(partition)
        self._schedule()

    def found_at(self, address: Address | None) -> None:
        """The broker is there now; None when nobody knows."""
        if address == self._address:
            return
        self._address = address
        self._hang_up()
        if address is not None:
            server = self._server
            options = PeerOptions(ClientOptions(client_id=f"broker-{server.node_id}-fetcher"))
            self._peer = PeerConnection(server.loop, address, options, server.randomness.fraction)
            self._schedule()

    def close(self) -> None:
        self._address = None
        self._hang_up()
        for timer in (self._timer, self._patience):
            if timer is not None:
                timer.cancel()
        self._timer = self._patience = None

    def _hang_up(self) -> None:
        if self._peer is not None:
            self._peer.close()
            self._peer = None
        self._is_under_way = False
        self._session.begin_anew()

    # ---- fetching

    def _schedule(self) -> None:
        """Once for everything that is added in one turn."""
        if not self._is_scheduled and not self._is_under_way:
            self._is_scheduled = True
            self._server.loop.call_soon(self._fetch_soon)

    def _fetch_soon(self) -> None:
        """When nothing is waited for, or not any more."""
        self._is_scheduled = False
        if not self._awaited:
            self._fetch()
        elif self._patience is None:
            self._patience = self._server.loop.call_later(_AWAITED_MS / 1000, self._fetch)

    def _fetch(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
        peer = self._peer
        if peer is None or self._is_under_way:
            return
        server = self._server
        now_ms = server.clock.now_ms()
        broker = server.image.brokers.get(server.node_id)
        request = self._session.request(-1 if broker is None else broker.epoch, now_ms)
        if request is None:
            self._wake_at(self._session.next_end_of_rest_ms, now_ms)
            return
        if self._awaited:
            request.max_wait_ms = min(request.max_wait_ms, _AWAITED_MS)
        self._is_under_way = True
        peer.request(
            request,
            partial(self._answered, peer),
            timeout_s=self._fetching.timeout_s,
            version_max=fetch_version(server.image),
        )

    def _wake_at(self, when_ms: int | None, now_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if when_ms is not None and when_ms < _NEVER_MS:
            self._timer = self._server.loop.call_later((when_ms - now_ms) / 1000, self._schedule)

    def _answered(self, peer: PeerConnection, outcome: Any) -> None:
        if peer is not self._peer:
            return  # it was asked on a connection to where the broker was before
        self._is_under_way = False
        if isinstance(outcome, WireError):
            self._failed(outcome)
            return
        response: FetchResponse = outcome
        for partition, data in self._session.answered(response):
            try:
                self._take(partition, data)
            except KafkaError as error:
                self._rest(partition, error.code, error.message)
            except UnexpectedOffsetError as error:
                self._rest(partition, ErrorCode.CORRUPT_MESSAGE, str(error))
            except Exception:
                logger.exception("cannot take what broker %d sent of %s", self._leader_id, partition)
                self._rest(partition, ErrorCode.UNKNOWN_SERVER_ERROR, "it cannot be taken")
        if response.error_code != ErrorCode.NONE and response.error_code not in SESSION_LOST:
            self._pause(f"it answers {ErrorCode(response.error_code).name}")
            return
        if self._problem:
            logger.info("following broker %d again", self._leader_id)
            self._problem = ""
        self._fetch_soon()

    def _failed(self, error: WireError) -> None:
        """The connection dials again by itself, with pauses of its own."""
        self._session.begin_anew()
        if isinstance(error, ConnectionLost):
            self._say(str(error))
            self._schedule()
        else:
            self._pause(str(error))

    def _pause(self, problem: str) -> None:
        self._say(problem)
        now_ms = self._server.clock.now_ms()
        self._wake_at(now_ms + self._fetching.backoff_ms, now_ms)

    def _say(self, problem: str) -> None:
        if problem != self._problem:
            self._problem = problem
            logger.warning("cannot follow broker %d: %s", self._leader_id, problem)

    # ---- one partition

    def _take(self, partition: Partition, data: PartitionData) -> None:
        code = data.error_code
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._ask_range(partition)
            return
        if code != ErrorCode.NONE:
            raise KafkaError(ErrorCode(code))
        if data.diverging_epoch is not None:
            diverging = data.diverging_epoch
            partition.cut_where_it_diverges(diverging.epoch, diverging.end_offset)
        else:
            records = data.records
            assert records is None or isinstance(records, (bytes, memoryview))
            if not partition.append_from_leader(
                memoryview(records) if records else None, data.high_watermark, data.log_start_offset
            ):
                self.leave_alone(partition)  # until it is on disk
        if self._failures:
            self._failures.pop(partition, None)

    def _rest(self, partition: Partition, code: ErrorCode, message: str) -> None:
        failures = self._failures[partition] = self._failures.get(partition, 0) + 1
        pause_ms = min(self._fetching.backoff_ms, _FIRST_PAUSE_MS << min(failures - 1, 10))
        self._session.rest(partition, self._server.clock.now_ms() + pause_ms)
        self._awaited.discard(partition)
        if code not in _PASSING and failures & (failures - 1) == 0:  # ever more seldom
            logger.warning(
                "cannot follow %s at broker %d: %s: %s",
                partition, self._leader_id, code.name, message or code.message, extra=about(partition),
            )  # fmt: skip

    # ---- the leader's log does not go on where this one ends

    def _ask_range(self, partition: Partition) -> None:
        """Where the leader's log ends and starts; until then the partition is not fetched."""
        self.leave_alone(partition)
        self._ask_offset(partition, _LATEST, partial(self._end_known, partition))

    def _end_known(self, partition: Partition, end_offset: int) -> None:
        self._ask_offset(partition, _EARLIEST, partial(self._range_known, partition, end_offset))

    def _range_known(self, partition: Partition, end_offset: int, start_offset: int) -> None:
        logger.info(
            "%s ends at %d here, and goes from %d to %d at broker %d",
            partition, partition.log.log_end_offset, start_offset, end_offset, self._leader_id,
            extra=about(partition),
        )  # fmt: skip
        self.go_on_with(partition)
        partition.follow_from(start_offset, end_offset)

    def _ask_offset(self, partition: Partition, timestamp: int, on_offset: Any) -> None:
        if self._peer is None:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "nobody knows where the leader is")
        epoch = partition.leader_epoch
        asked = ListOffsetsPartition(partition.index, epoch, timestamp)
        request = ListOffsetsRequest(
            replica_id=self._server.node_id, topics=[ListOffsetsTopic(partition.topic, [asked])]
        )
        self._peer.request(
            request,
            partial(self._offset_known, partition, epoch, on_offset),
            timeout_s=self._fetching.timeout_s,
            version_max=_LIST_OFFSETS_VERSION,
        )

    def _offset_known(self, partition: Partition, epoch: int, on_offset: Any, outcome: Any) -> None:
        if partition.leader_epoch != epoch or (partition.topic_id, partition.index) not in self._session:
            return  # it follows another leader by now
        try:
            if isinstance(outcome, WireError):
                raise KafkaError(ErrorCode.NETWORK_EXCEPTION, str(outcome))
            on_offset(_offset_in(outcome))
        except KafkaError as error:
            self._rest(partition, error.code, error.message)
        self._schedule()


def _offset_in(response: ListOffsetsResponse) -> int:
    for topic in response.topics:
        for answer in topic.partitions:
            if answer.error_code != ErrorCode.NONE:
                raise KafkaError(ErrorCode(answer.error_code))
            if answer.offset >= 0:
                return answer.offset
    raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the leader does not say where its log is")
