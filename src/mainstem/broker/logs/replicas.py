"""The partitions that this node holds, found by topic name or topic id, kept in step with the metadata image.

It creates, updates and removes `Partition` objects and their logs when the image changes; nothing else does.
A log that cannot be made is no error of whoever changed the metadata: its partition is offline, which can be
seen with the reason, until an attempt succeeds. It is tried again when somebody asks for the partition, and
now and then.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from mainstem.broker.logs.partition import Partition
from mainstem.broker.turns import Turn
from mainstem.cluster.delta import MetadataChanges
from mainstem.cluster.directories import directory_of
from mainstem.cluster.image import NO_LEADER, MetadataImage, PartitionImage, TopicImage
from mainstem.config import LogConfig, topic_log_config
from mainstem.config.listeners import inter_broker_listener
from mainstem.logs import about
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.protocol.resources import ConfigResourceType
from mainstem.replication.brokers import Brokers
from mainstem.replication.leader_state import Proposal
from mainstem.replication.roles import Follower
from mainstem.storage.environment import DirectoryHealth
from mainstem.storage.flush import FlushWork

if TYPE_CHECKING:
    from mainstem.broker.replication.replication import Replication
    from mainstem.broker.shared_server import SharedServer

logger = logging.getLogger(__name__)

# So many attempts in vain end a round of making up for logs: on a full disk the next one would fail as well.
_FAILURES_PER_ROUND = 4
# So many times as long as a client's attempt in vain took there is no other one.
_REST_AFTER_FAILURE = 19


class WaitingFetch(Protocol):
    """A fetch of a follower that waits for something new."""

    def nudged(self) -> None:
        """It is not to wait much longer."""


class UnmadeLog(Struct):
    """A partition that is offline because its log could not be made."""

    topic: str
    topic_id: bytes
    part: PartitionImage
    # False for one that was there before the node started: it must not begin again, empty, elsewhere.
    is_new: bool
    problem: KafkaError


class Replicas:
    """All partitions of this node. `on_return` is called when one is no longer offline, because its log could
    be made at last.
    """

    def __init__(self, server: "SharedServer", on_return: Callable[[Partition], None]) -> None:
        self._server = server
        self._node_id = server.node_id
        self._log_manager = server.log_manager
        self._image = server.metadata_cache.image
        self._on_return = on_return
        self._has_begun = False
        # As they were written down before the node started; a log that is made later begins with none.
        self._high_watermarks = self._log_manager.high_watermarks()
        # None stands for a partition whose log could not be made, and for one that only others have.
        self._by_name: dict[str, list[Partition | None]] = {}
        self._by_id: dict[bytes, list[Partition | None]] = {}
        self._names: dict[bytes, str] = {}
        self._unmade: dict[tuple[str, int], UnmadeLog] = {}
        self._no_attempt_before_ns = 0
        self.now_ms = server.clock.now_ms
        self.brokers = Brokers(server.config.get("replica.lag.time.max.ms"))
        self._replication: Replication | None = None  # a node alone has none
        # Fetches of followers that wait here, by their brokers.
        self.waiting_fetches: defaultdict[int, set[WaitingFetch]] = defaultdict(set)

    # ---- looking up

    def by_topic(self, topic: str, index: int) -> Partition:
        """The partition, or the KafkaError that a client gets for one that is not here."""
        partitions = self._by_name.get(topic)
        if partitions is None or not 0 <= index < len(partitions):
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {topic}-{index} here"
            )
        return partitions[index] or self._make_if_asked(topic, index)

    def by_topic_id(self, topic_id: bytes, index: int) -> Partition:
        partitions = self._by_id.get(topic_id)
        if partitions is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        if not 0 <= index < len(partitions):
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"the topic has {len(partitions)} partitions, and no partition {index}",
            )
        return partitions[index] or self._make_if_asked(self._names[topic_id], index)

    def find(self, topic: str, index: int) -> Partition | None:
        """The partition if it is here; nothing is tried to make it."""
        partitions = self._by_name.get(topic)
        return partitions[index] if partitions is not None and 0 <= index < len(partitions) else None

    def all(self) -> Iterator[Partition]:
        for partitions in self._by_name.values():
            for partition in partitions:
                if partition is not None:
                    yield partition

    def in_directory(self, health: DirectoryHealth) -> list[Partition]:
        """The partitions whose logs are in this directory."""
        return [partition for partition in self.all() if partition.log.health is health]

    def is_offline(self, topic: str, index: int) -> bool:
        """Whether this node's replica cannot be used because its disk failed or has no room."""
        partitions = self._by_name.get(topic)
        if partitions is None or index >= len(partitions):
            return False
        partition = partitions[index]
        if partition is None:
            return (topic, index) in self._unmade
        return partition.log.health.failure is not None

    @property
    def unmade(self) -> list[UnmadeLog]:
        """The partitions that are offline because their logs could not be made."""
        return list(self._unmade.values())

    def check_made(self, topic: str) -> None:
        """KafkaError when a log of the topic could not be made: the topic is there, but not all of it."""
        for index in range(len(self._by_name.get(topic, ()))):
            unmade = self._unmade.get((topic, index))
            if unmade is not None:
                problem = unmade.problem
                raise KafkaError(problem.code, f"topic {topic} exists, but {problem.message}")

    # ---- following the metadata

    async def publish(self, image: MetadataImage, changes: MetadataChanges) -> None:
        """Bring the partitions in line with the image. What is new is made first and gives others their turn;
        whatever anybody could be using changes in one turn after that, in which the other publishers go on.
        """
        is_new, self._has_begun = self._has_begun, True  # at the start every log is somewhere already
        self._image = image
        if changes.brokers:
            self._take_brokers(image)
        if not is_new:
            self._set_strays_aside()
        altered = [
            name
            for resource_type, name in changes.configs
            if resource_type == ConfigResourceType.TOPIC and name in self._by_name
        ]
        for topic in changes.removed_topics:
            if topic.name in image.topics_by_name:  # its name is another topic's now, which needs the folder
                self._remove(topic.topic_id)
        turn = self._server.turns.begin()  # making a log touches the disk
        for topic in changes.topics:
            await self._make_partitions(topic, is_new, turn)
        for topic in changes.removed_topics:
            self._remove(topic.topic_id)
        for topic in changes.topics:
            self._update_partitions(topic)
        for name in altered:
            if name in self._by_name:
                self._update_config(name)
        if changes.brokers and (self._replication is not None or len(image.brokers) > 1):
            self._with_others().brokers_changed()

    def _take_brokers(self, image: MetadataImage) -> None:
        brokers = image.brokers.values()
        self.brokers.epochs = {broker.broker_id: broker.epoch for broker in brokers if not broker.fenced}
        self.brokers.leaving = {broker.broker_id for broker in brokers if broker.in_controlled_shutdown}

    def _set_strays_aside(self) -> None:
        """Folders of topics that the cluster does not know: deleted while the node was down or crashed, or
        copied from elsewhere; and those of replicas that other brokers have got meanwhile, which go. Only now
        is the metadata known as far as it was committed at the start.
        """
        for log in self._log_manager:
            topic = self._image.topics_by_name.get(log.topic)
            if (
                topic is None
                or log.partition >= len(topic.partitions)
                or log.topic_id not in (None, topic.topic_id)
            ):
                try:
                    self._log_manager.set_aside(log.topic, log.partition)
                except KafkaError as error:
                    logger.error("cannot set %s aside: %s", log.name, error.message, extra=about(log))
            elif self._node_id not in topic.partitions[log.partition].replicas:
                logger.info("%s was moved to other brokers meanwhile; it is deleted here", log.name)
                self._delete_log(log.topic, log.partition)

    def broker_config_changed(self, image: MetadataImage) -> None:
        """Every log gets its configuration anew."""
        self._image = image
        for name in self._by_name:
            self._update_config(name)

    async def _make_partitions(self, topic: TopicImage, is_new: bool, turn: Turn) -> None:
        partitions = self._by_id.get(topic.topic_id)
        if partitions is None:
            partitions = self._by_id[topic.topic_id] = self._by_name[topic.name] = []
            self._names[topic.topic_id] = topic.name
        config = None
        problem: KafkaError | None = None
        failed = 0
        for index, part in enumerate(topic.partitions):
            if index == len(partitions):
                partitions.append(None)
            key = (topic.name, index)
            if self._node_id not in part.replicas or partitions[index] is not None or key in self._unmade:
                continue
            config = config or self._log_config(topic.name)
            try:
                partitions[index] = self._new_partition(topic.name, topic.topic_id, part, config, is_new)
            except KafkaError as error:
                self._unmade[key] = UnmadeLog(topic.name, topic.topic_id, part, is_new, error)
                problem = problem or error
                failed += 1
            await turn.yield_to_loop()
        if problem is not None:
            logger.error(
                "%d partitions of topic %s are offline until their logs can be made: %s",
                failed, topic.name, problem.message, extra=about(topic=topic.name),
            )  # fmt: skip

    def _update_partitions(self, topic: TopicImage) -> None:
        partitions = self._by_id[topic.topic_id]
        for index, part in enumerate(topic.partitions):
            partition, unmade = partitions[index], self._unmade.get((topic.name, index))
            if partition is not None:
                partition.take_role(part)
            elif unmade is not None:
                unmade.part = part
            if self._node_id not in part.replicas:
                partitions[index] = None
                self._let_go(topic.name, index, partition)

    def _update_config(self, topic: str) -> None:
        config = self._log_config(topic)
        for partition in self._by_name[topic]:
            if partition is not None:
                partition.update_config(config)

    def _log_config(self, topic: str) -> LogConfig:
        return topic_log_config(self._server.config, self._image.topic_config(topic))

    def _new_partition(
        self, topic: str, topic_id: bytes, part: PartitionImage, config: LogConfig, is_new: bool
    ) -> Partition:
        log = self._log_manager.create(
            topic,
            part.partition,
            topic_id,
            config,
            self._server.clock.now_ms(),
            is_new=is_new,
            directory_id=directory_of(part, self._node_id),
            may_begin_again=self._is_left_to_others(part),
        )
        partition = Partition(
            topic,
            topic_id,
            part.partition,
            log,
            self._server.loop,
            self,
            node_id=self._node_id,
            high_watermark=self._high_watermarks.get((topic, part.partition), 0),
        )
        partition.take_role(part)
        return partition

    def _is_left_to_others(self, part: PartitionImage) -> bool:
        """Whether another broker leads and nobody counts on what this one holds: a replica that has lost its
        disk then gets everything anew. Anywhere else an empty log could be taken for all that there is.
        """
        counted_on = (*part.isr, *part.eligible_leader_replicas, *part.last_known_elr)
        return part.leader not in (NO_LEADER, self._node_id) and self._node_id not in counted_on

    def _remove(self, topic_id: bytes) -> None:
        partitions = self._by_id.pop(topic_id, None)
        if partitions is None:
            return
        name = self._names.pop(topic_id)
        del self._by_name[name]
        for index, partition in enumerate(partitions):
            self._let_go(name, index, partition)

    def _let_go(self, topic: str, index: int, partition: Partition | None) -> None:
        """This node has the partition no more."""
        self._unmade.pop((topic, index), None)
        if partition is not None:
            partition.delete()
            self._delete_log(topic, index)

    def _delete_log(self, topic: str, index: int) -> None:
        try:
            self._log_manager.delete(topic, index, self._server.clock.now_ms())
        except KafkaError as error:
            # Nobody can use it any more; the next start finds a folder that belongs to nobody here.
            logger.error("the folder of %s-%d stays: %s", topic, index, error.message)

    # ---- replicas on other brokers

    def role_changed(self, partition: Partition) -> None:
        role = partition.role
        if self._replication is not None:
            self._replication.role_changed(partition)
        elif isinstance(role, Follower) and role.leader_id >= 0 and not partition.deleted:
            self._with_others().role_changed(partition)

    def propose(self, partition: Partition, proposal: Proposal) -> None:
        self._with_others().propose(partition, proposal)

    def await_followers(self, broker_ids: Iterable[int]) -> None:
        self.brokers.await_fetches(broker_ids, self.now_ms())
        for broker_id in broker_ids:
            for fetch in self.waiting_fetches.get(broker_id, ()):
                fetch.nudged()

    def sync_cut(self, partition: Partition, work: FlushWork) -> None:
        self._with_others().sync_cut(partition, work)

    def followed_to_disk(self, partition: Partition) -> None:
        if self._replication is not None:
            self._replication.followed_to_disk(partition)

    def _with_others(self) -> "Replication":
        if self._replication is None:
            from mainstem.broker.replication.replication import Replication  # with another broker only

            self._replication = Replication(self._server, self.all, self._address_of)
        return self._replication

    def _address_of(self, broker_id: int) -> tuple[str, int] | None:
        """Where another broker is for its like; None when the metadata does not say."""
        server = self._server
        broker = self._image.brokers.get(broker_id)
        name = inter_broker_listener(server.config, server.client_listeners)
        endpoint = None if broker is None else broker.endpoints.get(name)
        return None if endpoint is None else (endpoint.host, endpoint.port)

    async def stop(self) -> None:
        """Take nothing more from other brokers."""
        if self._replication is not None:
            await self._replication.stop()
            self._replication = None

    # ---- logs that could not be made

    async def retry_unmade(self) -> None:
        """Try again to make what could not be made. Whose turn it is comes to the end of the line."""
        failures = 0
        turn = self._server.turns.begin()
        for key in list(self._unmade):
            unmade = self._unmade.get(key)
            if unmade is None:
                continue  # somebody has asked for it meanwhile, or it is deleted
            try:
                self._make_now(*key)
            except KafkaError:
                self._unmade[key] = self._unmade.pop(key)
                failures += 1
                if failures == _FAILURES_PER_ROUND:
                    return
            await turn.yield_to_loop()

    def _make_if_asked(self, topic: str, index: int) -> Partition:
        """Try to make a log for whoever asks for the partition; but on a full disk everybody asks again and
        again, for thousands of them at once: attempts in vain take only a part of the time.
        """
        unmade = self._unmade.get((topic, index))
        ticks_ns = self._server.clock.ticks_ns
        began_ns = ticks_ns()
        if unmade is not None and began_ns < self._no_attempt_before_ns:
            raise KafkaError(unmade.problem.code, unmade.problem.message)
        try:
            return self._make_now(topic, index)
        except KafkaError:
            if unmade is not None:
                ended_ns = ticks_ns()
                self._no_attempt_before_ns = ended_ns + _REST_AFTER_FAILURE * (ended_ns - began_ns)
            raise

    def _make_now(self, topic: str, index: int) -> Partition:
        """Try again to make a log; KAFKA_STORAGE_ERROR when it is still not possible, and
        NOT_LEADER_OR_FOLLOWER when only other brokers have the partition.
        """
        unmade = self._unmade.get((topic, index))
        if unmade is None:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{topic}-{index} is not on broker {self._node_id}"
            )
        try:
            made = self._new_partition(
                topic, unmade.topic_id, unmade.part, self._log_config(topic), unmade.is_new
            )
        except KafkaError as error:
            unmade.problem = error
            raise
        self._by_name[topic][index] = made
        del self._unmade[topic, index]
        logger.info("%s is online: its log could be made", made, extra=about(topic=topic, partition=index))
        self._on_return(made)
        return made
