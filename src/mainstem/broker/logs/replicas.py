"""The partitions that this node holds, found by topic name or topic id, kept in step with the metadata image.

It creates, updates and removes `Partition` objects and their logs when the image changes; nothing else does.
"""

import asyncio
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mainstem.broker.clock import Clock
from mainstem.broker.logs.partition import Partition
from mainstem.cluster.directories import directory_of
from mainstem.cluster.image import MetadataImage, PartitionImage, TopicImage
from mainstem.config import BrokerConfig, LogConfig, topic_log_config
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.storage.directories.log_manager import LogManager
from mainstem.storage.environment import DirectoryHealth

_LOGS_PER_TURN = 32


class _Unmade(NamedTuple):
    """A topic of which some logs could not be made, with what it takes to try again."""

    topic: TopicImage
    config: LogConfig
    is_new: bool


class Replicas:
    """All partitions of this node."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, node_id: int, log_manager: LogManager, clock: Clock
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._node_id = node_id
        self._log_manager = log_manager
        # As they were written down before the node started; a log that is made later begins with none.
        self._high_watermarks = log_manager.high_watermarks()
        # None stands for a partition whose log could not be made: there was no room, or it may be in a
        # directory that is offline. It is tried again when somebody asks for it.
        self._by_name: dict[str, list[Partition | None]] = {}
        self._by_id: dict[bytes, list[Partition | None]] = {}
        self._unmade: dict[bytes, _Unmade] = {}

    def by_topic(self, topic: str, index: int) -> Partition:
        """The partition, or the KafkaError that a client gets for one that is not here."""
        partitions = self._by_name.get(topic)
        if partitions is None or not 0 <= index < len(partitions):
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {topic}-{index} here"
            )
        return partitions[index] or self._make_now(partitions, index)

    def by_topic_id(self, topic_id: bytes, index: int) -> Partition:
        partitions = self._by_id.get(topic_id)
        if partitions is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        if not 0 <= index < len(partitions):
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"the topic has {len(partitions)} partitions, and no partition {index}",
            )
        return partitions[index] or self._make_now(partitions, index)

    def find(self, topic: str, index: int) -> Partition | None:
        """The partition if it is here; nothing is tried to make it."""
        partitions = self._by_name.get(topic)
        return partitions[index] if partitions is not None and 0 <= index < len(partitions) else None

    def _make_now(self, partitions: list[Partition | None], index: int) -> Partition:
        """Try again to make a log; KAFKA_STORAGE_ERROR when it is still not possible."""
        for topic_id, unmade in self._unmade.items():
            if self._by_id[topic_id] is partitions:
                part = unmade.topic.partitions[index]
                made = partitions[index] = self._new_partition(
                    unmade.topic, part, unmade.config, unmade.is_new
                )
                if None not in partitions:
                    del self._unmade[topic_id]
                return made
        raise AssertionError("a partition without a log is not known to be unmade")

    def all(self) -> Iterator[Partition]:
        for partitions in self._by_name.values():
            for partition in partitions:
                if partition is not None:
                    yield partition

    def in_directory(self, health: DirectoryHealth) -> list[Partition]:
        """The partitions whose logs are in this directory."""
        return [partition for partition in self.all() if partition.log.health is health]

    def offline(self, topic: str, index: int) -> list[int]:
        """The replicas of a partition that cannot be used because their disk failed."""
        partitions = self._by_name.get(topic)
        if partitions is None or index >= len(partitions):
            return []
        partition = partitions[index]
        is_offline = partition is None or partition.log.health.failure is not None
        return [self._node_id] if is_offline else []

    async def apply(
        self, image: MetadataImage, topic_ids: Iterable[bytes], config: BrokerConfig, *, is_new: bool = True
    ) -> None:
        """Bring the partitions of these topics in line with the image; a topic that is not in it is
        removed. KafkaError when a log could not be made; the others were, and it is tried again later.
        `is_new` is false at the start of the node: then every log is somewhere already.
        """
        made = 0
        failure: KafkaError | None = None
        for topic_id in topic_ids:
            topic = image.topics_by_id.get(topic_id)
            if topic is None:
                self._remove(topic_id)
                continue
            log_config = self._log_config(image, topic, config)
            refusal: KafkaError | None = None
            for part in topic.partitions:
                try:
                    made += self._apply_partition(topic, part, log_config, is_new)
                except KafkaError as error:
                    refusal = error
                if made >= _LOGS_PER_TURN:
                    made = 0
                    await asyncio.sleep(0)  # making a log touches the disk: others have their turn
            if refusal is not None:
                known = self._unmade.get(topic_id)
                self._unmade[topic_id] = _Unmade(
                    topic, log_config, is_new and (known is None or known.is_new)
                )
                failure = failure or KafkaError(
                    refusal.code, f"topic {topic.name} exists, but {refusal.message}"
                )
            elif self._by_id.get(topic_id) and None not in self._by_id[topic_id]:
                self._unmade.pop(topic_id, None)
        if failure is not None:
            raise failure

    def apply_config(self, image: MetadataImage, config: BrokerConfig) -> None:
        """The broker's own settings changed: every log gets its configuration anew."""
        for topic in image.topics_by_id.values():
            log_config = self._log_config(image, topic, config)
            for partition in self._by_id.get(topic.topic_id, ()):
                if partition is not None:
                    partition.update_config(log_config)
            if topic.topic_id in self._unmade:
                unmade = self._unmade[topic.topic_id]
                self._unmade[topic.topic_id] = unmade._replace(config=log_config)

    def _log_config(self, image: MetadataImage, topic: TopicImage, config: BrokerConfig) -> LogConfig:
        return topic_log_config(config, image.topic_config(topic.name))

    def _apply_partition(
        self, topic: TopicImage, part: PartitionImage, config: LogConfig, is_new: bool
    ) -> bool:
        partitions = self._by_id.get(topic.topic_id)
        if partitions is None:
            partitions = self._by_id[topic.topic_id] = self._by_name[topic.name] = []
        if part.partition == len(partitions):
            partitions.append(None)
        elif topic.topic_id in self._unmade:
            is_new = self._unmade[topic.topic_id].is_new
        known = partitions[part.partition]
        if known is None:
            partitions[part.partition] = self._new_partition(topic, part, config, is_new)
            return True
        known.update_config(config)
        known.take_role(part)
        return False

    def _new_partition(
        self, topic: TopicImage, part: PartitionImage, config: LogConfig, is_new: bool
    ) -> Partition:
        log = self._log_manager.create(
            topic.name,
            part.partition,
            topic.topic_id,
            config,
            self._clock.now_ms(),
            is_new=is_new,
            directory_id=directory_of(part, self._node_id),
        )
        partition = Partition(
            topic.name,
            topic.topic_id,
            part.partition,
            log,
            self._loop,
            node_id=self._node_id,
            high_watermark=self._high_watermarks.get((topic.name, part.partition), 0),
        )
        partition.take_role(part)
        return partition

    def _remove(self, topic_id: bytes) -> None:
        partitions = self._by_id.pop(topic_id, None)
        unmade = self._unmade.pop(topic_id, None)
        if partitions is None:
            return
        names = [partition.topic for partition in partitions if partition is not None]
        name = unmade.topic.name if unmade is not None else names[0]
        if self._by_name.get(name) is partitions:
            del self._by_name[name]
        for partition in partitions:
            if partition is not None:
                partition.delete()
                self._log_manager.delete(partition.topic, partition.index, self._clock.now_ms())
