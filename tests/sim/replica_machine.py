"""A node with one replica of a partition, as a simulation runs it: the partition, its log, leader, follower
and fetch session are the real ones; the disk is in memory.
"""

from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, cast

from msgspec.structs import replace

from mainstem.broker.logs.partition import Partition
from mainstem.config import LogConfig
from mainstem.protocol.apis.k01_fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.records.batch import read_header
from mainstem.records.record import iter_records
from mainstem.replication.brokers import Brokers
from mainstem.replication.fetcher import FetcherSession, Limits
from mainstem.replication.leader_state import Proposal
from mainstem.replication.roles import Follower
from mainstem.storage.environment import LogEnvironment
from mainstem.storage.flush import FlushWork
from mainstem.storage.log import Log
from tests.sim.replica_controller import MIN_ISR, Decision
from tests.sim.seeds import Violation
from tests.storage.memory_files import MemoryFiles

if TYPE_CHECKING:
    from tests.sim.replica_world import World

LAG_MS = 300
NEVER = 2**63 - 1
TOPIC_ID = b"t" * 16
FOLDER = Path("/disk/t-0")
CONFIG = LogConfig(segment_bytes=600, index_interval_bytes=100, min_insync_replicas=MIN_ISR)

# By offset: the leader epoch, and the value.
Records = dict[int, tuple[int, bytes]]


class Produced:
    """A produce that waits for all replicas in sync."""

    def __init__(self, world: "World", value: bytes, offset: int, epoch: int) -> None:
        self.world = world
        self.value = value
        self.offset = offset
        self.epoch = epoch
        self.answers = 0

    def acknowledged(self, partition: Partition, error: ErrorCode) -> None:
        self.answers += 1
        if self.answers > 1:
            raise Violation(f"record {self.offset} was answered twice")
        if error == ErrorCode.NONE:
            self.world.acknowledged.append(self)


class Fsync:
    """One that a thread is asked for: done at some moment before the event loop hears that it is."""

    def __init__(self, work: Callable[[], None], *, at_once: bool) -> None:
        self._work: Callable[[], None] | None = work
        self._then: Callable[[Fsync], None] | None = None
        if at_once:
            self._run()

    def _run(self) -> None:
        work, self._work = self._work, None
        if work is not None:
            work()

    def exception(self) -> None:
        return None

    def add_done_callback(self, then: "Callable[[Fsync], None]") -> None:
        self._then = then

    def end(self) -> None:
        self._run()
        if self._then is not None:
            self._then(self)


class Threads:
    """What a partition uses of its event loop. A process that ends takes its threads with it."""

    def __init__(self, world: "World") -> None:
        self._world = world

    def run_in_executor(self, executor: None, work: Callable[[], None]) -> Fsync:
        fsync = Fsync(work, at_once=self._world.random.random() < 0.5)
        self._world.fsyncs.append((self, fsync))
        return fsync


class Machine:
    """A node: its disk stays, its process comes and goes."""

    def __init__(self, world: "World", node_id: int) -> None:
        self.world = world
        self.node_id = node_id
        self.files = MemoryFiles()
        self.files.make_folders(FOLDER.parent)
        self.brokers = Brokers(LAG_MS)
        self.partition: Partition | None = None
        self.threads: Threads | None = None  # those of the process that runs
        self.session: FetcherSession[Partition]
        self.broker_epoch = -1
        self.incarnation = 0
        self.applied = 0
        self.is_fetching = False
        self.was_clean = True
        self.is_intact = True  # nothing was lost since it was last in sync
        self.high_watermark_on_disk = 0

    # ---- the process

    def start(self) -> None:
        world = self.world
        self.incarnation += 1
        config = replace(CONFIG, flush_messages=world.flush_messages)
        log = Log.open(
            FOLDER, "t", 0, TOPIC_ID, config, now_ms=world.now_ms,
            environment=LogEnvironment(files=self.files), clean=False,
        )  # fmt: skip
        self.threads = Threads(world)
        self.partition = Partition(
            "t", TOPIC_ID, 0, log, cast(AbstractEventLoop, self.threads), self,
            node_id=self.node_id, high_watermark=self.high_watermark_on_disk,
        )  # fmt: skip
        self.session = FetcherSession(self.node_id, Limits(500, 1, 10_000, 10_000))
        self.is_fetching = False
        self.broker_epoch = world.controller.register(self.node_id, was_clean=self.was_clean)
        self.was_clean = False
        self.applied = len(world.controller.decisions)
        self._apply(world.controller.decisions[-1])

    def die(self, *, power_lost: bool) -> None:
        assert self.partition is not None
        if self.world.random.random() < 0.5:
            self.high_watermark_on_disk = self.partition.high_watermark
        self.partition = self.threads = None
        if power_lost:
            self.files.lose_power(self.world.random)
            self.is_intact = False

    def apply_next(self) -> None:
        if self.partition is not None and self.applied < len(self.world.controller.decisions):
            self.applied += 1
            self._apply(self.world.controller.decisions[self.applied - 1])

    def _apply(self, decision: Decision) -> None:
        assert self.partition is not None
        part, self.brokers.epochs = decision
        if part.leader_epoch >= self.partition.leader_epoch:
            self.partition.take_role(part)
            self.partition.review_replicas(self.world.now_ms)

    # ---- what the partition asks of its node

    def now_ms(self) -> int:
        return self.world.now_ms

    def propose(self, partition: Partition, proposal: Proposal) -> None:
        def again() -> None:
            if partition is self.partition and partition.has_proposed(proposal):
                self.propose(partition, proposal)

        self.world.send(None, lambda: self._at_controller(partition, proposal), again)

    def _at_controller(self, partition: Partition, proposal: Proposal) -> None:
        world = self.world
        code = world.controller.alter(self.node_id, proposal)
        part = world.controller.part

        def answered() -> None:
            if code == ErrorCode.NONE:
                partition.isr_accepted(proposal, part.leader_epoch, part.partition_epoch, part.isr)
            elif code == ErrorCode.INELIGIBLE_REPLICA:
                partition.isr_refused(proposal)

        def again() -> None:
            if partition is self.partition and partition.has_proposed(proposal):
                self.propose(partition, proposal)

        world.send(self, answered, again)

    def role_changed(self, partition: Partition) -> None:
        key = (TOPIC_ID, 0)
        if isinstance(partition.role, Follower) and partition.role.leader_id >= 0:
            partition.begin_to_follow()
            self.session.add(partition)
        else:
            self.session.remove(key)

    def await_followers(self, broker_ids: Iterable[int]) -> None:
        pass

    def sync_cut(self, partition: Partition, work: FlushWork) -> None:
        work.run()

    def followed_to_disk(self, partition: Partition) -> None:
        self.session.go_on(partition)

    # ---- following

    def fetch(self) -> None:
        partition = self.partition
        if partition is None or self.is_fetching or not isinstance(partition.role, Follower):
            return
        request = self.session.request(self.broker_epoch, self.world.now_ms)
        if request is None:
            return
        self.is_fetching = True
        leader = self.world.machines[partition.role.leader_id]
        me = self.incarnation

        def lost() -> None:
            self.is_fetching = False
            self.session.begin_anew()

        def answer(response: FetchResponse | None) -> None:
            if me != self.incarnation or self.partition is None:
                return
            self.is_fetching = False
            if response is None:
                self.session.begin_anew()
            else:
                for followed, data in self.session.answered(response):
                    self._take(followed, leader, data)

        def serve() -> None:
            response = leader.serve(request)
            self.world.send(self, lambda: answer(response), lost)

        self.world.send(leader, serve, lost)

    def _take(self, partition: Partition, leader: "Machine", data: PartitionData) -> None:
        before = partition.high_watermark
        self._take_data(partition, leader, data)
        if partition.high_watermark < before and not self.world.controller.allows_unclean:
            raise Violation(f"{self.node_id} is cut below its high watermark {before}")

    def _take_data(self, partition: Partition, leader: "Machine", data: PartitionData) -> None:
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            there = leader.partition
            if there is not None and there.leader_epoch == partition.leader_epoch:
                partition.follow_from(there.log.log_start_offset, there.log.log_end_offset)
        elif data.diverging_epoch is not None:
            partition.cut_where_it_diverges(data.diverging_epoch.epoch, data.diverging_epoch.end_offset)
        elif data.error_code == ErrorCode.NONE:
            records = memoryview(data.records) if isinstance(data.records, bytearray) else None
            if not partition.append_from_leader(records, data.high_watermark, data.log_start_offset):
                self.session.rest(partition, NEVER)

    # ---- leading

    def serve(self, request: FetchRequest) -> FetchResponse | None:
        """An answer without sessions: each request names everything."""
        if self.partition is None or request.replica_state is None:
            return None
        state = request.replica_state
        response = FetchResponse()
        for topic in request.topics:
            for asked in topic.partitions:
                try:
                    data = self._read(self.partition, asked, state.replica_id, state.replica_epoch)
                except KafkaError as error:
                    data = PartitionData(error_code=error.code)
                response.responses.append(FetchableTopicResponse("t", topic.topic_id, [data]))
        return response

    def _read(
        self, partition: Partition, asked: FetchPartition, broker_id: int, broker_epoch: int
    ) -> PartitionData:
        partition.check_leader(asked.current_leader_epoch)
        log = partition.log
        if asked.last_fetched_epoch >= 0:
            epoch, end_offset = log.end_offset_for_epoch(asked.last_fetched_epoch)
            if epoch < 0 or asked.fetch_offset < log.log_start_offset:
                raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
            if epoch < asked.last_fetched_epoch or end_offset < asked.fetch_offset:
                return PartitionData(diverging_epoch=EpochEndOffset(epoch, end_offset))
        found = partition.read_to_end(asked.fetch_offset, 1 + 200 * self.world.random.randrange(3), True)
        partition.fetched_by(
            broker_id, broker_epoch, asked.fetch_offset, asked.log_start_offset, self.world.now_ms
        )
        return PartitionData(
            high_watermark=partition.high_watermark,
            log_start_offset=log.log_start_offset,
            records=bytearray(found.records.read()) if found.records is not None else None,
        )

    # ---- what is in the log

    def records(self) -> Records:
        """By offset: the leader epoch, and the value."""
        assert self.partition is not None
        log, found = self.partition.log, {}
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            batch = log.read(offset, 1).records
            assert batch is not None, f"a hole at {offset}"
            data = memoryview(bytearray(batch.read()))
            header = read_header(data)
            for record in iter_records(data):
                found[record.offset] = header.partition_leader_epoch, record.value or b""
            offset = header.next_offset
        return {offset: record for offset, record in found.items() if offset >= log.log_start_offset}

    def records_from(self, start_offset: int) -> Records:
        return {offset: record for offset, record in self.records().items() if offset >= start_offset}
