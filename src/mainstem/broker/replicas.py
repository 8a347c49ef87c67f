"""The partitions that this node holds, found by topic name or topic id, kept in step with the metadata image.

It creates, updates and removes `Partition` objects and their logs when the image changes; nothing else does.
"""

import asyncio
from collections.abc import Iterable, Iterator

from mainstem.broker.clock import Clock
from mainstem.broker.partition import AckWaiter, FetchWaiter, Partition
from mainstem.cluster.image import MetadataImage, PartitionImage, TopicImage
from mainstem.config import BrokerConfig, LogConfig, topic_log_config
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.replication.leader_state import LeaderState
from mainstem.storage.log_manager import LogManager

_LOGS_PER_TURN = 32


class Replicas:
    """All partitions of this node."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, node_id: int, log_manager: LogManager, clock: Clock
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._node_id = node_id
        self._log_manager = log_manager
        self._by_name: dict[str, list[Partition]] = {}
        self._by_id: dict[bytes, list[Partition]] = {}
        # Topics whose logs could not all be made, for lack of room: tried again when somebody asks for one.
        self._unmade: dict[bytes, tuple[TopicImage, LogConfig]] = {}

    def by_topic(self, topic: str, index: int) -> Partition:
        """The partition, or the KafkaError that a client gets for one that is not here."""
        partitions = self._by_name.get(topic)
        if partitions is None or not 0 <= index < len(partitions):
            for topic_id, (image, _) in self._unmade.items():
                if image.name == topic:
                    return self._make_now(topic_id, index)
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {topic}-{index} here"
            )
        return partitions[index]

    def by_topic_id(self, topic_id: bytes, index: int) -> Partition:
        partitions = self._by_id.get(topic_id)
        if partitions is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        if not 0 <= index < len(partitions):
            if topic_id in self._unmade:
                return self._make_now(topic_id, index)
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"topic {partitions[0].topic} has {len(partitions)} partitions, and no partition {index}",
            )
        return partitions[index]

    def _make_now(self, topic_id: bytes, index: int) -> Partition:
        """Try again to make the logs of a topic; KAFKA_STORAGE_ERROR when there is still no room."""
        topic, log_config = self._unmade[topic_id]
        for part in topic.partitions:
            self._apply_partition(topic, part, log_config)
        del self._unmade[topic_id]
        return self.by_topic_id(topic_id, index)

    def all(self) -> Iterator[Partition]:
        for partitions in self._by_name.values():
            yield from partitions

    def offline(self, topic: str, index: int) -> list[int]:
        """The replicas of a partition that cannot be used because their disk failed."""
        partitions = self._by_name.get(topic)
        if partitions is None or index >= len(partitions) or partitions[index].log.health.failure is None:
            return []
        return [self._node_id]

    async def apply(self, image: MetadataImage, topic_ids: Iterable[bytes], config: BrokerConfig) -> None:
        """Bring the partitions of these topics in line with the image; a topic that is not in it is
        removed. KafkaError when a log could not be made; the others were, and it is tried again later.
        """
        made = 0
        failure: KafkaError | None = None
        for topic_id in topic_ids:
            topic = image.topics_by_id.get(topic_id)
            if topic is None:
                self._remove(topic_id)
                continue
            log_config = self._log_config(image, topic, config)
            try:
                for part in topic.partitions:
                    made += self._apply_partition(topic, part, log_config)
                    if made >= _LOGS_PER_TURN:
                        made = 0
                        await asyncio.sleep(0)  # making a log touches the disk: others have their turn
            except KafkaError as error:
                self._unmade[topic_id] = (topic, log_config)
                failure = failure or KafkaError(error.code, f"topic {topic.name} exists, but {error.message}")
            else:
                self._unmade.pop(topic_id, None)
        if failure is not None:
            raise failure

    def apply_config(self, image: MetadataImage, config: BrokerConfig) -> None:
        """The broker's own settings changed: every log gets its configuration anew."""
        for topic in image.topics_by_id.values():
            log_config = self._log_config(image, topic, config)
            for partition in self._by_id.get(topic.topic_id, ()):
                partition.log.update_config(log_config)

    def _log_config(self, image: MetadataImage, topic: TopicImage, config: BrokerConfig) -> LogConfig:
        return topic_log_config(config, image.topic_config(topic.name))

    def _apply_partition(self, topic: TopicImage, part: PartitionImage, config: LogConfig) -> bool:
        partitions = self._by_id.get(topic.topic_id)
        if partitions is None:
            partitions = self._by_id[topic.topic_id] = self._by_name[topic.name] = []
        if part.partition < len(partitions):
            known = partitions[part.partition]
            known.log.update_config(config)
            known.leader.leader_epoch = part.leader_epoch
            known.leader.isr = part.isr
            return False
        assert part.partition == len(partitions)
        log = self._log_manager.create(
            topic.name, part.partition, topic.topic_id, config, self._clock.now_ms()
        )
        log.assign_epoch(part.leader_epoch)
        leader: LeaderState[AckWaiter, FetchWaiter] = LeaderState(
            self._node_id, part.leader_epoch, part.replicas, part.isr, log.log_end_offset
        )
        partitions.append(Partition(topic.name, topic.topic_id, part.partition, log, leader, self._loop))
        return True

    def _remove(self, topic_id: bytes) -> None:
        partitions = self._by_id.pop(topic_id, None)
        unmade = self._unmade.pop(topic_id, None)
        if partitions is None:
            return
        name = unmade[0].name if unmade is not None else partitions[0].topic
        if self._by_name.get(name) is partitions:
            del self._by_name[name]
        for partition in partitions:
            partition.delete()
            self._log_manager.delete(partition.topic, partition.index, self._clock.now_ms())
