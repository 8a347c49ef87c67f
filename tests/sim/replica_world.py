"""A partition with three replicas, on disks in memory, in a random history that its seed repeats.

The network delays and loses what it carries; nodes hear late of what the controller decides. Processes are
killed, machines lose their power. What was acknowledged to a producer, what each replica knew to be
committed, and where logs were cut is held against the rules.
"""

from collections.abc import Callable
from itertools import combinations
from random import Random

from mainstem.protocol.errors import ErrorCode
from mainstem.records.record import Record, build_batch
from mainstem.replication.leader_state import LeaderState
from tests.sim.replica_controller import NODES, Controller
from tests.sim.replica_machine import LAG_MS, NEVER, Fsync, Machine, Produced, Records, Threads
from tests.sim.seeds import Violation

# To whom (None is the controller) in which incarnation; what happens when it comes, and when it does not.
OnItsWay = tuple[Machine | None, int, Callable[[], None], Callable[[], None]]


class World:
    """All of it. `run` is a history; `settle` is the calm after it, in which everything comes in order."""

    def __init__(self, seed: int, *, unclean: bool = False) -> None:
        self.random = Random(seed)
        # Some histories have topics whose records must be on disk before they count.
        self.flush_messages = self.random.choice((1, 3)) if seed % 3 == 0 else NEVER
        self.fsyncs: list[tuple[Threads, Fsync]] = []
        self.now_ms = 1_000
        self.controller = Controller(allows_unclean=unclean, random=self.random)
        self.acknowledged: list[Produced] = []
        self.on_their_way: list[OnItsWay] = []
        self.is_calm = False
        self.produced = 0
        self._deleted_to = 0
        self._seen_watermarks: dict[tuple[int, int, int], int] = {}
        self.machines = {node_id: Machine(self, node_id) for node_id in NODES}
        self.controller.on_joined = self._joined
        for machine in self.machines.values():
            machine.start()

    def _joined(self, node_id: int) -> None:
        """Into the set in sync. The controller may not know yet that it is dead."""
        machine = self.machines[node_id]
        machine.is_intact = machine.is_intact or machine.partition is not None

    # ---- the network

    def send(self, to: Machine | None, deliver: Callable[[], None], lost: Callable[[], None]) -> None:
        self.on_their_way.append((to, to.incarnation if to is not None else 0, deliver, lost))

    def deliver(self) -> None:
        if not self.on_their_way:
            return
        place = 0 if self.is_calm else self.random.randrange(len(self.on_their_way))
        to, incarnation, deliver, lost = self.on_their_way.pop(place)
        is_gone = to is not None and (to.partition is None or to.incarnation != incarnation)
        if is_gone or (not self.is_calm and self.random.random() < 0.03):
            lost()
        else:
            deliver()

    # ---- what can happen

    def produce(self) -> None:
        for machine in self.random.sample(list(self.machines.values()), len(NODES)):
            partition = machine.partition
            if partition is None or not isinstance(partition.role, LeaderState):
                continue
            if not partition.has_enough_replicas:
                return
            self.produced += 1
            value = b"%d" % self.produced
            batch = build_batch([Record(0, self.now_ms, None, value)])
            result = partition.append(bytearray(batch), self.now_ms)
            waiter = Produced(self, value, result.last_offset, partition.leader_epoch)
            if partition.is_committed(result.last_offset, -1):
                waiter.acknowledged(partition, ErrorCode.NONE)
            else:
                partition.add_ack_waiter(result.last_offset, -1, waiter)
            return

    def fetch(self) -> None:
        self.random.choice(list(self.machines.values())).fetch()

    def hear(self) -> None:
        self.random.choice(list(self.machines.values())).apply_next()

    def wait(self) -> None:
        self.now_ms += self.random.choice((1, 10, LAG_MS // 2))
        for machine in self.machines.values():
            if machine.partition is not None:
                machine.partition.review_replicas(self.now_ms)

    def sync(self) -> None:
        partition = self.random.choice(list(self.machines.values())).partition
        if partition is not None:
            partition.log.flush()

    def end_fsync(self) -> None:
        """Of one that was begun, unless its process is gone."""
        if self.fsyncs:
            threads, fsync = self.fsyncs.pop(0 if self.is_calm else self.random.randrange(len(self.fsyncs)))
            if any(machine.threads is threads for machine in self.machines.values()):
                fsync.end()

    def delete_records(self) -> None:
        for machine in self.machines.values():
            partition = machine.partition
            if partition is not None and isinstance(partition.role, LeaderState):
                start = self.random.randint(partition.log.log_start_offset, partition.high_watermark)
                self._deleted_to = max(self._deleted_to, start)
                partition.log.advance_log_start_offset(start, partition.high_watermark)
                partition.log.delete_old_segments(self.now_ms, partition.high_watermark)
                return

    def kill(self) -> None:
        self._end(power_lost=False)

    def lose_power(self) -> None:
        self._end(power_lost=True)

    def _end(self, *, power_lost: bool) -> None:
        machine = self.random.choice(list(self.machines.values()))
        if machine.partition is None:
            return
        if not self.controller.allows_unclean:
            # Two that go at a time may have had the only copies: only an fsync helps against that.
            others = [other for other in self.machines.values() if other is not machine]
            known = set(self.controller.part.isr) | self.controller.eligible
            if not all(other.is_intact for other in others):
                return
            if power_lost and not all(other.partition and other.node_id in known for other in others):
                return
        machine.die(power_lost=power_lost)

    def notice(self) -> None:
        """The controller sees that a broker is gone; or it thinks so."""
        machine = self.random.choice(list(self.machines.values()))
        if machine.partition is None:
            self.controller.fence(machine.node_id)

    def restart(self) -> None:
        machine = self.random.choice(list(self.machines.values()))
        if machine.partition is None:
            machine.start()

    # ---- the rules

    def check(self) -> None:
        for machine in self.machines.values():
            partition = machine.partition
            if partition is None:
                continue
            if partition.high_watermark > partition.log.log_end_offset:
                raise Violation(f"high watermark behind the end on {machine.node_id}")
            if isinstance(partition.role, LeaderState):
                key = machine.node_id, machine.incarnation, partition.leader_epoch
                if partition.high_watermark < self._seen_watermarks.get(key, 0):
                    raise Violation(f"high watermark went back on leader {machine.node_id}")
                self._seen_watermarks[key] = partition.high_watermark

    def check_logs(self) -> None:
        if self.controller.allows_unclean:
            return
        logs = {m.node_id: m.records() for m in self.machines.values() if m.partition is not None}
        for one, other in combinations(logs, 2):
            self._check_equal(one, logs[one], other, logs[other])
        leader = self.machines.get(self.controller.part.leader)
        if leader is None or leader.partition is None:
            return
        if leader.partition.leader_epoch == self.controller.part.leader_epoch:
            self.check_acknowledged(logs[leader.node_id], leader.partition.log.log_start_offset)

    def _check_equal(self, one: int, left: Records, other: int, right: Records) -> None:
        watermarks = [
            partition.high_watermark for m in (one, other) if (partition := self.machines[m].partition)
        ]
        for offset in left.keys() & right.keys():
            if self._deleted_to <= offset < min(watermarks) and left[offset] != right[offset]:
                raise Violation(f"{one} and {other} differ at {offset}, which is committed")

    def check_acknowledged(self, log: Records, start_offset: int) -> None:
        for produced in self.acknowledged:
            if produced.offset >= start_offset and log.get(produced.offset) != (
                produced.epoch,
                produced.value,
            ):
                raise Violation(f"acknowledged record {produced.offset} is lost")

    # ---- a history

    def run(self, steps: int) -> None:
        events: list[tuple[Callable[[], None], int]] = [
            (self.produce, 12), (self.fetch, 16), (self.deliver, 50), (self.hear, 10), (self.wait, 4),
            (self.sync, 2), (self.delete_records, 1), (self.kill, 1), (self.lose_power, 1), (self.notice, 3),
            (self.restart, 3),
        ]  # fmt: skip
        if self.flush_messages < NEVER:
            events.append((self.end_fsync, 40))
            steps = steps * 3 // 2
        actions = [action for action, _ in events]
        weights = [weight for _, weight in events]
        for step in range(steps):
            self.random.choices(actions, weights)[0]()
            self.check()
            if step % 25 == 0:
                self.check_logs()

    def settle(self) -> None:
        """Everybody is up, and nothing is lost any more: the replicas become equal, and all are in sync."""
        self.is_calm = True
        for machine in self.machines.values():
            if machine.partition is None:
                machine.start()
        for _ in range(400):
            self.now_ms += 5
            for machine in self.machines.values():
                while machine.applied < len(self.controller.decisions):
                    machine.apply_next()
                machine.fetch()
                assert machine.partition is not None
                machine.partition.review_replicas(self.now_ms)
            while self.on_their_way or self.fsyncs:
                self.deliver()
                self.end_fsync()
            self.check()
        self.check_logs()
        leader = self.machines[self.controller.part.leader].partition
        assert leader is not None
        if set(self.controller.part.isr) != set(NODES):
            raise Violation(f"only {self.controller.part.isr} are in sync after a calm")
        # One that leads may not have heard up to where another one was told to delete.
        # What was deleted may have differed, and comes back with a process that is killed.
        starts = [m.partition.log.log_start_offset for m in self.machines.values() if m.partition]
        start = max(self._deleted_to, *starts)
        for machine in self.machines.values():
            assert machine.partition is not None
            if machine.records_from(start) != self.machines[self.controller.part.leader].records_from(start):
                raise Violation(f"{machine.node_id} does not have what the leader has")
            if machine.partition.high_watermark != leader.log.log_end_offset:
                raise Violation(f"{machine.node_id} does not know that all is committed")
