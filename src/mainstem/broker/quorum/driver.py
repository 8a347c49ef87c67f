"""Performs what the raft core decides: on disk, over connections, in time.

The effects of an event are performed in their order, all of them before the core hears of the next event.
What has to be durable first is synced in a thread meanwhile; events that come in wait. Whoever is told of the
outcome (the metadata log, those who subscribed) is told after that, for it may append.

An effect that the disk refuses is the end of this node's part in the quorum: nobody knows any more what was
promised to whom.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from mainstem.broker.errors import MetadataLogError
from mainstem.broker.quorum.quorum_log import QuorumLog
from mainstem.cluster.raft import effects as fx
from mainstem.cluster.raft import events as ev
from mainstem.cluster.raft.history import ControlHistory
from mainstem.cluster.raft.messages import Destination, Request, Token
from mainstem.cluster.raft.raft import Raft
from mainstem.cluster.snapshot import Snapshot, SnapshotId
from mainstem.cluster.topics_delta import ReplayError
from mainstem.protocol.apis.k52_vote import VoteRequest, VoteResponse
from mainstem.protocol.errors import ErrorCode, KafkaError, ProtocolError
from mainstem.protocol.primitives import Buffer

if TYPE_CHECKING:
    from mainstem.broker.quorum.connections import QuorumConnections

logger = logging.getLogger(__name__)

_PRE_VOTE_SINCE = 2
_STOP_SECONDS_MAX = 1.0


class Answerable(Protocol):
    """A request that waits for its answer, which comes once."""

    def __hash__(self) -> int: ...

    def reply(self, response: Any) -> None: ...


class QuorumListener(Protocol):
    """The metadata log: it replays what is committed, and appends while this node is active."""

    def appended(self, records: Buffer) -> None:
        """The core had whole batches appended, which may be undone as long as they are not committed."""

    def high_watermark_moved(self, high_watermark: int) -> None: ...

    def became_active(self, epoch: int) -> None: ...

    def resigned(self) -> None: ...

    def leader_changed(self, leader_id: int) -> None: ...

    def read_snapshot(self, snapshot_id: SnapshotId) -> Snapshot:
        """A snapshot file that is complete, for a thread; ProtocolError or ReplayError when it is damaged."""

    def snapshot_installed(self, snapshot: Snapshot) -> None:
        """The log begins behind this one now."""

    def failed(self, error: KafkaError) -> None:
        """The disk failed: nothing that is not committed ever will be, here."""


class QuorumDriver:
    """One node's part in the quorum. Used from one thread, the event loop's."""

    def __init__(
        self,
        raft: Raft,
        log: QuorumLog,
        connect: "Callable[[], QuorumConnections]",
        listener: QuorumListener,
        *,
        now_ms: Callable[[], int],
        steady_ms: Callable[[], int],
        on_fatal: Callable[[str], None],
    ) -> None:
        self._raft = raft
        self._log = log
        self._connect = connect
        self._connections: QuorumConnections | None = None  # until there is somebody to speak to
        self._listener = listener
        self._now_ms = now_ms
        self._steady_ms = steady_ms
        self._on_fatal = on_fatal
        # Whether this node decides: it leads, and has replayed all that was decided before.
        self.is_active = False
        self.high_watermark = 0
        self.failure: str | None = None
        self._subscribers: list[Callable[[], None]] = []
        self._events: deque[ev.Event] = deque()
        self._effects: deque[fx.Effect] = deque()
        self._notices: deque[Callable[[], None]] = deque()
        self._is_busy = False
        self._is_opening = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        self._flusher: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Future[None]] = set()
        self._finished: asyncio.Event | None = None
        self._upgrades: dict[Token, asyncio.Future[None]] = {}

    # ---- who leads

    @property
    def leader_id(self) -> int:
        """-1 while nobody is known."""
        return self._raft.leader_id

    @property
    def epoch(self) -> int:
        return self._raft.epoch

    @property
    def role(self) -> str:
        """As metrics show it."""
        return self._raft.role

    @property
    def history(self) -> ControlHistory:
        """What a snapshot has to say about the quorum."""
        return self._raft.history

    @property
    def _has_peers(self) -> bool:
        """Whether others can go on without this node."""
        return len(self._raft.voters) > 1 or not self._raft.is_voter

    def leader_address(self) -> tuple[str, int] | None:
        """Where the active controller listens for other nodes."""
        endpoint = self._raft.leader_endpoint
        return None if endpoint is None else (endpoint.host, endpoint.port)

    def subscribe(self, on_leader_changed: Callable[[], None]) -> None:
        """Call it whenever another node leads, or this one begins or ceases to decide."""
        self._subscribers.append(on_leader_changed)

    def activated(self) -> None:
        """The metadata log has replayed all that was decided before this node's epoch."""
        self.is_active = True
        self._tell_subscribers()

    # ---- opening and stopping

    def start(self) -> None:
        """Take up the part that the disk says. Who is alone in the quorum decides when this returns; OSError
        or KafkaError when the disk refuses.
        """
        self._is_opening = True
        self._handle(ev.Started())
        while not self._log.is_durable:
            self._log.log.flush(self._now_ms())
            self._handle(ev.Durable(self._log.end_offset))
        self._is_opening = False
        self._set_timer()

    async def stop(self) -> None:
        """Hand over, if this node leads, and let go of everybody."""
        if self.failure is None:
            finished = self._finished = asyncio.Event()
            self._handle(ev.Stop())
            if not finished.is_set():
                try:
                    await asyncio.wait_for(finished.wait(), _STOP_SECONDS_MAX)
                except TimeoutError:
                    pass  # nobody is there to take over
        self.close()
        await self.idle()

    def close(self) -> None:
        """Say and hear nothing more."""
        self.failure = self.failure or "the node has stopped"
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._connections is not None:
            self._connections.close()
        for waiting in self._upgrades.values():
            waiting.cancel()
        self._log.drop_fetched()

    async def idle(self) -> None:
        """Wait for what is under way on the disk."""
        while under_way := [*self._tasks, *([self._flusher] if self._flusher is not None else [])]:
            await asyncio.wait(under_way)

    # ---- what others want of it

    def ask(self, request: Request, version: int, token: Answerable, listener: str) -> None:
        """What another node, or a tool, asks. The token is answered once, now or later; never when this node
        is being stopped.
        """
        self._handle(ev.Asked(request, version, token, listener))

    def append(self, records: Buffer, epoch: int) -> None:
        """Write what the controller has decided in this epoch; `written` follows. KafkaError, and nothing has
        changed, when it does not lead (any more) or the disk refuses.
        """
        raft = self._raft
        if self.failure is not None or self._effects or not raft.is_active or raft.epoch != epoch:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "this node is not the active controller")
        try:
            self._log.append(records, self._now_ms())
        except KafkaError as error:
            if self._log.log.offline and self._has_peers:
                self.fail(error)  # others can decide, as soon as this node does not claim to
            raise

    def written(self) -> None:
        """What was appended may be replicated, and is durable soon."""
        self._handle(ev.Written(self._log.end_offset))
        self._make_durable()

    def snapshot_taken(self) -> None:
        self._log.snapshots_changed()
        self._handle(ev.SnapshotTaken())

    def resign(self) -> None:
        """The controller cannot go on."""
        self._handle(ev.Resign(self._raft.epoch))

    async def upgrade_kraft_version(self, level: int, *, validate_only: bool = False) -> None:
        """Finalize this level; KafkaError when that cannot be."""
        token = object()
        answer = self._upgrades[token] = asyncio.get_running_loop().create_future()
        try:
            self._handle(ev.UpgradeKRaftVersion(level, token, validate_only))
            await answer
        finally:
            del self._upgrades[token]

    # ---- events, one after the other

    def _handle(self, event: ev.Event) -> None:
        if self.failure is not None:
            return
        self._events.append(event)
        if not self._is_busy:
            self._run()

    def _run(self) -> None:
        """Go on until there is nothing to do, or until something has to be durable first."""
        self._is_busy = True
        try:
            while self.failure is None:
                if self._effects:
                    effect = self._effects.popleft()
                    if isinstance(effect, fx.StoreQuorumState) and not self._is_opening:
                        self._spawn(self._store(effect))
                        return
                    self._perform(effect)
                elif self._notices:
                    self._notices.popleft()()
                elif self._events:
                    self._effects.extend(self._raft.step(self._events.popleft(), self._steady_ms()))
                else:
                    break
        except Exception as error:
            if self._is_opening:
                raise
            self.fail(error)
        self._is_busy = False
        if not self._is_opening:
            self._set_timer()

    async def _store(self, effect: fx.StoreQuorumState) -> None:
        try:
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(None, self._log.store_quorum_state, effect.state)
        except OSError as error:
            self.fail(error)
        else:
            self._run()

    def fail(self, error: Exception) -> None:
        """This node takes part in nothing any more."""
        if self.failure is not None:
            return
        if isinstance(error, OSError):
            reason = f"the metadata log in {self._log.folder} failed: {error.strerror or error}"
        elif isinstance(error, KafkaError):
            reason = f"the metadata log in {self._log.folder} failed: {error.message}"
        elif isinstance(error, MetadataLogError):
            reason = str(error)
        else:
            logger.error("the quorum made a mistake", exc_info=error)
            reason = f"the quorum made a mistake: {error!r}"
        self.is_active = False
        self.close()
        self.failure = reason
        self._effects.clear()
        self._listener.failed(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, reason))
        self._on_fatal(reason)

    def _set_timer(self) -> None:
        deadline_ms = self._raft.deadline_ms
        if deadline_ms is None or self.failure is not None:
            return  # a timer that is set only looks once more
        if self._timer is not None:
            if self._timer_ms <= deadline_ms:
                return
            self._timer.cancel()
        self._timer_ms = deadline_ms
        delay_s = max(0, deadline_ms - self._steady_ms()) / 1000
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        deadline_ms = self._raft.deadline_ms
        if deadline_ms is not None and deadline_ms <= self._steady_ms():
            self._handle(ev.TimePassed())
        if not self._is_busy:
            self._set_timer()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # ---- effects

    def _perform(self, effect: fx.Effect) -> None:
        match effect:
            case fx.StoreQuorumState(state):
                self._log.store_quorum_state(state)
            case fx.Send(destination, request):
                self._send(destination, request)
            case fx.Reply(token, response):
                _answer(token, response)
            case fx.ReplyRecords():
                self._reply_records(effect)
            case fx.ReplySnapshotChunk():
                self._reply_snapshot(effect)
            case fx.Append(records):
                self._log.append(records, self._now_ms())
                self._listener.appended(records)
                self._make_durable()
            case fx.Truncate(offset):
                self._log.log.truncate_to(offset, self._now_ms())
            case fx.WriteSnapshotChunk(snapshot_id, position, data):
                self._log.write_fetched(snapshot_id, position, data)
            case fx.InstallSnapshot(snapshot_id):
                self._spawn(self._install(snapshot_id))
            case fx.DropSnapshot():
                self._log.drop_fetched()
            case fx.HighWatermark(offset):
                self.high_watermark = offset
                self._notices.append(partial(self._listener.high_watermark_moved, offset))
            case fx.LeaderChanged(leader_id):
                self._notices.append(partial(self._listener.leader_changed, leader_id))
                self._notices.append(self._tell_subscribers)
            case fx.BecameActive(epoch):
                self._notices.append(partial(self._listener.became_active, epoch))
            case fx.Resigned():
                self.is_active = False
                self._listener.resigned()
                self._notices.append(self._tell_subscribers)
            case fx.UpgradeAnswered(token, error, message):
                self._upgrade_answered(token, error, message)
            case fx.Finished():
                if self._finished is not None:
                    self._finished.set()

    def _tell_subscribers(self) -> None:
        for subscriber in self._subscribers:
            subscriber()

    def _send(self, destination: Destination, request: Request) -> None:
        from mainstem.wire.errors import ConnectionRefused, NotServed, WireError

        if self._connections is None:
            self._connections = self._connect()
        is_pre_vote = isinstance(request, VoteRequest) and request.topics[0].partitions[0].pre_vote

        def answered(outcome: Any) -> None:
            if not isinstance(outcome, WireError):
                self._handle(ev.Answered(destination, request, outcome))
            elif is_pre_vote and isinstance(outcome, NotServed):
                refusal = VoteResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
                self._handle(ev.Answered(destination, request, refusal))
            else:
                is_refused = isinstance(outcome, ConnectionRefused)
                self._handle(ev.Unanswered(destination, request, is_refused))

        version_min = _PRE_VOTE_SINCE if is_pre_vote else 0
        self._connections.send(destination, request, answered, version_min=version_min)

    def _reply_records(self, effect: fx.ReplyRecords) -> None:
        (partition,) = effect.response.responses[0].partitions
        try:
            partition.records = self._log.read(effect.from_offset, effect.max_bytes) or b""
        except KafkaError as error:
            partition.error_code, partition.records = error.code, b""
        _answer(effect.token, effect.response)

    def _reply_snapshot(self, effect: fx.ReplySnapshotChunk) -> None:
        (partition,) = effect.response.topics[0].partitions
        try:
            partition.unaligned_records = self._log.read_snapshot(
                effect.snapshot_id, effect.position, effect.max_bytes
            )
        except FileNotFoundError:
            partition.error_code, partition.unaligned_records = ErrorCode.SNAPSHOT_NOT_FOUND, b""
        _answer(effect.token, effect.response)

    def _upgrade_answered(self, token: Token, error: ErrorCode, message: str) -> None:
        answer = self._upgrades.get(token)
        if answer is None or answer.done():
            return  # whoever waited was cancelled
        if error == ErrorCode.NONE:
            answer.set_result(None)
        else:
            answer.set_exception(KafkaError(error, message))

    # ---- what takes its time on the disk

    def _make_durable(self) -> None:
        if self._flusher is None and not self._is_opening and not self._log.is_durable:
            self._flusher = asyncio.get_running_loop().create_task(self._flush())

    async def _flush(self) -> None:
        """Fsync until everything that is written is durable. What comes meanwhile shares the next fsync."""
        log, loop = self._log.log, asyncio.get_running_loop()
        try:
            while not self._log.is_durable:
                work = log.flush_begin()
                await loop.run_in_executor(None, work.run)
                self._handle(ev.Durable(log.flush_end(work, self._now_ms())))
        except KafkaError as error:
            self._flush_failed(error)
        finally:
            self._flusher = None

    def _flush_failed(self, error: KafkaError) -> None:
        """The directory is offline now: nothing more is written."""
        if self._has_peers:
            self.fail(error)
        else:
            # Nobody else can take over, and what is known already is still right.
            self._listener.failed(error)

    async def _install(self, snapshot_id: SnapshotId) -> None:
        loop = asyncio.get_running_loop()
        try:
            writer = self._log.take_fetched()
            try:
                await loop.run_in_executor(None, writer.finish)
            finally:
                writer.close()
            try:
                snapshot = await loop.run_in_executor(None, self._listener.read_snapshot, snapshot_id)
            except (ProtocolError, ReplayError) as error:
                logger.error("the snapshot %s that was fetched cannot be used: %s", snapshot_id, error)
                self._log.snapshots.remove(snapshot_id)
                self._handle(ev.SnapshotUnusable(snapshot_id))
                return
            self._log.begin_at(snapshot_id, self._now_ms())
            self._listener.snapshot_installed(snapshot)
        except (OSError, KafkaError) as error:
            self.fail(error)
            return
        self._handle(ev.SnapshotInstalled(snapshot_id, snapshot.kraft_version, snapshot.voters))


def _answer(token: Token, response: Any) -> None:
    assert hasattr(token, "reply"), "it was asked with something that can be answered"
    token.reply(response)
