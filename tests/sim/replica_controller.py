"""A small honest controller for one partition, which decides on its leader and on who is in sync."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from mainstem.cluster.image import PartitionImage
from mainstem.protocol.errors import ErrorCode
from mainstem.replication.leader_state import Proposal

NODES = (1, 2, 3)
MIN_ISR = 2

# The partition, and the epochs of the brokers that are not fenced.
Decision = tuple[PartitionImage, dict[int, int]]


@dataclass
class Controller:
    """Decides on leader and replicas in sync, as KIP-966 has it: who leaves a set that is too small then, may
    still be elected; who may have lost something may not.
    """

    part: PartitionImage = field(default_factory=lambda: PartitionImage(0, 1, 0, 0, NODES, NODES))
    eligible: frozenset[int] = frozenset()
    epochs: dict[int, int] = field(default_factory=dict)  # of brokers that are not fenced
    next_epoch: int = 100
    decisions: list[Decision] = field(default_factory=list)
    allows_unclean: bool = False
    unclean_elections: int = 0
    on_joined: Callable[[int], None] = lambda _: None
    random: Random = field(default_factory=lambda: Random(0))

    def decided(self) -> None:
        self.decisions.append((self.part, dict(self.epochs)))

    def register(self, node_id: int, *, was_clean: bool) -> int:
        self.next_epoch += 1
        self.epochs[node_id] = self.next_epoch
        if not was_clean:
            others = (set(self.part.isr) | self.eligible) - {node_id}
            if others:  # else it is the last one that is known to have had everything
                self._take_out(node_id)
                self.eligible -= {node_id}
            if self.part.leader == node_id:
                self._change(leader=-1, leader_epoch=self.part.leader_epoch + 1)
        self._elect()
        self.decided()
        return self.next_epoch

    def fence(self, node_id: int) -> None:
        if self.epochs.pop(node_id, None) is not None:
            self._take_out(node_id)
            self._elect()
            self.decided()

    def _take_out(self, node_id: int) -> None:
        isr = tuple(member for member in self.part.isr if member != node_id)
        if node_id in self.part.isr:
            if len(isr) < MIN_ISR:
                self.eligible |= {node_id}
            self._change(isr=isr)
        if self.part.leader == node_id:
            self._change(leader=-1, leader_epoch=self.part.leader_epoch + 1)

    def _elect(self) -> None:
        if self.part.leader >= 0:
            return
        for candidates in (self.part.isr, sorted(self.eligible)):
            alive = [node_id for node_id in candidates if node_id in self.epochs]
            if alive:
                node_id = self.random.choice(alive)
                self._lead(node_id, self.part.isr if node_id in self.part.isr else (node_id,))
                return
        if self.allows_unclean and self.epochs:
            self.unclean_elections += 1
            self.eligible = frozenset()
            self._lead(min(self.epochs), (min(self.epochs),))

    def _lead(self, node_id: int, isr: tuple[int, ...]) -> None:
        isr = tuple(member for member in isr if member in self.epochs)
        self.eligible -= set(isr)
        self._change(leader=node_id, leader_epoch=self.part.leader_epoch + 1, isr=isr)

    def _change(self, **changes: Any) -> None:
        fields = {name: getattr(self.part, name) for name in self.part.__struct_fields__}
        fields |= {"partition_epoch": self.part.partition_epoch + 1, **changes}
        self.part = PartitionImage(**fields)

    def alter(self, leader: int, proposal: Proposal) -> ErrorCode:
        part = self.part
        if leader != part.leader or proposal.leader_epoch != part.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if proposal.partition_epoch != part.partition_epoch:
            return ErrorCode.INVALID_UPDATE_VERSION
        for member, epoch in proposal.members:
            if member != leader and (member not in self.epochs or epoch not in (-1, self.epochs[member])):
                return ErrorCode.INELIGIBLE_REPLICA
        for member in set(proposal.isr) - set(part.isr):
            self.on_joined(member)
        left = set(part.isr) - set(proposal.isr)
        if len(proposal.isr) >= MIN_ISR:
            self.eligible = frozenset()
        else:
            self.eligible = (self.eligible | left) - set(proposal.isr)
        self._change(isr=proposal.isr)
        self.decided()
        return ErrorCode.NONE
