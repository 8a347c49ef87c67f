"""What changes in a running broker when a setting is altered: one function for each setting that is acted on.

Each gets a topic of its own and a way to alter the setting, for the topic, the broker or all brokers, looks
before and after, and fails if there is no difference. The broker looks at retention every moment and cleans
nothing by itself.
"""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mainstem.broker.logs.partition import Partition
from mainstem.cluster.records import PartitionChangeRecord
from mainstem.protocol.errors import ErrorCode
from mainstem.records.batch import read_header
from mainstem.records.compression import Codec
from mainstem.records.record import Record, build_batch
from mainstem.storage.cleaner.jobs import Limits, job_for
from mainstem.storage.log import Log
from mainstem.testing.in_process import InProcessBroker
from tests.broker.apis.test_administration import DELETE, SET
from tests.broker.harness import (
    Client,
    Topic,
    alter,
    create_topic,
    eventually,
    fetch,
    lose_follower,
    produce,
    produce_request,
)

HOUR_MS = 3_600_000
GONE = 99  # a broker that there is not
BROKER_RESOURCE, GROUP_RESOURCE = 4, 32
BROKER = {
    "log.initial.task.delay.ms": 0,
    "log.retention.check.interval.ms": 20,
    "log.segment.delete.delay.ms": 50,
    "log.cleaner.threads": 0,
    "log.cleaner.backoff.ms": HOUR_MS,
    "group.consumer.assignment.interval.ms": 0,
    "group.consumer.min.session.timeout.ms": 50,
    "group.consumer.min.heartbeat.interval.ms": 10,
}
# Words, so that it depends on the level how small they become.
PROSE = b" ".join(b"%x" % (number * number * 7919) for number in range(20_000))


@dataclass
class World:
    """A running broker with a topic, and the setting of which the effect is wanted."""

    broker: InProcessBroker
    client: Client
    alter: Callable[[str], Awaitable[None]]
    topic: Topic
    group: str

    @property
    def partition(self) -> Partition:
        return self.broker.node.replicas.by_topic(self.topic.name, 0)

    @property
    def log(self) -> Log:
        return self.partition.log

    async def use(self, **configs: str) -> None:
        """Go on with another topic, with settings of its own."""
        named = {name.replace("_", "."): value for name, value in configs.items()}
        self.topic = await create_topic(self.client, configs=named)

    async def write(self, *values: bytes, **options: Any) -> int:
        """Produce one batch; its error code."""
        return int((await produce(self.client, self.topic, *values, **options)).error_code)

    async def set_broker(self, name: str, value: str | None) -> None:
        """Alter another setting of the broker."""
        operation = SET if value is not None else DELETE
        assert await alter(self.client, BROKER_RESOURCE, "1", (name, operation, value)) == 0

    async def set_group(self, name: str, value: str) -> None:
        """Alter another setting of the group."""
        assert await alter(self.client, GROUP_RESOURCE, self.group, (name, SET, value)) == 0

    async def write_keyed(self, count: int, size: int = 100) -> None:
        for number in range(count):
            stamp = time.time_ns() // 1_000_000
            data = bytes(build_batch([Record(0, stamp, b"k%d" % (number % 3), b"v" * size)]))
            await self.client.call(produce_request(self.topic, {0: data}))

    async def stored(self) -> Any:
        """The header of the newest batch."""
        data = await fetch(self.client, self.topic, offset=self.log.log_end_offset - 1)
        assert isinstance(data.records, bytes | bytearray | memoryview)
        return read_header(data.records)


Effect = Callable[[World], Awaitable[None]]

# ---- what is accepted


async def cleanup_policy(world: World) -> None:
    assert await world.write(b"no key") == 0
    await world.alter("compact")
    assert await world.write(b"no key") == ErrorCode.INVALID_RECORD


async def max_message_bytes(world: World) -> None:
    assert await world.write(b"x" * 2000) == 0
    await world.alter("1000")
    assert await world.write(b"x" * 2000) == ErrorCode.MESSAGE_TOO_LARGE


async def timestamp_after(world: World) -> None:
    later = time.time_ns() // 1_000_000 + 2 * HOUR_MS
    assert await world.write(b"x", timestamp=later) == ErrorCode.INVALID_TIMESTAMP
    await world.alter(str(3 * HOUR_MS))
    assert await world.write(b"x", timestamp=later) == 0


async def timestamp_before(world: World) -> None:
    earlier = time.time_ns() // 1_000_000 - 2 * HOUR_MS
    assert await world.write(b"x", timestamp=earlier) == 0
    await world.alter(str(HOUR_MS))
    assert await world.write(b"x", timestamp=earlier) == ErrorCode.INVALID_TIMESTAMP


async def timestamp_type(world: World) -> None:
    assert (await produce(world.client, world.topic, b"x")).log_append_time_ms == -1
    await world.alter("LogAppendTime")
    assert (await produce(world.client, world.topic, b"x")).log_append_time_ms > 0


async def min_insync_replicas(world: World) -> None:
    await lose_follower(world.broker, world.topic)
    assert await world.write(b"x") == 0
    await world.alter("2")
    assert await world.write(b"x") == ErrorCode.NOT_ENOUGH_REPLICAS


# ---- how it is stored


async def compression_type(world: World) -> None:
    await world.write(b"x" * 1000)
    assert Codec((await world.stored()).attributes & 7) is Codec.NONE
    await world.alter("gzip")
    await world.write(b"x" * 1000)
    assert Codec((await world.stored()).attributes & 7) is Codec.GZIP


def level(codec: str, other: str) -> Effect:
    async def effect(world: World) -> None:
        await world.use(compression_type=codec)
        await world.write(PROSE)
        before = (await world.stored()).size
        await world.alter(other)
        await world.write(PROSE)
        assert (await world.stored()).size != before

    return effect


async def flush_messages(world: World) -> None:
    await world.write(b"x")
    assert world.log.recovery_point == 0
    await world.alter("1")
    await world.write(b"x")
    assert world.log.recovery_point == 2


async def flush_ms(world: World) -> None:
    """What was written before is forced to disk too."""
    await world.write(b"x")
    assert world.log.recovery_point == 0
    await world.alter("1")
    await eventually(lambda: world.log.recovery_point == 1)


async def index_interval_bytes(world: World) -> None:
    for _ in range(4):
        await world.write(b"x")
    assert world.log.segments.active.offset_index.count == 0
    await world.alter("0")
    for _ in range(4):
        await world.write(b"x")
    assert world.log.segments.active.offset_index.count == 4


async def segment_index_bytes(world: World) -> None:
    await world.use(index_interval_bytes="0")
    for _ in range(6):
        await world.write(b"x")
    assert len(world.log.segments) == 1
    await world.alter("36")
    for _ in range(4):
        await world.write(b"x")
    assert len(world.log.segments) > 1


async def segment_bytes(world: World) -> None:
    for _ in range(3):
        await world.write(b"x" * 600_000)
    assert len(world.log.segments) == 1
    await world.alter("1048576")
    await world.write(b"x" * 600_000)
    assert len(world.log.segments) == 2


async def internal_segment_bytes(world: World) -> None:
    await world.write(b"x" * 600)
    await world.write(b"x" * 600)
    assert len(world.log.segments) == 1
    await world.alter("1000")
    await world.write(b"x" * 600)
    assert len(world.log.segments) == 2


async def segment_ms(world: World) -> None:
    stamp = time.time_ns() // 1_000_000 - HOUR_MS
    for number in range(2):
        await world.write(b"x", timestamp=stamp + number * 1000)
    assert len(world.log.segments) == 1
    await world.alter("5000")
    await world.write(b"x", timestamp=stamp + 10_000)
    assert len(world.log.segments) == 2


async def segment_jitter_ms(world: World) -> None:
    await world.use(internal_segment_bytes="1000")
    await world.alter(str(HOUR_MS))
    for _ in range(4):
        await world.write(b"x" * 600)
    assert any(segment.jitter_ms for segment in world.log.segments.in_order[1:])


async def preallocate(world: World) -> None:
    await world.use(internal_segment_bytes="1000")

    async def rolled() -> int:
        for _ in range(2):
            await world.write(b"x" * 600)
        return Path(world.log.segments.active.path(".log")).stat().st_size

    assert await rolled() < 1000
    await world.alter("true")
    assert await rolled() == 1000


# ---- how long it stays


async def retention_bytes(world: World) -> None:
    await world.use(internal_segment_bytes="1000")
    for _ in range(4):
        await world.write(b"x" * 600)
    assert world.log.log_start_offset == 0
    await world.alter("1000")
    await eventually(lambda: world.log.log_start_offset == 2)


async def retention_ms(world: World) -> None:
    await world.write(b"x", timestamp=time.time_ns() // 1_000_000 - 2 * HOUR_MS)
    assert world.log.log_start_offset == 0
    await world.alter(str(HOUR_MS))
    await eventually(lambda: world.log.log_start_offset == 1)


async def file_delete_delay_ms(world: World) -> None:
    """The first segment that goes is not removed for an hour, the second one soon."""
    await world.use(internal_segment_bytes="1000", retention_bytes="600")
    folder = Path(world.log.directory)
    await world.alter(str(HOUR_MS))
    for _ in range(2):
        await world.write(b"x" * 600)
    await eventually(lambda: world.log.log_start_offset == 1)
    first, second = (folder / f"{offset:020d}.log.deleted" for offset in (0, 1))
    assert first.exists()
    await world.alter("1")
    await world.write(b"x" * 600)
    await eventually(lambda: world.log.log_start_offset == 2)
    await eventually(lambda: not second.exists())
    assert first.exists()


# ---- compaction


async def dirty(world: World) -> None:
    await world.use(cleanup_policy="compact", internal_segment_bytes="1000")
    await world.write_keyed(30)


async def min_cleanable_dirty_ratio(world: World) -> None:
    await dirty(world)
    assert _state(world).is_worth_cleaning
    await world.alter("1")
    assert not _state(world).is_worth_cleaning


async def min_compaction_lag_ms(world: World) -> None:
    await dirty(world)
    assert _state(world).cleanable_bytes > 0
    await world.alter(str(HOUR_MS))
    assert _state(world).cleanable_bytes == 0


async def max_compaction_lag_ms(world: World) -> None:
    await dirty(world)
    assert not _state(world).is_due
    await world.alter("1")
    await eventually(lambda: _state(world).is_due)


async def delete_retention_ms(world: World) -> None:
    """It is what the process that cleans is told."""
    await dirty(world)
    await world.alter("12345")
    limits = Limits(map_bytes=1, load_factor=1, buffer_bytes=1, bytes_per_second=1)
    assert job_for(_state(world), 0, limits).delete_retention_ms == 12345


def _state(world: World) -> Any:
    state = world.broker.node.cleaner.state_of(world.partition)
    assert state is not None
    return state


async def unclean_leader_election_enable(world: World) -> None:
    """A partition has lost the only replica that had everything; this broker has an older one."""
    server, topic = world.broker.node.server, world.topic
    await world.alter("false")
    assert server.node_id != GONE
    server.metadata_log.append(
        [PartitionChangeRecord(0, topic.topic_id, isr=[GONE], leader=-1, replicas=[GONE, server.node_id])]
    )
    await world.set_broker("log.retention.ms", "1000000")
    partition = server.image.partition(topic.name, 0)
    assert partition is not None
    assert partition.leader == -1
    await world.alter("true")

    def is_led() -> bool:
        found = server.image.partition(topic.name, 0)
        return found is not None and found.leader == server.node_id

    await eventually(is_led)
    await world.set_broker("log.retention.ms", None)


TOPIC_EFFECTS: dict[str, Effect] = {
    "cleanup.policy": cleanup_policy,
    "compression.gzip.level": level("gzip", "9"),
    "compression.lz4.level": level("lz4", "17"),
    "compression.type": compression_type,
    "compression.zstd.level": level("zstd", "19"),
    "delete.retention.ms": delete_retention_ms,
    "file.delete.delay.ms": file_delete_delay_ms,
    "flush.messages": flush_messages,
    "flush.ms": flush_ms,
    "index.interval.bytes": index_interval_bytes,
    "internal.segment.bytes": internal_segment_bytes,
    "max.compaction.lag.ms": max_compaction_lag_ms,
    "max.message.bytes": max_message_bytes,
    "message.timestamp.after.max.ms": timestamp_after,
    "message.timestamp.before.max.ms": timestamp_before,
    "message.timestamp.type": timestamp_type,
    "min.cleanable.dirty.ratio": min_cleanable_dirty_ratio,
    "min.compaction.lag.ms": min_compaction_lag_ms,
    "min.insync.replicas": min_insync_replicas,
    "preallocate": preallocate,
    "retention.bytes": retention_bytes,
    "retention.ms": retention_ms,
    "segment.bytes": segment_bytes,
    "segment.index.bytes": segment_index_bytes,
    "segment.jitter.ms": segment_jitter_ms,
    "segment.ms": segment_ms,
    "unclean.leader.election.enable": unclean_leader_election_enable,
}
