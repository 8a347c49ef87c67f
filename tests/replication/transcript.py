"""Transcripts of one partition on several brokers: what is done to them, and how far each of them is then.

    brokers 1 2 3
    ----
    1 leads epoch 1, in sync 1 2 3
    ...

Brokers fetch when they are told to, and hear of the controller at once unless they are cut off. To write the
outcomes anew, run the test with MAINSTEM_RECORD_TRANSCRIPTS=1, and read the difference.
"""

from collections.abc import Callable, Iterable
from random import Random

from mainstem.broker.logs.partition import Partition
from mainstem.protocol.errors import ErrorCode
from mainstem.records.record import Record, build_batch
from mainstem.replication.leader_state import LeaderState
from tests.sim.replica_controller import Controller
from tests.sim.replica_machine import NEVER, Fsync, Machine, Threads
from tests.support.played_transcript import PlayedSession


class _FirstChoice(Random):
    """Where a history would throw dice: the least, so that each answer brings one batch."""

    def random(self) -> float:
        return 0.0

    def randrange(self, *_: int) -> int:  # type: ignore[override]
        return 0

    def choice(self, seq: "list[int]") -> int:  # type: ignore[override]
        return seq[0]


class Produce:
    """One that waits for all replicas in sync."""

    def __init__(self, said: list[str], value: str, offset: int) -> None:
        self._said = said
        self._value = value
        self._offset = offset

    def acknowledged(self, _: Partition, error: ErrorCode) -> None:
        outcome = f"acknowledged at {self._offset}" if error == ErrorCode.NONE else error.name
        self._said.append(f"{self._value}: {outcome}")


class ReplicaSession(PlayedSession):
    """Stands for the world that the machines are in."""

    def __init__(self) -> None:
        self.random = _FirstChoice()
        self.flush_messages = NEVER
        self.fsyncs: list[tuple[Threads, Fsync]] = []
        self.now_ms = 1_000
        self.controller = Controller(random=self.random)
        self.machines: dict[int, Machine] = {}
        self.acknowledged: list[object] = []
        self._cut_off: set[int] = set()
        self._said: list[str] = []

    def outcome(self, command: str) -> Iterable[str]:
        name, *words = command.split()
        getattr(self, f"_{name.replace('-', '_')}")(*words)
        self._spread()
        said, self._said = self._said, []
        yield from said
        part = self.controller.part
        in_sync = " ".join(map(str, part.isr))
        yield f"controller: {part.leader} leads epoch {part.leader_epoch}, in sync {in_sync}"
        for machine in self.machines.values():
            yield f"{machine.node_id} {self._state(machine)}"

    def _state(self, machine: Machine) -> str:
        partition = machine.partition
        if partition is None:
            return "is down"
        role = partition.role
        what = (
            f"leads epoch {partition.leader_epoch}"
            if isinstance(role, LeaderState)
            else f"follows in epoch {partition.leader_epoch}"
        )
        log = " ".join(f"{value.decode()}@{epoch}" for epoch, value in machine.records().values())
        return f"{what}, committed below {partition.high_watermark}: {log or '(empty)'}"

    # ---- what the machines find around them

    def send(self, to: Machine | None, deliver: Callable[[], None], lost: Callable[[], None]) -> None:
        """At once, unless who is to have it is gone or cut off."""
        if to is not None and (to.partition is None or to.node_id in self._cut_off):
            lost()
        else:
            deliver()

    def _spread(self) -> None:
        for machine in self.machines.values():
            if machine.node_id not in self._cut_off:
                while machine.partition is not None and machine.applied < len(self.controller.decisions):
                    machine.apply_next()

    # ---- commands

    def _brokers(self, *ids: str) -> None:
        for node_id in map(int, ids):
            self.machines[node_id] = Machine(self, node_id)  # type: ignore[arg-type]
            self.machines[node_id].start()

    def _produce(self, node_id: str, *values: str) -> None:
        """With acks=all, at the broker that leads for all it knows."""
        partition = self.machines[int(node_id)].partition
        assert partition is not None
        for value in values:
            if not partition.has_enough_replicas:
                self._said.append(f"{value}: {ErrorCode.NOT_ENOUGH_REPLICAS.name}")
                continue
            batch = bytearray(build_batch([Record(0, self.now_ms, None, value.encode())]))
            result = partition.append(batch, self.now_ms)
            produce = Produce(self._said, value, result.last_offset)
            if partition.is_committed(result.last_offset, -1):
                produce.acknowledged(partition, ErrorCode.NONE)
            else:
                partition.add_ack_waiter(result.last_offset, -1, produce)

    def _fetch(self, *ids: str) -> None:
        """Each once, in this order; one batch comes with an answer."""
        for node_id in map(int, ids):
            self.machines[node_id].fetch()

    def _catch_up(self, *ids: str) -> None:
        """Fetch until there is nothing new."""
        for _ in range(12):
            self._fetch(*ids)

    def _wait(self, wait_ms: str) -> None:
        self.now_ms += int(wait_ms)
        for machine in self.machines.values():
            if machine.partition is not None:
                machine.partition.review_replicas(self.now_ms)

    def _kill(self, node_id: str, *more: str) -> None:
        """`kill 1`, and the controller sees it; `kill 1 power` loses what no fsync has made safe."""
        machine = self.machines[int(node_id)]
        machine.die(power_lost="power" in more)
        self.controller.fence(machine.node_id)

    def _start(self, node_id: str) -> None:
        self.machines[int(node_id)].start()

    def _cut(self, node_id: str) -> None:
        """Off from everybody; the controller takes it for dead."""
        self._cut_off.add(int(node_id))
        self.controller.fence(int(node_id))

    def _heal(self, node_id: str) -> None:
        """It hears of everything again, and comes back with a new epoch."""
        machine = self.machines[int(node_id)]
        self._cut_off.discard(machine.node_id)
        machine.broker_epoch = self.controller.register(machine.node_id, was_clean=True)

    def _delete_before(self, offset: str) -> None:
        """What DeleteRecords does at the leader."""
        leader = self.machines[self.controller.part.leader].partition
        assert leader is not None
        leader.log.advance_log_start_offset(int(offset), leader.high_watermark)
