"""The cluster of the simulation of coordinators that move: a controller whose decisions reach each broker at
another time, a network that loses requests and answers, and everything that can happen to brokers. Only
replicas in sync are elected.
"""

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from msgspec import Struct

from mainstem.broker.logs.partition import Partition
from mainstem.cluster.image import MetadataImage, PartitionImage, TopicImage
from mainstem.protocol import registry
from mainstem.protocol.resources import TopicPartition
from tests.sim.moving_broker import (
    BROKERS,
    PATIENCE_S,
    TOPICS,
    Clock,
    NoAnswer,
    SimulatedBroker,
    topic_id_of,
)


class Led(Struct):
    """What the controller knows of a partition."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]


class World:
    """The brokers, their controller, the network, and chance."""

    def __init__(self, random: Random, loop: asyncio.AbstractEventLoop) -> None:
        self.random = random
        self.loop = loop
        self.is_calm = False
        self.failure: BaseException | None = None
        self.elections = 0
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._producer_ids = 1000
        self.parts = {
            (topic, index): Led(random.choice(BROKERS), 0, BROKERS)
            for topic, count in TOPICS.items()
            for index in range(count)
        }
        self.image = MetadataImage()
        self._offset = 0
        self._renew_image()
        self.brokers = {node_id: SimulatedBroker(self, node_id) for node_id in BROKERS}

    def happens(self, probability: float) -> bool:
        return not self.is_calm and self.random.random() < probability

    def now_ms(self) -> int:
        return Clock(self.loop).now_ms()

    def run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self.loop.create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        if not task.cancelled() and task.exception() is not None:
            self.failure = self.failure or task.exception()

    async def allocate_producer_ids(self) -> tuple[int, int]:
        await asyncio.sleep(self.random.uniform(0, 0.1))
        first, self._producer_ids = self._producer_ids, self._producer_ids + 10
        return first, 10

    # ---- the network

    async def call(
        self, node_id: int, request: Any, version: int | None = None, timeout_s: float = PATIENCE_S
    ) -> Any:
        """The response; `NoAnswer` when there is none in time."""
        if version is None:
            version = registry.API_KEYS[request.SCHEMA.api_key].max_version
        return await self.deliver(node_id, lambda broker: broker.handle(request, version), timeout_s)

    async def deliver(
        self,
        node_id: int,
        serve: Callable[[SimulatedBroker], Coroutine[Any, Any, Any]],
        timeout_s: float = PATIENCE_S,
    ) -> Any:
        """Take a request to a broker, and its answer back."""
        await asyncio.sleep(self.random.uniform(0.0005, 0.01))
        broker = self.brokers[node_id]
        if not broker.is_up:
            raise NoAnswer
        if self.happens(0.01):
            await asyncio.sleep(timeout_s)
            raise NoAnswer
        incarnation = broker.incarnation
        try:
            async with asyncio.timeout(timeout_s):
                response = await serve(broker)
                await asyncio.sleep(self.random.uniform(0.0005, 0.01))
        except TimeoutError:
            raise NoAnswer from None
        if broker.incarnation != incarnation:
            raise NoAnswer
        if self.happens(0.02):
            await asyncio.sleep(timeout_s)
            raise NoAnswer
        return response

    # ---- the controller

    def _renew_image(self) -> None:
        self._offset += 1
        topics = [
            TopicImage(
                topic,
                topic_id_of(topic),
                tuple(self._part(topic, index) for index in range(count)),
            )
            for topic, count in TOPICS.items()
        ]
        self.image = MetadataImage(
            offset=self._offset,
            topics_by_name={topic.name: topic for topic in topics},
            topics_by_id={topic.topic_id: topic for topic in topics},
        )

    def _part(self, topic: str, index: int) -> PartitionImage:
        led = self.parts[topic, index]
        return PartitionImage(index, led.leader, led.leader_epoch, self._offset, BROKERS, led.isr)

    def decided(self) -> None:
        self._renew_image()
        for broker in self.brokers.values():
            if broker.is_up:
                broker.tell(self.image)

    def elect(self, place: TopicPartition, leader: int) -> None:
        """Another leader, or the same one anew."""
        led = self.parts[place]
        assert leader in led.isr or leader == -1
        self.elections += 1
        led.leader = leader
        led.leader_epoch += 1

    def drop(self, node_id: int) -> None:
        """It is not in sync any more; where it is the last one, nobody leads until it is back."""
        for place, led in self.parts.items():
            left = tuple(member for member in led.isr if member != node_id)
            if left:
                led.isr = left
            if led.leader == node_id:
                living = [member for member in left if self.brokers[member].is_up]
                self.elect(place, self.random.choice(living) if living else -1)
        self.decided()

    def kill(self, node_id: int) -> None:
        self.brokers[node_id].kill()
        self.drop(node_id)

    def restart(self, node_id: int) -> None:
        self.brokers[node_id].start()
        self._elect_where_nobody_leads()

    def _elect_where_nobody_leads(self) -> None:
        for place, led in self.parts.items():
            living = [member for member in led.isr if self.brokers[member].is_up]
            if led.leader == -1 and living:
                self.elect(place, self.random.choice(living))
        self.decided()

    def trouble(self) -> None:
        """Whatever can happen to a cluster."""
        random = self.random
        down = [node_id for node_id, broker in self.brokers.items() if not broker.is_up]
        kind = random.random()
        if down and kind < 0.6:
            self.restart(down[0])
        elif kind < 0.35:
            self.kill(random.choice(BROKERS))
        elif kind < 0.6:
            self._elect_any()
        elif kind < 0.8:
            self.run(self._deafen(self.brokers[random.choice(BROKERS)]))
        else:
            self.run(self._slow_down(self.brokers[random.choice(BROKERS)]))

    def _elect_any(self) -> None:
        for place, led in self.parts.items():
            living = [member for member in led.isr if self.brokers[member].is_up]
            if living and self.random.random() < 0.5:
                self.elect(place, self.random.choice(living))
        self.decided()

    async def _deafen(self, broker: SimulatedBroker) -> None:
        """It goes on as if it led, for the controller has given it up without its knowledge."""
        broker.is_deaf = True
        await asyncio.sleep(self.random.uniform(0, 0.1))
        if broker.is_up:
            self.drop(broker.node_id)
        await asyncio.sleep(self.random.uniform(0, 1.5))
        broker.is_deaf = False
        self._elect_where_nobody_leads()

    async def _slow_down(self, broker: SimulatedBroker) -> None:
        """It does not replicate: what it leads is not committed, what it follows waits for it."""
        broker.is_slow = True
        await asyncio.sleep(self.random.uniform(0, 0.7))
        if broker.is_up:
            self.drop(broker.node_id)
        await asyncio.sleep(self.random.uniform(0, 0.5))
        broker.is_slow = False
        self._elect_where_nobody_leads()

    def calm_down(self) -> None:
        self.is_calm = True
        for node_id, broker in self.brokers.items():
            broker.is_deaf = broker.is_slow = False
            if not broker.is_up:
                self.restart(node_id)

    def caught_up(self, place: TopicPartition, led: Partition, follower: SimulatedBroker) -> None:
        """A follower has everything: it is in sync again, as its leader knows at once."""
        known = self.parts[place]
        leader = self.brokers.get(known.leader)
        if (
            follower.node_id in known.isr
            or leader is None
            or leader.image.offset != self.image.offset
            or led.leader_epoch != known.leader_epoch
            or leader.replicas.find(*place) is not led
            or follower.is_deaf
        ):
            return
        known.isr = tuple(sorted((*known.isr, follower.node_id)))
        self.decided()
        leader.apply(self.image)
