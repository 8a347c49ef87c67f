"""A few replicas in one test: they talk over a network with virtual time, and can be killed and cut off.

Everything that the core must never do is checked at every step.
"""

import heapq
import random
from collections.abc import Callable
from functools import partial
from itertools import count

from msgspec import Struct
from msgspec.structs import replace

from mainstem.cluster.raft import effects, events
from mainstem.cluster.raft.control_records import KRaftVersionFeature
from mainstem.cluster.raft.messages import Destination, Request, Response
from mainstem.cluster.raft.quorum_state import QuorumState
from mainstem.cluster.raft.raft import Identity, Raft
from mainstem.cluster.raft.settings import RaftSettings
from mainstem.cluster.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from mainstem.cluster.snapshot import SnapshotId
from mainstem.protocol import codec
from mainstem.protocol.apis.k18_api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    SupportedFeatureKey,
)
from tests.cluster.raft.memory_log import MemoryLog, StoredSnapshot

LISTENER = "CONTROLLER"
CLUSTER_ID = "a-cluster"
VERSIONS = {1: 18, 18: 4, 52: 2, 53: 1, 54: 1, 55: 2, 59: 1, 80: 1, 81: 0, 82: 0}
START_MS = 1_000_000
NO_VOTERS = VoterSet()


def directory(node_id: int, number: int = 0) -> bytes:
    return bytes([7, number, *[0] * 13, node_id])


def endpoint(node_id: int) -> Endpoint:
    return Endpoint(LISTENER, f"node-{node_id}", 9000 + node_id)


def voter(node_id: int, number: int = 0) -> Voter:
    key = ReplicaKey(node_id, directory(node_id, number))
    return Voter(key, (endpoint(node_id),), KRaftVersionFeature(0, 1))


def static(*ids: int) -> VoterSet:
    return VoterSet.static([(node_id, f"node-{node_id}", 9000 + node_id) for node_id in ids], LISTENER)


class Disk:
    """What survives a kill."""

    def __init__(self, number: int = 0) -> None:
        self.log = MemoryLog()
        self.state: QuorumState | None = None
        self.number = number

    def format(self, voters: VoterSet) -> None:
        """As a format step with voters leaves it."""
        self.log.snapshots[SnapshotId(0, 0)] = StoredSnapshot(b"empty", 1, voters.to_record())


class Node:
    """One replica with its disk."""

    def __init__(
        self, world: "World", node_id: int, disk: Disk, static_voters: VoterSet, **more: object
    ) -> None:
        self.world, self.node_id, self.disk = world, node_id, disk
        self.told: list[effects.Effect] = []
        self.committed = 0
        self.is_alive = True
        self._chunks: dict[SnapshotId, bytes] = {}
        is_controller = bool(more.get("is_controller", True))
        identity = Identity(
            ReplicaKey(node_id, directory(node_id, disk.number)),
            str(more.get("cluster_id", CLUSTER_ID)),
            (endpoint(node_id),) if is_controller else (),
            LISTENER,
            tuple((f"node-{each}", 9000 + each) for each in world.bootstrap),
        )
        self.raft = Raft(
            identity,
            world.settings if is_controller else replace(world.settings, auto_join=False),
            disk.log,
            disk.log.history(static_voters),
            disk.state,
            world.random.randrange,
        )

    def tell(self, event: events.Event) -> None:
        role = self.raft.role
        performed = self.raft.step(event, self.world.now_ms)
        if self.raft.role != role:
            self.world.heard.append((self.world.now_ms, self, f"is {self.raft.role}"))
        for effect in performed:
            self.world.heard.append((self.world.now_ms, self, effect))
            self._perform(effect)
        self.world.check(self)

    def append(self, value: bytes) -> int:
        """What the controller of the leader does."""
        end_offset = self.disk.log.append_value(value, self.raft.epoch)
        self.tell(events.Written(end_offset))
        self._sync()
        return end_offset

    def of(self, kind: type) -> list[effects.Effect]:
        return [effect for effect in self.told if type(effect) is kind]

    def _sync(self) -> None:
        """An fsync takes a while and covers what was written when it began."""
        log, end_offset = self.disk.log, self.disk.log.end_offset

        def done() -> None:
            log.durable_offset = max(log.durable_offset, min(end_offset, log.end_offset))
            self.tell(events.Durable(end_offset))

        self.world.later(self.world.fsync_ms, self, done)

    def _perform(self, effect: effects.Effect) -> None:
        self.told.append(effect)
        disk, world = self.disk, self.world
        match effect:
            case effects.StoreQuorumState(state):
                disk.state = state
            case effects.Append(records, end_offset):
                disk.log.append(bytes(records))
                assert disk.log.end_offset == end_offset
                self._sync()
            case effects.Truncate(offset):
                disk.log.truncate(offset)
            case effects.HighWatermark(offset):
                assert offset > self.committed or offset == 0
                self.committed = offset
            case effects.Send(destination, request):
                world.send(self, destination, request)
            case effects.Reply(token, response):
                world.answer(self, token, response)
            case effects.ReplyRecords(token, response, from_offset, max_bytes):
                response.responses[0].partitions[0].records = disk.log.read(from_offset, max_bytes)
                world.answer(self, token, response)
            case effects.ReplySnapshotChunk(token, response, snapshot_id, position, max_bytes):
                data = disk.log.snapshots[snapshot_id].data
                response.topics[0].partitions[0].unaligned_records = data[position : position + max_bytes]
                world.answer(self, token, response)
            case effects.WriteSnapshotChunk(snapshot_id, position, data):
                so_far = self._chunks.get(snapshot_id, b"") if position else b""
                assert len(so_far) == position
                self._chunks[snapshot_id] = so_far + bytes(data)
            case effects.DropSnapshot(snapshot_id):
                self._chunks.pop(snapshot_id, None)
            case effects.InstallSnapshot(snapshot_id):
                self._install(snapshot_id)

    def _install(self, snapshot_id: SnapshotId) -> None:
        data = self._chunks.pop(snapshot_id)
        stored = self.world.snapshots.get(data)
        if stored is None:
            self.world.later(1, self, lambda: self.tell(events.SnapshotUnusable(snapshot_id)))
            return

        def done() -> None:
            log = self.disk.log
            log.snapshots = {snapshot_id: stored}
            log.start_at(snapshot_id)
            self.tell(events.SnapshotInstalled(snapshot_id, stored.kraft_version, stored.voters))

        self.world.later(5, self, done)


class _Question(Struct, frozen=True, eq=False):
    source: Node
    destination: Destination
    request: Request
    sent: Request


class World:
    """The nodes and what lies between them."""

    def __init__(self, seed: int = 1, settings: RaftSettings | None = None) -> None:
        self.settings = settings or RaftSettings()
        self.random = random.Random(seed)
        self.now_ms = START_MS
        self.latency_ms = 1
        self.fsync_ms = 2
        self.bootstrap: tuple[int, ...] = ()
        self.nodes: dict[int, Node] = {}
        self.cuts: set[tuple[int, int]] = set()
        # A snapshot's bytes stand for what its control records say.
        self.snapshots: dict[bytes, StoredSnapshot] = {}
        self.client_answers: list[Response] = []
        # Who did what when.
        self.heard: list[tuple[int, Node, str | effects.Effect]] = []
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._numbers = count()
        # What was sent to a node on connections that break when it is killed.
        self._open: dict[int, list[tuple[Node, Destination, Request]]] = {}
        self._leaders: dict[int, int] = {}
        self._committed: dict[int, tuple[int, bytes]] = {}

    # ---- the nodes

    def start(
        self, node_id: int, voters: VoterSet = NO_VOTERS, disk: Disk | None = None, **more: object
    ) -> Node:
        """Start a node, for the first time or again, on its disk or another."""
        old = self.nodes.get(node_id)
        assert old is None or not old.is_alive
        node = Node(self, node_id, disk or (old.disk if old else Disk()), voters, **more)
        self.nodes[node_id] = node
        node.tell(events.Started())
        return node

    def kill(self, node_id: int) -> None:
        node = self.nodes[node_id]
        node.is_alive = False
        node.disk.log.crash()
        for source, destination, request in self._open.pop(node_id, []):
            if (source.node_id, node_id) not in self.cuts:
                broken = events.Unanswered(destination, request)
                self.later(self.latency_ms, source, partial(source.tell, broken))

    def leader(self) -> Node:
        """The active one of the newest epoch."""
        active = [node for node in self.alive() if node.raft.is_active]
        assert active, "nobody leads"
        return max(active, key=lambda node: node.raft.epoch)

    def has_leader(self) -> bool:
        return any(node.raft.is_active for node in self.alive())

    def alive(self) -> list[Node]:
        return [node for node in self.nodes.values() if node.is_alive]

    def cut(self, one: int, other: int) -> None:
        self.cuts |= {(one, other), (other, one)}

    def isolate(self, node_id: int) -> None:
        for other in self.nodes:
            self.cut(node_id, other)

    # ---- time and the network

    def later(self, wait_ms: int, node: Node, call: Callable[[], None]) -> None:
        def run() -> None:
            if node.is_alive:
                call()

        heapq.heappush(self._queue, (self.now_ms + wait_ms, next(self._numbers), run))

    def send(self, source: Node, destination: Destination, request: Request) -> None:
        target = self.nodes.get(destination.port - 9000)
        if target is not None and (source.node_id, target.node_id) in self.cuts:
            return
        if target is None or not target.is_alive:
            refused = events.Unanswered(destination, request, refused=True)
            self.later(self.latency_ms, source, lambda: source.tell(refused))
            return
        self._open.setdefault(target.node_id, []).append((source, destination, request))
        version = VERSIONS[request.SCHEMA.api_key]
        received = codec.decode(type(request), version, codec.encode(request, version))
        question = _Question(source, destination, received, request)
        if isinstance(request, ApiVersionsRequest):
            feature = SupportedFeatureKey("kraft.version", 0, 1)
            answer = ApiVersionsResponse(supported_features=[feature])
            self.later(self.latency_ms, target, lambda: self.answer(target, question, answer))
            return
        asked = events.Asked(received, version, question, LISTENER)
        self.later(self.latency_ms, target, lambda: target.tell(asked))

    def answer(self, source: Node, token: object, response: Response) -> None:
        version = VERSIONS[response.SCHEMA.api_key]
        received = codec.decode(type(response), version, codec.encode(response, version))
        if not isinstance(token, _Question):
            self.client_answers.append(received)
            return
        if (source.node_id, token.source.node_id) in self.cuts:
            return
        answered = events.Answered(token.destination, token.sent, received)
        self.later(self.latency_ms, token.source, lambda: token.source.tell(answered))

    def ask(self, node: Node, request: Request) -> None:
        """As a tool asks; the answer comes to `client_answers`."""
        node.tell(
            events.Asked(request, VERSIONS[request.SCHEMA.api_key], ("tool", next(self._numbers)), LISTENER)
        )

    def turn(self) -> None:
        """The next thing that happens anywhere."""
        deadlines = [
            (node.raft.deadline_ms, node.node_id)
            for node in self.alive()
            if node.raft.deadline_ms is not None
        ]
        next_ms = self._queue[0][0] if self._queue else None
        if deadlines and (next_ms is None or min(deadlines)[0] < next_ms):
            at_ms, node_id = min(deadlines)
            self.now_ms = max(self.now_ms, at_ms)
            self.nodes[node_id].tell(events.TimePassed())
            return
        assert next_ms is not None, "nothing will ever happen"
        self.now_ms, _, run = heapq.heappop(self._queue)
        run()

    def run(self, wait_ms: int) -> None:
        end_ms = self.now_ms + wait_ms
        while self._next_ms() <= end_ms:
            self.turn()
        self.now_ms = end_ms

    def until(self, condition: Callable[[], bool], limit_ms: int = 20_000) -> int:
        """How long it took."""
        begin_ms = self.now_ms
        while not condition():
            assert self.now_ms - begin_ms <= limit_ms, "it did not happen in time"
            self.turn()
        return self.now_ms - begin_ms

    def _next_ms(self) -> int:
        times = [node.raft.deadline_ms for node in self.alive() if node.raft.deadline_ms is not None]
        times += [self._queue[0][0]] if self._queue else []
        return min(times, default=self.now_ms + 10**9)

    # ---- what must always hold

    def check(self, node: Node) -> None:
        if node.raft.is_leader:
            assert self._leaders.setdefault(node.raft.epoch, node.node_id) == node.node_id, "two leaders"
            assert node.disk.state == QuorumState(node.node_id, node.raft.epoch)
        assert node.disk.state is None or node.disk.state.leader_epoch <= node.raft.epoch
        for batch in node.disk.log.batches:
            if batch.end_offset <= node.committed:
                known = self._committed.setdefault(batch.base_offset, (batch.epoch, batch.data))
                assert known == (batch.epoch, batch.data), "what is committed was changed"


def cluster(*ids: int, seed: int = 1, settings: RaftSettings | None = None, dynamic: bool = True) -> World:
    """Nodes that begin together: formatted with voters, or with controller.quorum.voters."""
    world = World(seed, settings)
    world.bootstrap = ids
    for node_id in ids:
        disk = Disk()
        if dynamic:
            disk.format(VoterSet.of(voter(each) for each in ids))
        world.start(node_id, VoterSet() if dynamic else static(*ids), disk)
    return world


def replicated(world: World, value: bytes = b"x") -> None:
    """Append at the leader and wait until everybody alive knows that it is committed."""
    leader = world.leader()
    end_offset = leader.append(value)
    world.until(lambda: all(node.committed >= end_offset for node in world.alive()))
