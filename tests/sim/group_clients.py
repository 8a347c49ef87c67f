"""Clients of both group protocols for simulations: what a consumer does with the answers, without a network.

They keep to the protocol: what an answer does not let them own they give up before they say so. Requests and
answers may be lost on the way; the client then sends what it would send after a time-out.
"""

from random import Random
from typing import Any

from mainstem.coordinator.group.embedded_protocol import (
    EmbeddedAssignment,
    EmbeddedPartitions,
    Subscription,
    read_assignment,
    read_subscription,
)
from mainstem.coordinator.group.state import Client
from mainstem.protocol import codec
from mainstem.protocol.apis.k11_join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from mainstem.protocol.apis.k12_heartbeat import HeartbeatRequest
from mainstem.protocol.apis.k13_leave_group import LeaveGroupRequest, MemberIdentity
from mainstem.protocol.apis.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from mainstem.protocol.apis.k68_consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from mainstem.protocol.errors import ErrorCode
from tests.coordinator.harness import Harness, Waiting

GROUP = "group"
# A partition by its topic's id, as the consumer protocol names it.
Owned = set[tuple[bytes, int]]

_FENCED = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND)


class Network:
    """Loses some of what is sent, as long as it is bad."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.is_bad = True

    def loses(self) -> bool:
        return self.is_bad and self._random.random() < 0.05

    def delays(self) -> bool:
        return self.is_bad and self._random.random() < 0.3


class ConsumerClient:
    """A consumer with group.protocol=consumer."""

    def __init__(self, harness: Harness, network: Network, member_id: str, **subscription: Any) -> None:
        self._harness = harness
        self._network = network
        self.member_id = member_id
        self.instance_id = subscription.pop("instance_id", None)
        self._subscription = subscription
        self.epoch = 0
        self.owned: Owned = set()
        self._assigned: Owned = set()
        self._must_tell_all = True
        self._told: Owned | None = None

    def describe(self) -> str:
        return f"{self.member_id} at epoch {self.epoch} owns {len(self.owned)}"

    def step(self) -> None:
        """Give up what has to be given up, perhaps, then send a heartbeat."""
        if not self._network.delays():
            self._reconcile()
        self._beat()

    def _reconcile(self) -> None:
        """What is not assigned goes first; only then comes what is new."""
        self.owned = set(self._assigned)

    def _beat(self) -> None:
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=self.instance_id,
        )
        if self._must_tell_all:
            request.rebalance_timeout_ms = 60_000
            request.subscribed_topic_names = self._subscription.get("names")
            request.subscribed_topic_regex = self._subscription.get("regex")
        if self._must_tell_all or self._told != self.owned:
            request.topic_partitions = _topics(self.owned)
        if self._network.loses():
            self._must_tell_all = True  # it was lost on the way
            return
        told = set(self.owned)
        answer = self._send(request)
        if answer is None or self._network.loses():
            self._lost(told)
            return
        self._hear(answer, told)

    def _lost(self, told: Owned) -> None:
        """As far as the client knows, nothing came. It has said what it owns, and what it was given but had
        not taken by then may be another's now: it asks for all of its assignment anew.
        """
        self._must_tell_all = True
        self._assigned &= told

    def _hear(self, answer: ConsumerGroupHeartbeatResponse, told: Owned) -> None:
        if answer.error_code in _FENCED:
            self._start_anew()
            return
        if answer.error_code == ErrorCode.UNRELEASED_INSTANCE_ID:
            return
        assert not answer.error_code, answer
        self.epoch = answer.member_epoch
        self._must_tell_all = False
        self._told = told
        if answer.assignment is not None:
            self._assigned = {
                (topic.topic_id, partition)
                for topic in answer.assignment.topic_partitions
                for partition in topic.partitions
            }

    def _start_anew(self) -> None:
        self.epoch = 0
        self.owned, self._assigned, self._told = set(), set(), None
        self._must_tell_all = True

    def leave(self, epoch: int = -1) -> None:
        self.owned = set()
        if self.instance_id is None:
            epoch = -1  # only a static member can leave for a while
        self._send(ConsumerGroupHeartbeatRequest(GROUP, self.member_id, epoch, self.instance_id))

    def _send(self, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse | None:
        client = Client("sim", "/sim")
        waiting = self._harness.send(
            lambda machine, token, now_ms: machine.consumer.heartbeat(request, 1, client, token, now_ms)
        )
        answer = waiting.answer
        return None if isinstance(answer, ErrorCode) else answer


class ClassicClient:
    """A consumer of the classic protocol with an eager assignor: it gives up everything before it joins."""

    def __init__(self, harness: Harness, network: Network, name: str, topic: str) -> None:
        self._harness = harness
        self._network = network
        self._topic = topic
        self.name = name
        self.member_id = ""
        self.epoch = -1
        self.owned: Owned = set()
        self._waiting: Waiting | None = None
        self._act = self._join

    def describe(self) -> str:
        return f"{self.member_id} in generation {self.epoch} owns {len(self.owned)}"

    def step(self) -> None:
        """Hear the answer if one is there; send the next request if none is awaited."""
        if self._waiting is not None:
            answer = self._waiting.answer
            if answer is None:
                return
            self._waiting = None
            if self._network.loses() or isinstance(answer, ErrorCode):
                self._act = self._join  # lost, or the coordinator is another one now
            else:
                self._hear(answer)
        self._act()

    def restarted(self) -> None:
        """The coordinator that was to answer is gone."""
        if self._waiting is not None:
            self._waiting = None
            self._act = self._join

    def leave(self, epoch: int = -1) -> None:
        self.owned = set()
        request = LeaveGroupRequest(GROUP, members=[MemberIdentity(self.member_id)])
        self._harness.send(lambda m, token, now_ms: m.classic.leave_group(request, 5, token, now_ms))

    def _join(self) -> None:
        self.owned = set()
        metadata = b"\0\3" + codec.encode(Subscription([self._topic]), 3)
        request = JoinGroupRequest(
            GROUP,
            session_timeout_ms=45_000,
            rebalance_timeout_ms=60_000,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol("range", metadata)],
        )
        client = Client(self.name, "/sim")
        self._send(lambda m, token, now_ms: m.classic.join_group(request, 9, client, token, now_ms))

    def _sync(self, assignments: list[SyncGroupRequestAssignment]) -> None:
        request = SyncGroupRequest(GROUP, self.epoch, self.member_id, assignments=assignments)
        self._send(lambda m, token, now_ms: m.classic.sync_group(request, 5, token, now_ms))

    def _beat(self) -> None:
        request = HeartbeatRequest(GROUP, self.epoch, self.member_id)
        self._send(lambda m, token, now_ms: m.classic.heartbeat(request, token, now_ms))

    def _send(self, event: Any) -> None:
        self._waiting = self._harness.send(event)

    def _hear(self, answer: Any) -> None:
        error = answer.error_code
        if isinstance(answer, JoinGroupResponse):
            self._hear_join(answer)
        elif error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            self.owned, self.member_id, self._act = set(), "", self._join
        elif error == ErrorCode.REBALANCE_IN_PROGRESS:
            self._act = self._join
        else:
            assert not error, answer
            if hasattr(answer, "assignment"):
                self.owned = self._read(answer.assignment)
            self._act = self._beat

    def _hear_join(self, answer: JoinGroupResponse) -> None:
        self._act = self._join
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
        elif answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        elif answer.error_code != ErrorCode.REBALANCE_IN_PROGRESS:
            assert not answer.error_code, answer
            self.member_id, self.epoch = answer.member_id, answer.generation_id
            assignments = self._assign(answer) if answer.leader == self.member_id else []
            self._act = lambda: self._sync(assignments)

    def _assign(self, answer: JoinGroupResponse) -> list[SyncGroupRequestAssignment]:
        """As a leader: every topic's partitions in turn to those who want it."""
        shares: dict[str, dict[str, list[int]]] = {member.member_id: {} for member in answer.members}
        wanted = {m.member_id: set(read_subscription(m.metadata).topics) for m in answer.members}
        for name in sorted(set().union(*wanted.values())):
            info = self._harness.machine.state.topics.by_name(name)
            takers = sorted(member_id for member_id, topics in wanted.items() if name in topics)
            for partition in range(info.partition_count if info is not None else 0):
                taker = takers[partition % len(takers)]
                shares[taker].setdefault(name, []).append(partition)
        return [
            SyncGroupRequestAssignment(
                member_id,
                b"\0\3"
                + codec.encode(EmbeddedAssignment([EmbeddedPartitions(*item) for item in share.items()]), 3),
            )
            for member_id, share in shares.items()
        ]

    def _read(self, data: bytes) -> Owned:
        if not data:
            return set()
        topics = self._harness.machine.state.topics
        return {
            (info.topic_id, partition)
            for topic in read_assignment(data).assigned_partitions
            if (info := topics.by_name(topic.topic)) is not None
            for partition in topic.partitions
        }


def _topics(owned: Owned) -> list[TopicPartitions]:
    by_topic: dict[bytes, list[int]] = {}
    for topic_id, partition in sorted(owned):
        by_topic.setdefault(topic_id, []).append(partition)
    return [TopicPartitions(topic_id, partitions) for topic_id, partitions in by_topic.items()]
