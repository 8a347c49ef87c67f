"""A whole quorum on virtual time: nodes, the network between them, a workload, and what goes wrong. What
happens depends on the seed alone.
"""

import random
from collections.abc import Callable
from typing import Any

from mainstem.cluster.raft import events
from mainstem.cluster.raft.control_records import (
    KRaftVersionFeature,
    VoterEndpoint,
    VoterEntry,
    VotersRecord,
)
from mainstem.cluster.raft.effects import UpgradeAnswered
from mainstem.cluster.raft.messages import Request, Response
from mainstem.cluster.raft.settings import RaftSettings
from mainstem.cluster.raft.voters import VoterSet
from mainstem.cluster.snapshot import SnapshotId
from mainstem.protocol import codec
from mainstem.protocol.registry import API_KEYS
from tests.sim.raft.checks import Checker
from tests.sim.raft.disk import Disk, Snapshot
from tests.sim.raft.node import LISTENER, Node, Token
from tests.sim.raft.virtual_time import Network, Schedule
from tests.sim.seeds import Violation

CALM_MS = 30_000


class World:
    def __init__(
        self, seed: int, *, voters: int, observers: int = 0, dynamic: bool = False, auto_join: bool = False
    ) -> None:
        self.random = random.Random(seed)
        self.schedule = Schedule()
        self.network = Network(self.schedule, self.random)
        self.settings = RaftSettings(auto_join=auto_join)
        # Whether messages are written and read again; it takes time and changes nothing.
        self.encoded = seed % 8 == 0
        # How much of what is fetched is damaged on the way.
        self.damaged = 0.0
        self.trace: list[str] | None = None
        self.tool_answers: list[tuple[Any, Any]] = []
        ids = range(1, voters + observers + 1)
        self.disks = [Disk(node_id, directory_id(node_id)) for node_id in ids]
        self.nodes = {disk.node_id: Node(self, disk) for disk in self.disks}
        self.checker = Checker(self)
        self.bootstrap_servers = [] if not dynamic else [self._address(node) for node in self.nodes.values()]
        first = [self.nodes[node_id] for node_id in range(1, voters + 1)]
        if dynamic:
            self.static_voters = VoterSet()
            formatted = Snapshot(
                SnapshotId(0, 0), 0, 1, VotersRecord(voters=[entry_of(node) for node in first])
            )
            for node in first:
                node.disk.snapshots.append(formatted)
        else:
            self.static_voters = VoterSet.static(((n.id, *self._address(n)) for n in first), LISTENER)

    # ---- what nodes use

    def at(self, host: str, port: int) -> Node | None:
        """Who is reached there."""
        return next((node for node in self.nodes.values() if self._address(node) == (host, port)), None)

    def over_the_wire(self, message: Request | Response) -> tuple[Any, int]:
        """The message as its receiver reads it, and its version."""
        schema: Any = message.SCHEMA
        version = API_KEYS[schema.api_key].max_version
        if self.encoded:
            return codec.decode(type(message), version, codec.encode(message, version)), version
        return message, version

    def random_ms(self, node: Node) -> Callable[[int], int]:
        """The randomness that a node's core gets."""
        return self.random.randrange

    def tool_answered(self, token: Any, answer: Response | UpgradeAnswered) -> None:
        self.tool_answers.append((token, answer))

    def say(self, node: Node, what: object) -> None:
        if self.trace is not None:
            self.trace.append(f"{self.schedule.now_ms:6} node {node.id}: {what}")

    @staticmethod
    def _address(node: Node) -> tuple[str, int]:
        return node.endpoint.host, node.endpoint.port

    # ---- what a test does

    def start(self) -> None:
        for node in self.nodes.values():
            node.start()

    def run(self, duration_ms: int) -> None:
        self.schedule.run_until(self.schedule.now_ms + duration_ms)

    def run_until(self, condition: Callable[[], bool], limit_ms: int) -> bool:
        end_ms = self.schedule.now_ms + limit_ms
        while not condition() and self.schedule.now_ms < end_ms:
            self.run(10)
        return condition()

    @property
    def up(self) -> list[Node]:
        """Those that run, and are not paused."""
        return [node for node in self.nodes.values() if node.is_up and not node.is_paused]

    @property
    def active(self) -> list[Node]:
        return [node for node in self.up if node.raft is not None and node.raft.is_active]

    def append(self, text: str) -> None:
        """Each node that takes itself for the active controller decides something."""
        for node in self.active:
            node.append(f"{text} at {node.id}")

    def ask(self, node: Node, request: Request) -> Token:
        """A tool asks a node."""
        token = Token(None, 0, request)
        node.ask(token)
        return token

    def upgrade(self, node: Node) -> None:
        node.tell(events.UpgradeKRaftVersion(1, Token(None, 0, None)))  # type: ignore[arg-type]

    def calm_down(self) -> None:
        """Everything works again: then there is one leader soon, and everybody follows it."""
        self.network.heal()
        self.damaged = 0.0
        for node in self.nodes.values():
            node.fsync_ms_max = 5
            node.go_on()
            if not node.is_up:
                node.start()
        end_ms = self.schedule.now_ms + CALM_MS
        while not self._goes_on():
            if self.schedule.now_ms >= end_ms:
                raise Violation(f"no liveness: after {CALM_MS} ms of calm {self._views()}")

    def _goes_on(self) -> bool:
        """Whether one leads, and everybody gets what it decides. A leader that is no voter any more may take
        its last decisions with it.
        """
        if not self.run_until(self._is_settled, CALM_MS):
            return False
        self.append("after the storm")
        target = max(node.disk.end_offset for node in self.active)
        return self.run_until(lambda: all(self._knows(node, target) for node in self.up), 2000)

    def _is_settled(self) -> bool:
        active = self.active
        if len(active) != 1 or active[0].raft is None:
            return False
        view = (active[0].id, active[0].raft.epoch)
        return all(
            node.raft is not None and (node.raft.leader_id, node.raft.epoch) == view for node in self.up
        )

    def _knows(self, node: Node, offset: int) -> bool:
        raft = node.raft
        return raft is not None and raft.high_watermark is not None and raft.high_watermark >= offset

    def _views(self) -> list[tuple[Any, ...]]:
        return [
            (node.id, raft.role, raft.epoch, raft.leader_id, raft.high_watermark, node.disk.end_offset)
            for node in self.up
            if (raft := node.raft) is not None
        ]


def directory_id(number: int) -> bytes:
    return b"\x11" + number.to_bytes(15)


def entry_of(node: Node) -> VoterEntry:
    endpoint = node.endpoint
    return VoterEntry(
        node.id,
        node.disk.directory_id,
        [VoterEndpoint(endpoint.listener, endpoint.host, endpoint.port)],
        KRaftVersionFeature(0, 1),
    )
