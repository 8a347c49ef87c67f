"""Clients of the simulation of coordinators that move: committers and members of groups.

They behave as Kafka's do: an answer that is lost or an error that passes makes them ask again, at another
broker if need be. Each knows what it was promised, and says so when that does not hold.
"""

import asyncio
from typing import Any

from mainstem.broker.coordination.internal_topics import CONSUMER_OFFSETS
from mainstem.broker.coordination.java_hash import java_hash
from mainstem.protocol.apis.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from mainstem.protocol.apis.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from mainstem.protocol.apis.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import TopicPartition
from tests.sim.moving_broker import DATA, TOPICS, NoAnswer
from tests.sim.moving_world import World
from tests.sim.seeds import Violation

_BY_NAME = 9  # the last version of OffsetCommit and OffsetFetch that names topics
_PAUSE_S = 0.05


class Client:
    """Knows, or believes to know, who coordinates and who leads."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self._leader_epochs: dict[TopicPartition, int] = {}

    async def run(self) -> None:
        """What it does until the world is calm, and a little longer."""

    async def leader(self, topic: str, index: int) -> int:
        """As a broker says that is asked, which may be behind; but never an older one than before: whoever
        led then and has not heard that it does not any more may answer with what was true then.
        """
        while True:
            brokers = [broker for broker in self.world.brokers.values() if broker.is_up]
            part = self.world.random.choice(brokers).image.partition(topic, index)
            known = self._leader_epochs.get((topic, index), -1)
            if part is not None and part.leader >= 0 and part.leader_epoch >= known:
                self._leader_epochs[topic, index] = part.leader_epoch
                return part.leader
            await self.pause()

    async def pause(self) -> None:
        await asyncio.sleep(self.world.random.uniform(0, 2 * _PAUSE_S))

    async def ask(self, topic: str, key: str, request: Any, version: int | None = None) -> Any:
        """A coordinator's response, or None."""
        leader = await self.leader(topic, java_hash(key) % TOPICS[topic])
        try:
            return await self.world.call(leader, request, version)
        except NoAnswer:
            await self.pause()
            return None

    async def committed_offset(self, group: str, *, stable: bool = False) -> int | None:
        """What the group has committed for the first partition; None when that cannot be told now."""
        topics = [OffsetFetchRequestTopics(DATA, partition_indexes=[0])]
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group, topics=topics)], require_stable=stable
        )
        response = await self.ask(CONSUMER_OFFSETS, group, request, _BY_NAME)
        if response is not None:
            answer = response.groups[0]
            if not answer.error_code and not answer.topics[0].partitions[0].error_code:
                offset: int = answer.topics[0].partitions[0].committed_offset
                return offset
            await self.pause()
        return None


class Committer(Client):
    """Commits higher and higher positions of one partition, and looks at them now and then."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self.acknowledged = -1
        self._highest = 0
        self._seen = -1

    async def run(self) -> None:
        while not self.world.is_calm:
            await self._commit()
            if self.world.random.random() < 0.4:
                await self._look()
            await asyncio.sleep(self.world.random.uniform(0, 0.1))
        while not await self._look():
            pass
        while not await self._commit():
            pass

    async def _commit(self) -> bool:
        self._highest += 1
        partitions = [OffsetCommitRequestPartition(0, self._highest)]
        request = OffsetCommitRequest(
            self.name, topics=[OffsetCommitRequestTopic(DATA, partitions=partitions)]
        )
        response = await self.ask(CONSUMER_OFFSETS, self.name, request, _BY_NAME)
        if response is None:
            return False
        if response.topics[0].partitions[0].error_code:
            await self.pause()
            return False
        self.acknowledged = self._highest
        return True

    async def _look(self) -> bool:
        promised = self.acknowledged
        found = await self.committed_offset(self.name)
        if found is None:
            return False
        if found < promised:
            raise Violation(f"forgotten: {self.name} committed {promised}, {found} is there")
        if found < self._seen:
            raise Violation(f"taken back: {self.name} saw {self._seen}, then {found}")
        self._seen = found
        return True


class Member(Client):
    """The only member of a group of the consumer protocol. Once it has joined, it is a member."""

    async def run(self) -> None:
        epoch = 0
        while not self.world.is_calm or not epoch:
            request = ConsumerGroupHeartbeatRequest(self.name, f"{self.name}-member", epoch)
            if not epoch:
                request.rebalance_timeout_ms = 60_000
                request.subscribed_topic_names = [DATA]
                request.topic_partitions = []
            response = await self.ask(CONSUMER_OFFSETS, self.name, request)
            if response is not None and not response.error_code:
                if response.member_epoch < epoch:
                    raise Violation(f"forgotten: {self.name} was at {epoch}, is at {response.member_epoch}")
                epoch = response.member_epoch
            elif response is not None and response.error_code in (
                ErrorCode.UNKNOWN_MEMBER_ID,
                ErrorCode.FENCED_MEMBER_EPOCH,
                ErrorCode.GROUP_ID_NOT_FOUND,
            ):
                raise Violation(f"forgotten: {self.name} was a member: {ErrorCode(response.error_code).name}")
            await asyncio.sleep(self.world.random.uniform(0, 0.3))
