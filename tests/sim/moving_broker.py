"""A broker of the simulation of coordinators that move, with logs, partitions, coordinators and handlers.

It copies what the leaders of its partitions have, and cuts off what they do not have. That is as simple as it
can be, and right by construction: under test is what coordinators make of it.
"""

import asyncio
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from mainstem.broker.apis import MODULES
from mainstem.broker.coordination.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from mainstem.broker.coordination.node_coordinators import NodeCoordinators
from mainstem.broker.coordination.transaction_verification import Verification
from mainstem.broker.logs.partition import Partition
from mainstem.broker.metadata.cache import MetadataCache
from mainstem.broker.metadata.producer_ids import ProducerIds
from mainstem.broker.network.connection import PARKED
from mainstem.broker.turns import Turns
from mainstem.cluster.image import MetadataImage
from mainstem.config import BrokerConfig, topic_log_config
from mainstem.protocol import codec
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.protocol.resources import TopicPartition
from mainstem.records.batch import iter_headers
from mainstem.replication.leader_state import LeaderState, Proposal
from mainstem.replication.roles import Follower
from mainstem.storage.environment import LogEnvironment
from mainstem.storage.log import Log
from mainstem.wire.errors import ConnectionLost
from tests.broker.logs import partition_host
from tests.sim.seeds import Violation
from tests.storage.memory_files import MemoryFiles

if TYPE_CHECKING:
    from tests.sim.moving_world import World

BROKERS = (1, 2, 3)
DATA = "data"
TOPICS = {DATA: 3, CONSUMER_OFFSETS: 2, TRANSACTION_STATE: 2}
PATIENCE_S = 1.0
_EPOCH_MS = 1_700_000_000_000
_FETCH_S = 0.02
_CONFIG = BrokerConfig(
    {
        "offsets.topic.num.partitions": "2",
        "transaction.state.log.num.partitions": "2",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
        "request.timeout.ms": "1000",
        "offsets.commit.timeout.ms": "500",
    }
)


class NoAnswer(Exception):
    """The request was lost, or its answer."""


class Clock:
    """The time of the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def now_ms(self) -> int:
        return _EPOCH_MS + int(self._loop.time() * 1000)

    steady_ms = now_ms

    def ticks_ns(self) -> int:
        return int(self._loop.time() * 1e9)


class Host(partition_host.Host):
    """The controller adds who has caught up to those in sync by itself."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(lag_ms_max=0)
        self._clock = clock

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def propose(self, partition: Partition, proposal: Proposal) -> None:
        partition.isr_refused(proposal)


class Replicas:
    """The partitions of one broker."""

    def __init__(self, broker: "SimulatedBroker") -> None:
        host = Host(broker.clock)
        self._partitions = {
            place: Partition(
                *_named(place),
                log,
                broker.world.loop,
                host,
                node_id=broker.node_id,
                high_watermark=broker.high_watermarks.get(place, 0),
            )
            for place, log in broker.logs.items()
        }

    def find(self, topic: str, index: int) -> Partition | None:
        return self._partitions.get((topic, index))

    def by_topic(self, topic: str, index: int) -> Partition:
        partition = self.find(topic, index)
        if partition is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return partition

    def all(self) -> dict[TopicPartition, Partition]:
        return self._partitions

    def is_offline(self, topic: str, index: int) -> bool:
        return False

    def publish(self, image: MetadataImage) -> None:
        for (topic, index), partition in self._partitions.items():
            part = image.partition(topic, index)
            assert part is not None
            partition.take_role(part)


class SimulatedBroker:
    """It stands for the shared server and the broker role at once, as far as coordinators look at them."""

    def __init__(self, world: "World", node_id: int) -> None:
        self.world = world
        self.node_id = node_id
        self.loop = world.loop
        self.clock = Clock(world.loop)
        self.config = _CONFIG
        self.randomness = SimpleNamespace(uuid=lambda: world.random.randbytes(16))
        self.server = self
        environment = LogEnvironment(files=MemoryFiles(), random=Random(node_id))
        self.logs = {
            (topic, index): Log.open(
                Path(f"/{topic}-{index}"),
                *(topic, index, topic_id_of(topic)),
                topic_log_config(_CONFIG, {}),
                now_ms=self.clock.now_ms(),
                environment=environment,
            )
            for topic, count in TOPICS.items()
            for index in range(count)
        }
        self.high_watermarks: dict[TopicPartition, int] = {}
        self.incarnation = 0
        self.is_up = False
        # It hears nothing of the controller, copies nothing.
        self.is_deaf = False
        self.is_slow = False
        self.start()

    def start(self) -> None:
        self.is_up = True
        self.is_deaf = self.is_slow = False
        self.turns = Turns(self.loop, self.clock)  # type: ignore[arg-type]  # a clock of the same kind
        self.metadata_cache = MetadataCache(MetadataImage())
        self.replicas: Any = Replicas(self)
        self.producer_ids = ProducerIds(self.world.allocate_producer_ids)
        self.coordinators = NodeCoordinators(self, self.replicas, self.producer_ids)  # type: ignore[arg-type]
        self._images: asyncio.Queue[MetadataImage] = asyncio.Queue()
        self._images.put_nowait(self.world.image)
        self._tasks = [self.loop.create_task(self._follow_metadata()), self.loop.create_task(self._copy())]

    def kill(self) -> None:
        """Nobody hears of it any more; what is in its logs stays."""
        self.is_up = False
        self.incarnation += 1
        for task in self._tasks:
            task.cancel()
        for place, partition in self.replicas.all().items():
            self.high_watermarks[place] = partition.high_watermark
            partition.go_offline("the broker is gone")
        self.coordinators.close()
        self.turns.close()

    # ---- what handlers and coordinators look at

    @property
    def image(self) -> MetadataImage:
        return self.metadata_cache.image

    @property
    def groups(self) -> Any:
        return self.coordinators.groups

    @property
    def transactions(self) -> Any:
        return self.coordinators.transactions

    def peer(self, node_id: int) -> "Peer":
        return Peer(self.world, self, node_id)

    # ---- metadata

    def tell(self, image: MetadataImage) -> None:
        self._images.put_nowait(image)

    async def _follow_metadata(self) -> None:
        while True:
            image = await self._images.get()
            await asyncio.sleep(self.world.random.uniform(0, 0.03))
            while self.is_deaf:
                await asyncio.sleep(0.05)
            if image.offset > self.image.offset:
                self.apply(image)

    def apply(self, image: MetadataImage) -> None:
        self.metadata_cache.image = image
        self.replicas.publish(image)
        self.coordinators.metadata_changed()
        _ = self.groups, self.transactions

    # ---- following

    async def _copy(self) -> None:
        while True:
            await asyncio.sleep(self.world.random.uniform(0, 2 * _FETCH_S))
            if not self.is_slow:
                for place, partition in self.replicas.all().items():
                    if isinstance(partition.role, Follower):
                        self._fetch(place, partition)

    def _fetch(self, place: TopicPartition, partition: Partition) -> None:
        leader = self.world.brokers.get(partition.role.leader_id)
        if leader is None or not leader.is_up or leader.is_slow:
            return
        led: Partition = leader.replicas.find(*place)
        if not isinstance(led.role, LeaderState) or led.leader_epoch != partition.leader_epoch:
            return
        now_ms = self.clock.now_ms()
        common = _common_end(led.log, partition)
        if common < partition.log.log_end_offset:
            partition.log.truncate_to(common, now_ms)
        data = _bytes(led.log, common)
        if data:
            partition.log.append_as_follower(bytearray(data), now_ms)
        partition.high_watermark = max(
            partition.high_watermark, min(led.high_watermark, partition.log.log_end_offset)
        )
        led.fetched_by(self.node_id, -1, partition.log.log_end_offset, partition.log.log_start_offset, now_ms)
        self.world.caught_up(place, led, self)

    # ---- requests

    async def handle(self, request: Any, version: int) -> Any:
        name = MODULES[request.SCHEMA.api_key]
        handler = import_module(f"mainstem.broker.apis.{name}").handle
        ctx = _Context(self, version)
        answer = handler(ctx, _through_the_wire(request, version))
        if asyncio.iscoroutine(answer):
            answer = await answer
        return _through_the_wire(await ctx.answer if answer is PARKED else answer, version)

    async def produce(
        self, transactional_id: str, place: TopicPartition, batch: bytes, version: int
    ) -> ErrorCode:
        """What Produce does with a batch of a transaction."""
        try:
            partition = self.replicas.by_topic(*place)
            partition.check_leader()
            verification = Verification(_Context(self, version), transactional_id)  # type: ignore[arg-type]
            verification.add(partition, memoryview(batch))
            verified = self.loop.create_future()
            if not verification.run(lambda: verified.set_result(None)):
                try:
                    await verified
                except asyncio.CancelledError:
                    verification.cancel()
                    raise
            if partition in verification.errors:
                return verification.errors[partition].code
            guard = verification.guards.get(partition)
            result = partition.append(bytearray(batch), self.clock.now_ms(), guard=guard)
            if partition.is_committed(result.last_offset, -1):
                return ErrorCode.NONE
            waiter = _Acknowledgement(self.loop)
            partition.add_ack_waiter(result.last_offset, -1, waiter)
            return await waiter.error
        except KafkaError as error:
            return error.code


class _Acknowledgement:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.error: asyncio.Future[ErrorCode] = loop.create_future()

    def acknowledged(self, partition: Partition, error: ErrorCode) -> None:
        if not self.error.done():
            self.error.set_result(error)


class _Context:
    """See `RequestContext`."""

    def __init__(self, broker: SimulatedBroker, version: int) -> None:
        self.broker = broker
        self.version = version
        self.client_id = "client"
        self.listener_name = "PLAINTEXT"
        self.connection = SimpleNamespace(client_host="host", closed=False, close=lambda: None)
        self.answer: asyncio.Future[Any] = broker.loop.create_future()

    def authorize(self, *_: Any) -> bool:
        return True

    def reply(self, response: Any) -> None:
        assert not self.answer.done(), "answered twice"
        self.answer.set_result(response)


class Peer:
    """The way from one broker to another."""

    def __init__(self, world: "World", broker: SimulatedBroker, node_id: int) -> None:
        self._world = world
        self._broker = broker
        self._node_id = node_id

    def request(self, request: Any, on_answer: Callable[[Any], None], *, timeout_s: float) -> None:
        incarnation = self._broker.incarnation

        async def ask() -> None:
            try:
                outcome = await self._world.call(self._node_id, request, timeout_s=timeout_s)
            except NoAnswer:
                outcome = ConnectionLost("peer", "it keeps silent")
            if self._broker.incarnation == incarnation:
                on_answer(outcome)

        self._world.run(ask())


def _named(place: TopicPartition) -> tuple[str, bytes, int]:
    topic, index = place
    return topic, topic_id_of(topic), index


def topic_id_of(topic: str) -> bytes:
    return topic.encode().ljust(16, b".")[:16]


def _through_the_wire(message: Any, version: int) -> Any:
    """What arrives of it."""
    return codec.decode(type(message), version, codec.encode(message, version))


def _bytes(log: Log, offset: int) -> bytes:
    found = b""
    while offset < log.log_end_offset:
        records = log.read(offset, 1 << 20).records
        assert records is not None
        data = bytes(records.read())
        for _, header in iter_headers(data):
            offset = header.next_offset
        found += data
    return found


def _common_end(leader: Log, follower: Partition) -> int:
    """Up to where both have the same batches. What is committed is never cut off."""
    end = follower.log.log_end_offset
    if end == follower.high_watermark:
        return end
    begin = follower.high_watermark
    if begin > leader.log_end_offset:
        raise Violation(f"lost: {follower} is committed up to {begin}, its leader ends before")
    theirs = dict(batches_of(leader, begin))
    for offset, batch in batches_of(follower.log, begin):
        if theirs.get(offset) != batch:
            return offset
    return end


def batches_of(log: Log, offset: int) -> list[tuple[int, bytes]]:
    data = _bytes(log, offset)
    return [(header.base_offset, data[at : at + header.size]) for at, header in iter_headers(data)]
