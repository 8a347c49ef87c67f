"""Groups of the consumer protocol (KIP-848): members heartbeat, the coordinator assigns, each member gives up
and takes partitions on its own and says when it has.
"""

import uuid
from random import Random

from bench.errors import BenchError
from bench.members.coordination import NOT_YET
from bench.members.driver import Channel, Driver
from mainstem.protocol.apis.k68_consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

_VERSION = 1
_JOINING = 0
_LEAVING = -1


class ConsumerGroup:
    """Stable when every partition is owned and no member has more than one above the fair share.

    A member owns what it has taken over and the coordinator has heard of.
    """

    def __init__(self, driver: Driver, group_id: str, topic: str, partitions: int, members: int) -> None:
        self.driver = driver
        self.group_id = group_id
        self.topic = topic
        self.partitions = partitions
        self.members = [ConsumerMember(self, driver.connect()) for _ in range(members)]
        self._left: list[ConsumerMember] = []
        self._random = Random(members)

    @property
    def is_stable(self) -> bool:
        sizes = [len(member.owned) for member in self.members]
        share, more = divmod(self.partitions, len(sizes))
        return sum(sizes) == self.partitions and max(sizes) - share <= (more > 0) and min(sizes) >= share

    @property
    def is_quiet(self) -> bool:
        return not any(member.is_busy for member in self.members)

    @property
    def is_gone(self) -> bool:
        return not self.members and not any(member.is_busy for member in self._left)

    def join(self) -> None:
        for member in self.members:
            member.heartbeat()

    def pause(self) -> None:
        """No more heartbeats; what is on its way will be answered."""
        for member in self.members:
            member.pause()

    def leave_one(self) -> None:
        """One member leaves; the others go on to heartbeat, their moments spread over the interval.

        In any order but that of joining: whom an assignor serves first must not matter.
        """
        self._leave(self.members.pop())
        for number, member in enumerate(self._random.sample(self.members, len(self.members))):
            member.resume(number / len(self.members))

    def leave_all(self) -> None:
        while self.members:
            self._leave(self.members.pop())

    def _leave(self, member: "ConsumerMember") -> None:
        self._left.append(member)
        member.leave()

    def check(self) -> None:
        """Every partition has exactly one owner."""
        owned = sorted(partition for member in self.members for partition in member.owned)
        if owned != list(range(self.partitions)):
            raise BenchError(f"{self.group_id} is stable but its members own {len(owned)} partitions")


class ConsumerMember:
    """A member as clients are: it says what is new to the coordinator at once, and else heartbeats as often
    as the coordinator wants.
    """

    def __init__(self, group: ConsumerGroup, channel: Channel) -> None:
        self._group = group
        self._channel = channel
        self._member_id = str(uuid.uuid4())
        self._epoch = _JOINING
        self._topic_id = b""
        self._held: frozenset[int] = frozenset()  # taken over; the coordinator may not know yet
        self.owned: frozenset[int] = frozenset()
        self._interval_s = 0.0
        self._beat = 0  # the number of the heartbeat that is due next; a timer of an older one does nothing

    @property
    def is_busy(self) -> bool:
        return self._channel.is_busy

    def pause(self) -> None:
        self._beat += 1

    def resume(self, part_of_interval: float) -> None:
        self._schedule(part_of_interval * self._interval_s)

    def heartbeat(self) -> None:
        self._beat += 1
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group.group_id, member_id=self._member_id, member_epoch=self._epoch
        )
        if self._epoch == _JOINING:
            request.rebalance_timeout_ms = 300_000
            request.subscribed_topic_names = [self._group.topic]
            request.topic_partitions = []
        elif self._held != self.owned:
            held = [TopicPartitions(self._topic_id, sorted(self._held))] if self._held else []
            request.topic_partitions = held
        told = self._held
        self._channel.ask(request, _VERSION, lambda answer: self._on_heartbeat(answer, told))

    def _on_heartbeat(self, answer: ConsumerGroupHeartbeatResponse, told: frozenset[int]) -> None:
        if answer.error_code in NOT_YET:
            self._schedule(0.05)
            return
        if answer.error_code:
            raise BenchError(f"ConsumerGroupHeartbeat was answered with {answer.error_message}")
        self.owned = told
        self._epoch = answer.member_epoch
        self._interval_s = answer.heartbeat_interval_ms / 1000
        if answer.assignment is not None:
            topics = answer.assignment.topic_partitions
            self._held = frozenset(partition for topic in topics for partition in topic.partitions)
            self._topic_id = topics[0].topic_id if topics else self._topic_id
        if self._held != self.owned:
            self.heartbeat()
        else:
            self._schedule(self._interval_s)

    def _schedule(self, seconds: float) -> None:
        self._beat += 1
        beat = self._beat
        self._group.driver.after(seconds, lambda: self.heartbeat() if beat == self._beat else None)

    def leave(self) -> None:
        self._beat += 1
        request = ConsumerGroupHeartbeatRequest(self._group.group_id, self._member_id, _LEAVING)
        self._channel.ask(request, _VERSION, lambda answer: None)
