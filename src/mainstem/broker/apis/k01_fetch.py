"""Fetch (key 1), versions 4 to 18.

v7 sessions (KIP-227), v9 and v12 leader epochs and diverging epochs (KIP-320, KIP-595), v11 rack id and
reading from followers (KIP-392), v13 topic ids (KIP-516), v15 replica state (KIP-903), v16 the current leader
in errors (KIP-951), v17 directory id (KIP-853), v18 high watermark of the replica (KIP-1166). Readers of
committed records (isolation level 1) get what is before the last stable offset, and which transactions in it
were aborted. Followers read up to the end of the log, and say with each fetch how far they are; that the high
watermark has moved they hear with the next records, or a moment later.
"""

from typing import Any, Final

from mainstem.broker.apis import Api
from mainstem.broker.logs.partition import Partition
from mainstem.broker.network.connection import PARKED, Parked
from mainstem.broker.quorum.asking import ask_quorum
from mainstem.broker.requests.context import RequestContext
from mainstem.broker.requests.current_leader import NAMES_LEADER, current_leader
from mainstem.broker.requests.fetch_session import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    READ_COMMITTED,
    FetchedPartition,
    FetchSession,
    Result,
    is_told_at_once,
)
from mainstem.broker.requests.replica_selection import preferred_replica
from mainstem.protocol.apis.k01_fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.replication.brokers import NO_EPOCH
from mainstem.security.authorizer import CLUSTER_NAME, Operation, ResourceType

API: Final = Api("broker", "controller")
_TOPIC_IDS_SINCE: Final = 13
_FOLLOWERS_SINCE: Final = 11
# So long a follower waits for records to hear of the high watermark with; half a second by itself.
_NUDGE_SECONDS: Final = 0.02


def handle(ctx: RequestContext, request: FetchRequest) -> Any | Parked:
    if ctx.connection.listener.is_controller:  # there is the metadata log, and nothing else
        return ask_quorum(ctx, request, Operation.CLUSTER_ACTION, FetchResponse)
    broker = ctx.broker
    state = request.replica_state
    replica_id, replica_epoch = request.replica_id, NO_EPOCH
    if state is not None:
        replica_id, replica_epoch = state.replica_id, state.replica_epoch
    reader = (replica_id, request.isolation_level, ctx.principal, ctx.server.authorizer.generation)
    new_id = broker.randomness.number(1, 2**31) if request.session_epoch == INITIAL_EPOCH else 0
    try:
        session = broker.fetch_sessions.session(
            request, ctx.version >= _TOPIC_IDS_SINCE, reader, new_id, broker.clock.now_ms()
        )
    except KafkaError as error:
        return FetchResponse(error_code=error.code)
    fetch = Fetch(ctx, request, session)
    if session.is_follower:
        fetch.read_for_follower(replica_id, replica_epoch)
    else:
        fetch.read()
    # No answer can be larger than the limit, so there is no use in waiting for more than that.
    request.min_bytes = min(request.min_bytes, request.max_bytes, broker.fetch_bytes_max)
    if request.max_wait_ms <= 0 or fetch.failed or fetch.size >= request.min_bytes or not session.partitions:
        return fetch.response()
    fetch.park()
    return PARKED


class Fetch:
    """One fetch request: read now, or parked until enough data, an error or its time-out."""

    __slots__ = (
        "_available",
        "_committed",
        "_ctx",
        "_follower",
        "_is_nudged",
        "_nodes",
        "_rack",
        "_request",
        "_results",
        "_scheduled",
        "_session",
        "_timer",
        "_touched",
        "failed",
        "size",
    )

    def __init__(self, ctx: RequestContext, request: FetchRequest, session: FetchSession) -> None:
        self._ctx = ctx
        self._request = request
        self._session = session
        self._committed = request.isolation_level == READ_COMMITTED
        self._nodes: dict[int, NodeEndpoint] = {}  # of leaders that errors name
        self._follower: tuple[int, int] | None = None  # broker and its epoch, while its fetch is news
        self._rack = request.rack_id if ctx.broker.prefers_near_replicas else ""
        self._results: list[Result] = []
        self._available: dict[FetchedPartition, int] = {}
        self._touched: set[FetchedPartition] = set()
        self._scheduled = False
        self._is_nudged = False
        self.failed = False
        self.size = 0

    # ---- reading

    def read_for_follower(self, broker_id: int, broker_epoch: int) -> None:
        """The same as `read`, after which the partitions know what the follower has."""
        self._follower = broker_id, broker_epoch
        self.read()
        self._follower = None

    def read(self) -> None:
        """Read what is ready within the limits of the request; the first batch found is returned whole."""
        self.size = 0
        self.failed = False
        self._results = []
        self._available.clear()
        limit = min(self._request.max_bytes, self._ctx.broker.fetch_bytes_max)
        for asked in self._session.in_order():
            left = limit - self.size
            if left <= 0 and self.size and not asked.has_moved:
                continue  # there is no room for its records, and nothing else to tell
            data, size = self._read_partition(asked, max(0, left))
            self.size += size
            if is_told_at_once(data):
                self.failed = True
            self._results.append((asked, data, size))

    def _read_partition(self, asked: FetchedPartition, limit: int) -> tuple[PartitionData, int]:
        try:
            partition = self._find(asked)
            if asked.found is not partition:
                self._session.found(asked, partition)
            if self._session.is_follower:
                return self._read_to_end(partition, asked, limit)
            if self._session.is_kept:
                partition.subscribers[asked] = self._session
            if self._ctx.version >= _FOLLOWERS_SINCE:
                partition.check_replica(asked.current_leader_epoch)
            else:
                partition.check_leader(asked.current_leader_epoch)
            high_watermark = partition.high_watermark
            data = PartitionData(
                partition_index=asked.partition,
                high_watermark=high_watermark,
                last_stable_offset=partition.log.last_stable_offset(high_watermark),
                log_start_offset=partition.log.log_start_offset,
                aborted_transactions=[] if self._committed else None,
                records=b"",
            )
            if asked.last_fetched_epoch >= 0 and self._diverges(partition, asked, data):
                return data, 0
            if self._rack:
                data.preferred_read_replica = self._preferred_replica(partition, asked.fetch_offset)
                if data.preferred_read_replica >= 0:
                    return data, 0
            result = partition.read(
                asked.fetch_offset, min(asked.max_bytes, limit), self.size == 0, self._committed
            )
            self._available[asked] = result.size
            if result.records is None:
                return data, 0
            data.records = result.records
            if self._committed and partition.log.producers.aborted:
                data.aborted_transactions = [
                    AbortedTransaction(producer_id=producer_id, first_offset=first_offset)
                    for producer_id, first_offset in partition.log.aborted_transactions(
                        asked.fetch_offset, result.next_offset
                    )
                ]
            return data, result.size
        except KafkaError as error:
            return self._error(asked, error.code), 0

    def _read_to_end(
        self, partition: Partition, asked: FetchedPartition, limit: int
    ) -> tuple[PartitionData, int]:
        """What a follower gets. That it asks from there on says what it has, if the log goes on there."""
        if self._session.is_kept:
            partition.followers[asked] = self._session
        partition.check_leader(asked.current_leader_epoch)
        data = PartitionData(
            partition_index=asked.partition,
            log_start_offset=partition.log.log_start_offset,
            aborted_transactions=None,
            records=b"",
        )
        size = 0
        if asked.last_fetched_epoch < 0 or not self._diverges(partition, asked, data):
            result = partition.read_to_end(asked.fetch_offset, min(asked.max_bytes, limit), self.size == 0)
            size = self._available[asked] = result.size
            if self._follower is not None:
                broker_id, broker_epoch = self._follower
                now_ms = self._ctx.broker.clock.now_ms()
                partition.fetched_by(
                    broker_id, broker_epoch, asked.fetch_offset, asked.follower_start_offset, now_ms
                )
            if result.records is not None:
                data.records = result.records
        data.high_watermark = partition.high_watermark
        data.last_stable_offset = partition.last_stable_offset
        return data, size

    def _preferred_replica(self, partition: Partition, offset: int) -> int:
        broker = self._ctx.broker
        return preferred_replica(partition, offset, self._rack, broker.image.brokers, self._ctx.listener_name)

    def _find(self, asked: FetchedPartition) -> Partition:
        ctx = self._ctx
        if ctx.version >= _TOPIC_IDS_SINCE:
            partition = self._find_by_id(asked)
        else:
            partition = ctx.broker.replicas.by_topic(asked.topic, asked.partition)
        if self._session.is_follower:
            may_read = ctx.authorize(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME)
        else:
            may_read = ctx.authorize(Operation.READ, ResourceType.TOPIC, partition.topic)
        if not may_read:
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        asked.name_found = partition.topic
        return partition

    def _find_by_id(self, asked: FetchedPartition) -> Partition:
        replicas = self._ctx.broker.replicas
        try:
            return replicas.by_topic_id(asked.topic_id, asked.partition)
        except KafkaError as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_ID or not asked.name_found:
                raise
        # The topic was there when this session or request began. By its name, one sees what became of it.
        replicas.by_topic(asked.name_found, asked.partition)
        raise KafkaError(
            ErrorCode.INCONSISTENT_TOPIC_ID, f"topic {asked.name_found} was deleted and created again"
        )

    def _diverges(self, partition: Partition, asked: FetchedPartition, data: PartitionData) -> bool:
        epoch, end_offset = partition.log.end_offset_for_epoch(asked.last_fetched_epoch)
        if epoch < 0 or end_offset < 0:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"epoch {asked.last_fetched_epoch} is not known")
        if asked.fetch_offset < partition.log.log_start_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"{partition} starts at {partition.log.log_start_offset}"
            )
        if epoch >= asked.last_fetched_epoch and end_offset >= asked.fetch_offset:
            return False
        data.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
        return True

    def _error(self, asked: FetchedPartition, code: ErrorCode) -> PartitionData:
        data = PartitionData(
            partition_index=asked.partition,
            error_code=code,
            high_watermark=-1,
            last_stable_offset=-1,
            log_start_offset=-1,
            aborted_transactions=None,
            records=b"",
        )
        leader = None
        if code in NAMES_LEADER:
            leader = current_leader(
                self._ctx, asked.name_found or asked.topic, asked.topic_id, asked.partition
            )
        if leader is not None:
            data.current_leader = LeaderIdAndEpoch(leader.leader_id, leader.leader_epoch)
            if leader.endpoint is not None:
                self._nodes[leader.leader_id] = NodeEndpoint(
                    leader.leader_id, leader.endpoint.host, leader.endpoint.port, leader.rack
                )
        return data

    # ---- answering

    def response(self) -> FetchResponse:
        for read, size in self._available.items():
            if read.found is not None:
                read.found.bytes_out += size
        topics: list[FetchableTopicResponse] = []
        is_incremental = self._request.session_epoch not in (INITIAL_EPOCH, FINAL_EPOCH)
        for asked, data in self._session.select(self._results, is_incremental=is_incremental):
            if not topics or topics[-1].topic != asked.topic or topics[-1].topic_id != asked.topic_id:
                topics.append(FetchableTopicResponse(topic=asked.topic, topic_id=asked.topic_id))
            topics[-1].partitions.append(data)
        return FetchResponse(
            session_id=self._session.session_id, responses=topics, node_endpoints=list(self._nodes.values())
        )

    # ---- waiting

    def park(self) -> None:
        """Wait on the partitions; the ranges read so far are let go and read again at the answer."""
        results, self._results = self._results, []
        loop = self._ctx.broker.loop
        self._timer = loop.call_later(self._request.max_wait_ms / 1000, self._finish)
        self._ctx.connection.waiter = self
        self._session.park(self, results)
        if self._session.is_follower:
            self._wait_as_follower(self._session.reader[0])
        if self.size:
            # The limit of the whole answer may have cut it short, and then there is nothing to wait for.
            for asked in self._session.ready:
                self.touched(asked)

    def _wait_as_follower(self, broker_id: int) -> None:
        broker = self._ctx.broker
        broker.replicas.waiting_fetches[broker_id].add(self)
        if broker.replicas.brokers.is_awaited(broker_id, broker.clock.now_ms()):
            self.nudged()

    def touched(self, asked: FetchedPartition) -> None:
        """The partition moved: look again on the next turn of the loop, once for everything that moved in
        this one.
        """
        self._touched.add(asked)
        if not self._scheduled:
            self._scheduled = True
            self._ctx.broker.loop.call_soon(self._look_again)

    def _look_again(self) -> None:
        if self._ctx.connection.waiter is not self:
            return  # answered or cancelled meanwhile
        self._scheduled = False
        touched, self._touched = self._touched, set()
        for asked in touched:
            partition = asked.found
            if partition is None:  # it is gone
                self._finish()
                return
            self._session.subscribe(asked, partition)
            if 0 <= asked.current_leader_epoch != partition.leader_epoch:
                self._finish()  # with the error that says so
                return
            end_offset = self._end_offset(partition)
            if self._request.min_bytes <= 1 and end_offset > asked.fetch_offset:
                self._finish()  # a single record is enough
                return
            try:
                if self._session.is_follower:
                    result = partition.read_to_end(asked.fetch_offset, asked.max_bytes, True)
                else:
                    result = partition.read(asked.fetch_offset, asked.max_bytes, True, self._committed)
            except KafkaError:
                self._finish()
                return
            self.size += result.size - self._available.get(asked, 0)
            self._available[asked] = result.size
        if self.size >= self._request.min_bytes:
            self._finish()

    def _end_offset(self, partition: Partition) -> int:
        if self._session.is_follower:
            return partition.log.log_end_offset
        return partition.last_stable_offset if self._committed else partition.high_watermark

    def nudged(self) -> None:
        """Answer soon, with the records that come until then."""
        if not self._is_nudged:
            self._is_nudged = True
            seconds = min(_NUDGE_SECONDS, self._request.max_wait_ms / 1000)
            self._timer.cancel()
            self._timer = self._ctx.broker.loop.call_later(seconds, self._finish)

    def _finish(self) -> None:
        self.cancel()
        self.read()
        self._ctx.reply(self.response())

    def cancel(self) -> None:
        self._timer.cancel()
        self._ctx.connection.waiter = None
        self._session.unpark(self)
        if self._session.is_follower:
            self._ctx.broker.replicas.waiting_fetches[self._session.reader[0]].discard(self)
