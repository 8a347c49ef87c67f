"""The node's group coordinators: finds the partition of `__consumer_offsets` that a group belongs to, makes
that topic on first use, and gives request handlers a short way to a group.
"""

import logging
import sys
from array import array
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from operator import mul
from typing import TYPE_CHECKING, Any

from mainstem.broker.context import RequestContext
from mainstem.broker.coordinator_shell import CoordinatorShell
from mainstem.broker.internal_topics import CONSUMER_OFFSETS
from mainstem.broker.pending import Fail, Gather, Pending
from mainstem.cluster.image import ResourceType, TopicImage
from mainstem.config import group_values
from mainstem.coordinator.effects import Token
from mainstem.coordinator.group.coordinator import GroupCoordinator
from mainstem.coordinator.topics import TopicInfo
from mainstem.protocol.apis.k19_create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.protocol.uuids import random_uuid
from mainstem.records.compression import Codec
from mainstem.security.authorizer import Operation
from mainstem.security.authorizer import ResourceType as AclResourceType

if TYPE_CHECKING:
    from mainstem.broker.node import Node

logger = logging.getLogger(__name__)

Event = Callable[[GroupCoordinator, Token, int], None]


class GroupCoordinators:
    """All groups that this node coordinates."""

    def __init__(self, node: "Node") -> None:
        self._node = node
        self._topics = ImageTopics(node)
        codec = Codec(node.config.get("offsets.topic.compression.codec"))
        self.shell = CoordinatorShell(node, CONSUMER_OFFSETS, self._new_machine, codec)

    def _new_machine(self) -> GroupCoordinator:
        return GroupCoordinator(self._node.config, self._topics, _new_uuid_text, self._group_config)

    def _group_config(self, group_id: str) -> dict[str, Any]:
        return group_values(self._node.image.config(ResourceType.GROUP, group_id), self._node.config)

    # ---- for the request handlers

    def submit(self, ctx: RequestContext, group_id: str, event: Event, fail: Fail) -> Any:
        """Let the group's coordinator handle an event; what the handler returns."""
        pending = Pending(ctx, fail)
        self.shell.submit(self.partition_of(group_id), pending, event)
        return pending.outcome()

    def submit_for_member(self, ctx: RequestContext, group_id: str, event: Event, fail: Fail) -> Any:
        """The same for what a member asks: it must be allowed to, and the group must have a name."""
        if not ctx.authorize(Operation.READ, AclResourceType.GROUP, group_id):
            return fail(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        if not group_id:
            return fail(ErrorCode.INVALID_GROUP_ID)
        return self.submit(ctx, group_id, event, fail)

    def gather(
        self,
        ctx: RequestContext,
        parts: Sequence[tuple[str, Event, Fail]],
        assemble: Callable[[list[Any]], Any],
    ) -> Any:
        """The same for several groups; `assemble` makes one response of their answers."""
        pending = Pending(ctx, _cannot_fail)
        gather = Gather(pending, len(parts), assemble)
        for place, (group_id, event, fail) in enumerate(parts):
            self.shell.submit(self.partition_of(group_id), gather.part(place, fail), event)
        return pending.outcome()

    def gather_all(
        self, ctx: RequestContext, event: Event, fail: Fail, assemble: Callable[[list[Any]], Any]
    ) -> Any:
        """The same for every partition that this node coordinates."""
        pending = Pending(ctx, _cannot_fail)
        partitions = self.shell.partitions
        gather = Gather(pending, len(partitions), assemble)
        for place, partition in enumerate(partitions):
            self.shell.submit(partition, gather.part(place, fail), event)
        return pending.outcome()

    def partition_of(self, group_id: str) -> int:
        topic = self._node.image.topics_by_name.get(CONSUMER_OFFSETS)
        return java_hash(group_id) % len(topic.partitions) if topic is not None else -1

    def leader_of(self, group_id: str) -> int:
        """The id of the node that coordinates the group; -1 when there is none now."""
        part = self._node.image.partition(CONSUMER_OFFSETS, self.partition_of(group_id))
        return part.leader if part is not None else -1

    async def ensure_topic(self) -> None:
        """Make `__consumer_offsets` if it is not there; KafkaError when that cannot be done."""
        known = self._node.image.topics_by_name.get(CONSUMER_OFFSETS)
        if known is not None and self.shell.has_begun(known.topic_id):
            return
        config = self._node.config
        # A cluster of fewer nodes than the setting asks for gets as many replicas as it can have.
        factor = min(config.get("offsets.topic.replication.factor"), len(self._node.image.brokers))
        settings = {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(config.get("offsets.topic.segment.bytes")),
        }
        topic = CreatableTopic(
            name=CONSUMER_OFFSETS,
            num_partitions=config.get("offsets.topic.num.partitions"),
            replication_factor=factor,
            configs=[CreatableTopicConfig(name, value) for name, value in settings.items()],
        )
        response = await self._node.controller.submit(
            lambda controller: controller.create_topics(CreateTopicsRequest(topics=[topic]))
        )
        (result,) = response.topics
        if result.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            message = f"cannot create {CONSUMER_OFFSETS}: {result.error_message}"
            logger.error(message)
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, message)

    # ---- for the node

    def metadata_changed(self) -> None:
        for machine in self.shell.machines():
            machine.state.config = self._node.config
        self.shell.metadata_changed()

    def close(self) -> None:
        self.shell.close()


class ImageTopics:
    """The newest metadata, as coordinators look at it."""

    def __init__(self, node: "Node") -> None:
        self._node = node

    @property
    def version(self) -> int:
        return self._node.image.offset

    def by_name(self, name: str) -> TopicInfo | None:
        return _info(self._node.image.topics_by_name.get(name))

    def by_id(self, topic_id: bytes) -> TopicInfo | None:
        return _info(self._node.image.topics_by_id.get(topic_id))

    def names(self) -> Iterable[str]:
        return self._node.image.topics_by_name

    def racks(self, topic_id: bytes, partition: int) -> frozenset[str]:
        image = self._node.image
        topic = image.topics_by_id.get(topic_id)
        if topic is None or partition >= len(topic.partitions):
            return frozenset()
        brokers = (image.brokers.get(replica) for replica in topic.partitions[partition].replicas)
        return frozenset(broker.rack for broker in brokers if broker is not None and broker.rack is not None)


def _info(topic: TopicImage | None) -> TopicInfo | None:
    return None if topic is None else TopicInfo(topic.name, topic.topic_id, len(topic.partitions))


def _cannot_fail(error: ErrorCode) -> Any:
    raise AssertionError(f"the parts of a request fail, not the whole: {error.name}")


def _new_uuid_text() -> str:
    """A random UUID in the form with hyphens, as in the member ids that Kafka makes."""
    text = random_uuid().hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def java_hash(text: str) -> int:
    """The hash by which Kafka spreads groups over partitions: Java's of a string, without its sign."""
    return _short_hash(text) if len(text) <= _SHORT else _hash(text)


def _hash(text: str) -> int:
    """The sum of the units of UTF-16, each times a power of 31, in 32 bits; ids may have 32 KiB, so that the
    loop is in C.
    """
    units = array("H", text.encode("utf-16-le", "surrogatepass"))
    if sys.byteorder == "big":
        units.byteswap()
    while len(_POWERS) < len(units):
        _POWERS.append(_POWERS[-1] * 31 & 0xFFFFFFFF)
    value: int = sum(map(mul, reversed(units), _POWERS)) & 0xFFFFFFFF
    if value < 0x80000000:
        return value
    return 0x100000000 - value if value != 0x80000000 else 0


_SHORT = 100
_POWERS = [1]
_short_hash = lru_cache(maxsize=10_000)(_hash)
