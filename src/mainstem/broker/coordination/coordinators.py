"""What the node's coordinators of groups and of transactions have in common: the partition of an internal
topic that an id belongs to, the making of that topic on first use, and a short way from request handlers to
the machine of an id.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mainstem.broker.coordination.java_hash import java_hash
from mainstem.broker.coordination.shell import CoordinatorShell
from mainstem.broker.logs.partition import Partition
from mainstem.broker.requests.context import RequestContext
from mainstem.broker.requests.pending import Fail, Gather, Pending
from mainstem.config import can_be_joined
from mainstem.config.tables.topic import SEGMENT_BYTES_MIN
from mainstem.coordinator.effects import Token
from mainstem.coordinator.machine import ConfiguredMachine
from mainstem.protocol.apis.k19_create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.records.compression import Codec

if TYPE_CHECKING:
    from mainstem.broker.logs.replicas import Replicas
    from mainstem.broker.shared_server import SharedServer

logger = logging.getLogger(__name__)

M = TypeVar("M", bound=ConfiguredMachine)
# What a handler has the machine do: it answers the token, now or later.
Event = Callable[[M, Token, int], None]


class Coordinators(ABC, Generic[M]):
    """All machines of one internal topic on this node. `settings` is what the names of the topic's settings
    begin with.
    """

    def __init__(
        self,
        server: "SharedServer",
        replicas: "Replicas",
        topic: str,
        settings: str,
        codec: Codec,
        load_buffer_bytes: int,
        reply_timeout_ms: Callable[[], int] | None = None,
    ) -> None:
        self._server = server
        self._replicas = replicas
        self.topic = topic
        self._settings = settings
        self.shell: CoordinatorShell[M] = CoordinatorShell(
            server, replicas, topic, self._new_machine, codec, load_buffer_bytes, reply_timeout_ms
        )

    @abstractmethod
    def _new_machine(self, partition: Partition) -> M: ...

    @abstractmethod
    def _topic_configs(self, replicas: int) -> dict[str, str]:
        """The settings of the topic besides those that all such topics have."""

    # ---- for the request handlers

    def submit(self, ctx: RequestContext, key: str, event: Event[M], fail: Fail) -> Any:
        """Let the coordinator of a group or transactional id handle an event; what the handler returns."""
        pending = Pending(ctx, fail)
        self.shell.submit(self.partition_of(key), pending, event)
        return pending.outcome()

    def gather(
        self,
        ctx: RequestContext,
        parts: Sequence[tuple[str, Event[M], Fail]],
        assemble: Callable[[list[Any]], Any],
    ) -> Any:
        """The same for several of them; `assemble` makes one response of their answers."""
        pending = Pending(ctx, _cannot_fail)
        gather = Gather(pending, len(parts), assemble)
        for place, (key, event, fail) in enumerate(parts):
            self.shell.submit(self.partition_of(key), gather.part(place, fail), event)
        return pending.outcome()

    def gather_all(
        self, ctx: RequestContext, event: Event[M], fail: Fail, assemble: Callable[[list[Any]], Any]
    ) -> Any:
        """The same for every partition that this node coordinates."""
        pending = Pending(ctx, _cannot_fail)
        partitions = self.shell.partitions
        gather = Gather(pending, len(partitions), assemble)
        for place, partition in enumerate(partitions):
            self.shell.submit(partition, gather.part(place, fail), event)
        return pending.outcome()

    def partition_of(self, key: str) -> int:
        """The partition that a group or transactional id belongs to; -1 while there is no topic."""
        topic = self._server.image.topics_by_name.get(self.topic)
        return java_hash(key) % len(topic.partitions) if topic is not None else -1

    def leader_of(self, key: str) -> int:
        """The id of the node that coordinates it; -1 when there is none now."""
        index = self.partition_of(key)
        part = self._server.image.partition(self.topic, index)
        if part is None:
            return -1
        if part.leader == self._server.node_id and (
            self._replicas.is_offline(self.topic, index) or index not in self.shell.partitions
        ):
            return -1
        return part.leader

    async def ensure_topic(self) -> None:
        """Make the topic if it is not there; COORDINATOR_NOT_AVAILABLE when that cannot be done."""
        if self.topic in self._server.image.topics_by_name:
            return
        config = self._server.config
        factor = self._replication_factor()
        # Kafka's table allows less than its topics do; to refuse the topic would be to refuse all groups.
        asked_bytes = config.get(f"{self._settings}.segment.bytes")
        settings = {
            "cleanup.policy": "compact",
            "segment.bytes": str(max(asked_bytes, SEGMENT_BYTES_MIN)),
            **self._topic_configs(factor),
        }
        topic = CreatableTopic(
            name=self.topic,
            num_partitions=config.get(f"{self._settings}.num.partitions"),
            replication_factor=factor,
            configs=[CreatableTopicConfig(name, value) for name, value in settings.items()],
        )
        try:
            response = await self._server.controller.create_topics(CreateTopicsRequest(topics=[topic]))
        except KafkaError as error:
            raise self._cannot_create(error.message) from error
        (result,) = response.topics
        if result.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            raise self._cannot_create(result.error_message)
        if asked_bytes < SEGMENT_BYTES_MIN and result.error_code == ErrorCode.NONE:
            logger.warning(
                "%s is %d: %d is taken, the least for a topic",
                f"{self._settings}.segment.bytes", asked_bytes, SEGMENT_BYTES_MIN,
            )  # fmt: skip

    def _replication_factor(self) -> int:
        """A node that no other can ever join has one copy. Everybody else gets what is set, although brokers
        may still be missing: a cluster that is just starting has to wait for them, or it would have one copy
        for ever.
        """
        if not can_be_joined(self._server.config):
            return 1
        factor: int = self._server.config.get(f"{self._settings}.replication.factor")
        return factor

    def _cannot_create(self, reason: str | None) -> KafkaError:
        message = f"cannot create {self.topic}: {reason}"
        logger.error(message)
        return KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, message)

    # ---- for the node

    def metadata_changed(self) -> None:
        """Settings, topics or leaders are other ones now."""
        for machine in self.shell.machines():
            machine.state.config = self._server.config
        self.shell.metadata_changed()

    def close(self) -> None:
        self.shell.close()


def _cannot_fail(error: ErrorCode) -> Any:
    raise AssertionError(f"the parts of a request fail, not the whole: {error.name}")
