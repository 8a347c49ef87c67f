"""A partition's leader state under a long random history, repeatable by its seed.

The simulated broker appends, fsyncs, hears of followers, proposes, shrinks and grows the in-sync set, answers
and forgets requests, in any order. After every step the rules of the module must hold.
"""

import random
from collections import Counter

import pytest

from mainstem.replication.leader_state import LeaderState
from tests.sim.seeds import SEED, soaked

STEPS = 400


class Request:
    """A produce that waits."""

    def __init__(self, needs: int, acks: int) -> None:
        self.needs = needs
        self.acks = acks


class Simulation:
    """One partition with up to three replicas, and the model of what must have happened."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.replicas = tuple(range(1, self.random.randint(1, 3) + 1))
        self.leader: LeaderState[Request] = LeaderState(1, self.replicas, 0)
        self.high_watermark = 0
        self.proposed: tuple[int, ...] = ()
        self.log_end = 0
        self.follower_end = dict.fromkeys(self.replicas[1:], 0)
        self.waiting: set[Request] = set()
        self.answered: Counter[Request] = Counter()
        self.gone: set[Request] = set()

    # ---- what can happen

    def append(self) -> None:
        self.log_end += self.random.randint(1, 5)
        self._wait(self.log_end)

    def send_again(self) -> None:
        if self.log_end:
            self._wait(self.random.randint(1, self.log_end))

    def _wait(self, needs: int) -> None:
        request = Request(needs, self.random.choice((1, -1)))
        leader = self.leader
        reached = leader.local_end_offset if request.acks == 1 else self.high_watermark
        if reached >= needs:
            self.answered[request] += 1
            return
        (leader.local_waiters if request.acks == 1 else leader.ack_waiters).add(needs, request)
        self.waiting.add(request)

    def flush_completes(self) -> None:
        target = self.random.randint(self.leader.local_end_offset, self.log_end)
        self._advanced(target)

    def follower_fetches(self) -> None:
        if self.follower_end:
            follower = self.random.choice(list(self.follower_end))
            end = self.random.randint(self.follower_end[follower], self.log_end)
            self.follower_end[follower] = self.leader.replica_end_offsets[follower] = end
            self._advanced(self.leader.local_end_offset)

    def isr_is_proposed(self) -> None:
        in_sync = [r for r, end in self.follower_end.items() if end >= self.high_watermark]
        chosen = self.random.sample(in_sync, self.random.randint(0, len(in_sync)))
        self.proposed = (1, *sorted(chosen))
        self.leader.propose_isr(self.proposed)

    def proposal_is_decided(self) -> None:
        if self.proposed:
            self.leader.take_isr(self.random.choice((self.proposed, self.leader.isr)))
            self.proposed = ()
            self._advanced(self.leader.local_end_offset)

    def request_leaves(self) -> None:
        if self.waiting:
            request = self.random.choice(sorted(self.waiting, key=lambda r: r.needs))
            self.leader.local_waiters.remove(request)
            self.leader.ack_waiters.remove(request)
            self.waiting.remove(request)
            self.gone.add(request)

    def _advanced(self, end_offset: int) -> None:
        committed = self.leader.local_log_advanced(end_offset)
        assert committed == self.leader.committed_end_offset()
        self.high_watermark = max(self.high_watermark, committed)
        for request in self.leader.take_acknowledged(self.high_watermark):
            self.answered[request] += 1
            self.waiting.remove(request)

    # ---- what must hold

    def check(self) -> None:
        leader = self.leader
        assert self.high_watermark <= leader.local_end_offset <= self.log_end
        for replica in {*leader.isr, *self.proposed} - {1}:
            assert self.high_watermark <= self.follower_end[replica], "not on every in-sync replica"
        assert set(self.answered.values()) <= {1}, "somebody was answered twice"
        assert not self.gone & set(self.answered)
        for request in self.answered:
            reached = leader.local_end_offset if request.acks == 1 else self.high_watermark
            assert request.needs <= reached, "answered before it was committed"
        for request in self.waiting:
            reached = leader.local_end_offset if request.acks == 1 else self.high_watermark
            assert request.needs > reached, "committed, and nobody answered"
        queued = len(leader.local_waiters.waiting) + len(leader.ack_waiters.waiting)
        assert queued == len(self.waiting)

    def run(self) -> None:
        events = (
            self.append,
            self.append,
            self.send_again,
            self.flush_completes,
            self.flush_completes,
            self.follower_fetches,
            self.follower_fetches,
            self.isr_is_proposed,
            self.proposal_is_decided,
            self.request_leaves,
        )
        for _ in range(STEPS):
            self.random.choice(events)()
            self.check()

    def settle(self) -> None:
        """Everything becomes durable everywhere: then nobody may be left waiting."""
        self.proposal_is_decided()
        for follower in self.follower_end:
            self.follower_end[follower] = self.leader.replica_end_offsets[follower] = self.log_end
        self._advanced(self.log_end)
        self.check()
        assert not self.waiting
        assert self.high_watermark == self.log_end


@pytest.mark.parametrize("seed", soaked(range(SEED, SEED + 60), 20))
def test_the_rules_of_the_leader_hold_in_any_order_of_events(seed: int) -> None:
    simulation = Simulation(seed)
    simulation.run()
    simulation.settle()
