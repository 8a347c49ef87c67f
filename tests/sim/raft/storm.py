"""What goes wrong in a simulated quorum: each seed chooses which kinds of trouble there are, and when."""

from collections.abc import Callable

from mainstem.cluster.raft import events
from mainstem.protocol.apis.k80_add_raft_voter import AddRaftVoterRequest
from mainstem.protocol.apis.k80_add_raft_voter import Listener as AddListener
from mainstem.protocol.apis.k81_remove_raft_voter import RemoveRaftVoterRequest
from tests.sim.raft.checks import voters_on_disk
from tests.sim.raft.disk import Disk
from tests.sim.raft.node import CLUSTER_ID, Node
from tests.sim.raft.world import World, directory_id

_APPEND_MS = 250
_TROUBLE_MS = 600
# Ports from this one on are not those in the logs, until the voter is updated.
_MOVED_PORT = 20_000

KINDS = (
    "kill",
    "lose_power",
    "stop",
    "pause",
    "resign",
    "isolate",
    "cut_one_way",
    "split",
    "delay",
    "lose",
    "double",
    "damage",
    "slow_disk",
    "snapshot",
    "trim",
    "wipe",
    "add_voter",
    "remove_voter",
    "upgrade",
    "move",
)


class Storm:
    def __init__(self, world: World, *kinds: str) -> None:
        """Trouble of these kinds, else of some that the seed chooses."""
        self._world = world
        self._random = world.random
        names = kinds or self._random.sample(KINDS, self._random.randint(3, len(KINDS)))
        self._kinds: list[Callable[[], None]] = [getattr(self, f"_{name}") for name in names]
        self._ends_ms = 0
        self._texts = 0
        self._wiped = 0
        self._moved = False

    def run(self, duration_ms: int) -> None:
        schedule = self._world.schedule
        self._ends_ms = schedule.now_ms + duration_ms
        self._append()
        self._trouble()
        self._world.run(duration_ms)

    def _append(self) -> None:
        self._texts += 1
        self._world.append(f"text {self._texts}")
        self._again(_APPEND_MS, self._append)

    def _trouble(self) -> None:
        self._random.choice(self._kinds)()
        self._again(_TROUBLE_MS, self._trouble)

    def _again(self, about_ms: int, action: Callable[[], None]) -> None:
        delay_ms = self._random.randint(1, 2 * about_ms)
        if self._world.schedule.now_ms + delay_ms < self._ends_ms:
            self._world.schedule.after(delay_ms, action)

    def _after_a_while(self, action: Callable[[], None]) -> None:
        """Short or long, as seen by the time-outs of a quorum."""
        self._world.schedule.after(int(10 ** self._random.uniform(1, 3.95)), action)

    def _some_node(self) -> Node | None:
        """One that is up; rather one that leads."""
        up = self._world.up
        leaders = [node for node in up if node.leads]
        chosen = leaders if leaders and self._random.random() < 0.4 else up
        return self._random.choice(chosen) if chosen else None

    # ---- processes

    def _kill(self) -> None:
        if (node := self._some_node()) is not None:
            self._ends(node)

    def _ends(self, node: Node) -> None:
        node.kill()
        self._comes_back(node)

    def _comes_back(self, node: Node) -> None:
        self._after_a_while(lambda: None if node.is_up else node.start())

    def _lose_power(self) -> None:
        if (node := self._some_node()) is not None:
            node.disk.lose_power(self._random)
            node.vanish()
            self._comes_back(node)

    def _stop(self) -> None:
        if (node := self._some_node()) is not None:
            node.tell(events.Stop())
            life = node.life
            self._world.schedule.after(
                self._random.randint(0, 1000), lambda: self._ends(node) if node.life == life else None
            )

    def _pause(self) -> None:
        if (node := self._some_node()) is not None:
            node.pause()
            self._after_a_while(node.go_on)

    def _resign(self) -> None:
        for node in self._world.active:
            if node.raft is not None:
                node.tell(events.Resign(node.raft.epoch))

    # ---- the network

    def _isolate(self) -> None:
        if (node := self._some_node()) is not None:
            others = [other for other in self._world.nodes if other != node.id]
            self._block([(node.id, other) for other in others] + [(other, node.id) for other in others])

    def _cut_one_way(self) -> None:
        source, target = self._random.choices(list(self._world.nodes), k=2)
        self._block([(source, target)])

    def _split(self) -> None:
        ids = list(self._world.nodes)
        one = set(self._random.sample(ids, len(ids) // 2))
        self._block([(a, b) for a in ids for b in ids if (a in one) != (b in one)])

    def _block(self, pairs: list[tuple[int, int]]) -> None:
        self._world.network.blocked.update(pairs)
        self._after_a_while(lambda: self._world.network.blocked.difference_update(pairs))

    def _delay(self) -> None:
        self._world.network.delay_ms_max = self._random.choice((1, 5, 50, 300, 1500))

    def _lose(self) -> None:
        self._world.network.lost = self._random.choice((0.0, 0.02, 0.2))

    def _double(self) -> None:
        self._world.network.doubled = self._random.choice((0.0, 0.05, 0.3))

    def _damage(self) -> None:
        self._world.damaged = self._random.choice((0.05, 0.5))

    # ---- disks

    def _slow_disk(self) -> None:
        if (node := self._some_node()) is not None:
            node.fsync_ms_max = self._random.choice((1, 5, 100, 1000))

    def _snapshot(self) -> None:
        if (node := self._some_node()) is not None:
            node.take_snapshot()

    def _trim(self) -> None:
        if (node := self._some_node()) is not None:
            node.take_snapshot()
            node.trim()

    def _wipe(self) -> None:
        """A disk is lost, where the others have everything, and are a majority without it."""
        node = self._some_node()
        if node is None or not self._can_lose(node):
            return
        node.kill()
        self._wiped += 1
        node.disk = Disk(node.id, directory_id(100 + self._wiped))
        self._world.disks.append(node.disk)
        self._comes_back(node)

    def _can_lose(self, node: Node) -> bool:
        world = self._world
        if not all(each.disk.kraft_version_at(each.disk.end_offset) for each in world.nodes.values()):
            return False
        replicas = {each.replica: each for each in world.nodes.values() if each.port < _MOVED_PORT}
        for voters in (voters_on_disk(each, world.static_voters) for each in world.nodes.values()):
            others = [replicas[key] for key in voters if key in replicas and key != node.replica]
            has_all = all(other.disk.durable_end >= world.checker.committed_end for other in others)
            if voters and not (2 * len(others) > len(voters) and has_all):
                return False
        return True

    # ---- voters

    def _add_voter(self) -> None:
        leader, node = self._some_node(), self._random.choice(list(self._world.nodes.values()))
        if leader is not None:
            endpoint = node.endpoint
            listeners = [AddListener(endpoint.listener, endpoint.host, endpoint.port)]
            request = AddRaftVoterRequest(
                CLUSTER_ID,
                self._random.choice((500, 5000)),
                node.id,
                node.disk.directory_id,
                listeners,
                self._random.random() < 0.5,
            )
            self._world.ask(leader, request)

    def _remove_voter(self) -> None:
        leader = self._some_node()
        voters = [] if leader is None else voters_on_disk(leader, self._world.static_voters)
        if leader is not None and len(voters) > 1:
            key = self._random.choice(voters)
            alive = {node.replica for node in self._world.nodes.values() if node.port < _MOVED_PORT}
            left = [other for other in voters if other != key]
            # The others have to be able to go on.
            if 2 * sum(any(other.matches(each) for each in alive) for other in left) <= len(left):
                return
            self._world.ask(leader, RemoveRaftVoterRequest(CLUSTER_ID, key.node_id, key.directory_id))

    def _upgrade(self) -> None:
        if (node := self._some_node()) is not None:
            self._world.upgrade(node)

    def _move(self) -> None:
        """One node comes back at another address."""
        node = self._some_node()
        # Until it has told the others it is as good as gone.
        if node is not None and not self._moved and self._can_lose(node):
            self._moved = True
            node.kill()
            node.port += _MOVED_PORT
            self._comes_back(node)
