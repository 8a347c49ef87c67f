"""A simulated node: the driver of one raft core. It performs the core's effects on a simulated disk and
network, and tells the checker of each before anybody else can see it.
"""

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from mainstem.cluster.batches import data_batch
from mainstem.cluster.raft import effects as does
from mainstem.cluster.raft import events
from mainstem.cluster.raft.history import ControlHistory
from mainstem.cluster.raft.messages import Destination, Request, Response
from mainstem.cluster.raft.raft import Identity, Raft
from mainstem.cluster.raft.voters import Endpoint, ReplicaKey
from mainstem.protocol.apis.k01_fetch import FetchResponse
from mainstem.protocol.apis.k18_api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    SupportedFeatureKey,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.records.batch import HEADER_SIZE
from tests.sim.raft.disk import Disk, Snapshot

if TYPE_CHECKING:
    from tests.sim.raft.world import World

LISTENER = "CONTROLLER"
CLUSTER_ID = "the-cluster"
# Small, so that a snapshot comes in several pieces.
CHUNK_BYTES_MAX = 150


class Token:
    """Who asked, in which life, and which of its requests that was."""

    __slots__ = ("answered", "asker", "life", "number", "request")

    def __init__(self, asker: "Node | None", number: int, request: Request) -> None:
        self.asker = asker
        self.life = asker.life if asker is not None else 0
        self.number = number
        self.request = request
        self.answered = False


class Node:
    def __init__(self, world: "World", disk: Disk) -> None:
        self.world = world
        self.id = disk.node_id
        self.disk = disk
        self.port = 9000 + self.id
        # Counts the starts; what belongs to an earlier life does not happen any more.
        self.life = 0
        self.raft: Raft | None = None
        self.fsync_ms_min = 1
        self.fsync_ms_max = 5
        self.finished = False
        self._paused = False
        self._held: list[Callable[[], None]] = []
        self._under_way: dict[int, tuple[Destination, Request]] = {}
        self._requests = 0
        self._truncations = 0
        self._alarm: int | None = None
        self._perform: dict[type, Callable[[Any], None]] = {
            does.StoreQuorumState: self._store_quorum_state,
            does.Send: self._send,
            does.Reply: self._reply,
            does.ReplyRecords: self._reply_records,
            does.ReplySnapshotChunk: self._reply_snapshot_chunk,
            does.Append: self._append,
            does.Truncate: self._truncate,
            does.WriteSnapshotChunk: self._write_snapshot_chunk,
            does.InstallSnapshot: self._install_snapshot,
            does.DropSnapshot: self._drop_snapshot,
            does.HighWatermark: self._high_watermark,
            does.LeaderChanged: self._leader_changed,
            does.BecameActive: self._became_active,
            does.Resigned: self._resigned,
            does.UpgradeAnswered: self._upgrade_answered,
            does.Finished: self._finished,
        }

    @property
    def is_up(self) -> bool:
        return self.raft is not None

    @property
    def is_paused(self) -> bool:
        return self._paused

    @property
    def leads(self) -> bool:
        return self.raft is not None and self.raft.is_leader

    @property
    def is_voter(self) -> bool:
        return self.raft is not None and self.raft.is_voter

    @property
    def replica(self) -> ReplicaKey:
        return ReplicaKey(self.id, self.disk.directory_id)

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(LISTENER, f"host-{self.id}", self.port)

    # ---- its life

    def start(self) -> None:
        assert self.raft is None
        self.life += 1
        self.finished = False
        disk = self.disk
        disk.sync(disk.end_offset)
        history = ControlHistory(self.world.static_voters)
        if disk.snapshots:
            newest = disk.snapshots[-1]
            history.load_snapshot(newest.id.offset, newest.kraft_version, newest.voters)
        for offset, record in disk.quorum_records():
            history.append(offset, record)
        self.raft = Raft(
            Identity(
                self.replica, CLUSTER_ID, (self.endpoint,), LISTENER, tuple(self.world.bootstrap_servers)
            ),
            self.world.settings,
            disk,
            history,
            disk.quorum_state,
            self.world.random_ms(self),
        )
        self.world.checker.started(self)
        self.tell(events.Started())

    def kill(self) -> None:
        """The process is gone; its disk is as it is. The machine tells those who have connections."""
        for other in self.world.nodes.values():
            for number in other.waits_for(self):
                self.world.network.carry(
                    self.id, other.id, partial(other.connection_broke, other.life, number)
                )
        self.vanish()

    def vanish(self) -> None:
        """The whole machine is gone: nobody hears of it."""
        self.raft = None
        self.life += 1
        self._paused = False
        self._held.clear()
        self._under_way.clear()
        self._alarm = None
        self.world.checker.died(self)

    def pause(self) -> None:
        self._paused = True

    def go_on(self) -> None:
        self._paused = False
        self.world.checker.went_on(self)
        held, self._held = self._held, []
        for action in held:
            action()

    def later(self, delay_ms: int, action: Callable[[], None]) -> None:
        """In this life, and not while it is paused."""
        life = self.life

        def happen() -> None:
            if self.life != life:
                return
            if self._paused:
                self._held.append(happen)
            else:
                action()

        self.world.schedule.after(delay_ms, happen)

    def tell(self, event: events.Event) -> None:
        raft = self.raft
        assert raft is not None
        now_ms = self.world.schedule.now_ms
        self.world.say(self, event)
        for effect in raft.step(event, now_ms):
            self.world.say(self, effect)
            self._perform[type(effect)](effect)
        self.world.checker.stepped(self)
        deadline = raft.deadline_ms
        if deadline is not None and (self._alarm is None or deadline < self._alarm):
            self._alarm = deadline
            self.later(max(0, deadline - now_ms), lambda: self._time_passed(deadline))

    def _time_passed(self, deadline_ms: int) -> None:
        if self._alarm == deadline_ms:
            self._alarm = None
            self.tell(events.TimePassed())

    # ---- the controller's part

    def append(self, text: str) -> None:
        """The controller of this node decides something."""
        raft = self.raft
        assert raft is not None, "it is down"
        assert raft.is_active
        records = data_batch(
            [text.encode()],
            base_offset=self.disk.end_offset,
            epoch=raft.epoch,
            timestamp_ms=self.world.schedule.now_ms,
        )
        self._write(records)
        self.tell(events.Written(self.disk.end_offset))
        self._sync_soon()

    def take_snapshot(self) -> None:
        raft = self.raft
        assert raft is not None
        if raft.high_watermark is not None and self.disk.take_snapshot(raft.high_watermark):
            self.tell(events.SnapshotTaken())

    def trim(self) -> None:
        if self.disk.trim():
            self.tell(events.SnapshotTaken())

    # ---- disk

    def _store_quorum_state(self, effect: does.StoreQuorumState) -> None:
        self.world.checker.stores(self, effect.state)
        self.disk.quorum_state = effect.state

    def _append(self, effect: does.Append) -> None:
        self._write(effect.records)
        assert self.disk.end_offset == effect.end_offset
        self._sync_soon()

    def _write(self, records: Any) -> None:
        for batch in self.disk.append(records):
            self.world.checker.appended(self, batch)

    def _truncate(self, effect: does.Truncate) -> None:
        self._truncations += 1
        self.world.checker.truncated(self, self.disk.truncate(effect.offset))

    def _sync_soon(self) -> None:
        target, truncations = self.disk.end_offset, self._truncations

        def synced() -> None:
            if self._truncations != truncations:
                self._sync_soon()  # what was synced may have been another log
                return
            self.disk.sync(target)
            self.tell(events.Durable(target))

        self.later(self.world.random.randint(self.fsync_ms_min, self.fsync_ms_max), synced)

    def _write_snapshot_chunk(self, effect: does.WriteSnapshotChunk) -> None:
        if effect.position == 0:
            self.disk.fetched[effect.snapshot_id] = bytearray()
        fetched = self.disk.fetched[effect.snapshot_id]
        assert len(fetched) == effect.position
        fetched += effect.data

    def _install_snapshot(self, effect: does.InstallSnapshot) -> None:
        def installed() -> None:
            data = bytes(self.disk.fetched.pop(effect.snapshot_id))
            if self.world.random.random() < self.world.damaged:
                self.tell(events.SnapshotUnusable(effect.snapshot_id))
                return
            snapshot = Snapshot.decode(data)
            assert snapshot.id == effect.snapshot_id
            self._truncations += 1
            self.disk.install(snapshot)
            self.world.checker.installed(self, snapshot)
            self.tell(events.SnapshotInstalled(snapshot.id, snapshot.kraft_version, snapshot.voters))

        self.later(self.world.random.randint(0, self.fsync_ms_max), installed)

    def _drop_snapshot(self, effect: does.DropSnapshot) -> None:
        self.disk.fetched.pop(effect.snapshot_id, None)

    # ---- network

    def _send(self, effect: does.Send) -> None:
        self.world.checker.says(self, effect.request, None)
        self._requests += 1
        number = self._requests
        self._under_way[number] = (effect.destination, effect.request)
        destination = effect.destination
        target = self.world.at(destination.host, destination.port)
        token = Token(self, number, effect.request)
        if target is not None:
            self.world.network.carry(self.id, target.id, lambda: target.asked_by(self, token))
        else:
            self._refused(number)
        self.later(self.world.settings.request_timeout_ms, lambda: self._unanswered(number, refused=False))

    def _refused(self, number: int) -> None:
        self.later(1, lambda: self._unanswered(number, refused=True))

    def _unanswered(self, number: int, *, refused: bool) -> None:
        if (asked := self._under_way.pop(number, None)) is not None:
            self.tell(events.Unanswered(*asked, refused=refused))

    def asked_by(self, asker: "Node", token: Token) -> None:
        """A request arrives."""
        if not self.is_up:
            if asker.life == token.life:
                self.world.network.carry(self.id, asker.id, lambda: asker.hears_refusal(token))
            return
        # A token is used once, even if the request comes twice.
        self.later(0, lambda: self.ask(copy(token)))

    def waits_for(self, target: "Node") -> list[int]:
        """The requests that a node has not answered yet."""
        place = (target.endpoint.host, target.endpoint.port)
        return [number for number, (to, _) in self._under_way.items() if (to.host, to.port) == place]

    def connection_broke(self, life: int, number: int) -> None:
        if self.life == life:
            self.later(0, lambda: self._unanswered(number, refused=False))

    def hears_refusal(self, token: Token) -> None:
        if self.life == token.life:
            self._refused(token.number)

    def ask(self, token: Token) -> None:
        if isinstance(token.request, ApiVersionsRequest):
            features = [SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)]
            self._answer(token, ApiVersionsResponse(supported_features=features))
            return
        request, version = self.world.over_the_wire(token.request)
        self.world.checker.hears(self, request)
        self.tell(events.Asked(request, version, token, LISTENER))

    def _reply(self, effect: does.Reply) -> None:
        self._answer(effect.token, effect.response)

    def _reply_records(self, effect: does.ReplyRecords) -> None:
        records = self.disk.read(effect.from_offset, effect.max_bytes)
        effect.response.responses[0].partitions[0].records = records
        self._answer(effect.token, effect.response)

    def _reply_snapshot_chunk(self, effect: does.ReplySnapshotChunk) -> None:
        partition = effect.response.topics[0].partitions[0]
        snapshot = self.disk.snapshot(effect.snapshot_id)
        if snapshot is None:
            partition.error_code = ErrorCode.SNAPSHOT_NOT_FOUND
        else:
            end = effect.position + min(effect.max_bytes, CHUNK_BYTES_MAX)
            partition.unaligned_records = snapshot.encode()[effect.position : end]
        self._answer(effect.token, effect.response)

    def _answer(self, token: Any, response: Response) -> None:
        assert isinstance(token, Token)
        self.world.checker.says(self, response, token.request)
        asker = token.asker
        if asker is None:
            assert not token.answered, "a tool is answered twice"
            token.answered = True
            self.world.tool_answered(token, response)
        else:
            self.world.network.carry(self.id, asker.id, lambda: asker.answered_by(token, response))

    def answered_by(self, token: Token, response: Response) -> None:
        """An answer arrives."""
        if self.life == token.life:
            self.later(0, lambda: self._take_answer(token, response))

    def _take_answer(self, token: Token, response: Response) -> None:
        if (asked := self._under_way.pop(token.number, None)) is not None:
            response = self.world.over_the_wire(response)[0]
            if isinstance(response, FetchResponse) and self.world.random.random() < self.world.damaged:
                response = _damaged(response)
            self.tell(events.Answered(*asked, response))

    # ---- what the controller hears

    def _high_watermark(self, effect: does.HighWatermark) -> None:
        self.world.checker.committed(self, effect.offset)

    def _leader_changed(self, effect: does.LeaderChanged) -> None:
        self.world.checker.leader_changed(self, effect.leader_id, effect.epoch)

    def _became_active(self, effect: does.BecameActive) -> None:
        self.world.checker.became_active(self, effect.epoch)

    def _resigned(self, effect: does.Resigned) -> None:
        self.world.checker.resigned(self, effect.epoch)

    def _upgrade_answered(self, effect: does.UpgradeAnswered) -> None:
        self.world.tool_answered(effect.token, effect)

    def _finished(self, _effect: does.Finished) -> None:
        self.finished = True


def _damaged(response: FetchResponse) -> FetchResponse:
    """The response with one bit of its first batch turned, where the checksum covers it."""
    if not response.responses or not response.responses[0].partitions:
        return response
    (topic,) = response.responses
    (partition,) = topic.partitions
    records: Any = partition.records
    damaged = bytearray(records or b"")
    if len(damaged) > HEADER_SIZE:
        damaged[HEADER_SIZE] ^= 1
    return replace(response, responses=[replace(topic, partitions=[replace(partition, records=damaged)])])
