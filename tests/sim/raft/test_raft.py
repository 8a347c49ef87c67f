"""A quorum of one to five voters, and observers, in every kind of trouble: the rules of `checks.py` hold in
every history, and whoever breaks one on purpose is found out.

The same seed gives the same history; `simulate(seed)` in a Python of the environment plays one.
"""

import logging
import pickle
import random
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any, get_args

import pytest
from msgspec.structs import replace

from mainstem.cluster.batches import data_batch
from mainstem.cluster.raft import election, events, fetched, framing, serving
from mainstem.cluster.raft.control_records import VotersRecord
from mainstem.cluster.raft.effects import BecameActive, InstallSnapshot, StoreQuorumState, Truncate
from mainstem.cluster.raft.election import Election
from mainstem.cluster.raft.fetching import fetch_from_anybody
from mainstem.cluster.raft.follower import Follower
from mainstem.cluster.raft.history import ControlHistory
from mainstem.cluster.raft.leader import Leader
from mainstem.cluster.raft.replica import Replica
from mainstem.cluster.raft.unattached import Unattached
from mainstem.cluster.raft.voter_changes import VoterChanges
from mainstem.cluster.raft.voters import Voter, VoterSet
from mainstem.protocol.apis.k01_fetch import FetchPartition, FetchResponse
from mainstem.protocol.apis.k52_vote import VoteRequest
from tests.sim.raft import node
from tests.sim.raft.disk import Snapshot
from tests.sim.raft.node import Node
from tests.sim.raft.storm import Storm
from tests.sim.raft.world import World
from tests.sim.seeds import SEED, Breakage, assert_found_out, simulate_all, soaked

STORM_MS = 10_000
SEEDS_PER_TEST = 15


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """The nodes have much to say of what happens to them."""
    logging.disable(logging.ERROR)
    yield
    logging.disable(logging.NOTSET)


def world_of(seed: int) -> World:
    rng = random.Random(~seed)
    return World(
        seed,
        voters=rng.choice((1, 2, 3, 3, 3, 4, 5)),
        observers=rng.choice((0, 0, 1, 2)),
        dynamic=rng.random() < 0.6,
        auto_join=rng.random() < 0.3,
    )


def simulate(seed: int) -> World:
    world = world_of(seed)
    world.start()
    Storm(world).run(STORM_MS)
    world.calm_down()
    return world


def simulate_only(kinds: tuple[str, ...], seed: int) -> World:
    """Of these kinds of trouble there is much."""
    world = World(seed, voters=3, observers=2, dynamic=True)
    world.start()
    world.run(3000)
    Storm(world, *kinds).run(STORM_MS)
    world.calm_down()
    return world


@pytest.mark.parametrize("group", soaked(range(300), 6))
def test_the_rules_of_the_quorum_hold_in_every_history(group: int) -> None:
    first = SEED * 1000 + group * SEEDS_PER_TEST
    simulate_all(simulate, range(first, first + SEEDS_PER_TEST))


def test_a_seed_gives_the_same_history_again() -> None:
    def digest_of(seed: int) -> list[tuple[Any, ...]]:
        world = simulate(seed)
        return [
            (n.id, n.disk.digest_at(n.disk.end_offset), n.disk.quorum_state) for n in world.nodes.values()
        ]

    for seed in range(5):
        assert digest_of(seed) == digest_of(seed)


def test_the_histories_have_everything_in_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is rare must not be missing for want of chances."""
    seen: Counter[str] = Counter()

    def say(self: World, node: Node, what: object) -> None:
        seen[type(what).__name__] += 1

    monkeypatch.setattr(World, "say", say)
    voters: set[int] = set()
    for seed in range(15):
        voters.update(len(node.raft.voters) for node in simulate(seed).up if node.raft is not None)
        simulate_only(("trim", "lose_power", "damage"), seed)
    wanted = [*get_args(events.Event), BecameActive, Truncate, InstallSnapshot]
    assert [each.__name__ for each in wanted if not seen[each.__name__]] == []
    assert voters >= {1, 2, 3, 4, 5}


# ---- rules broken on purpose

raise_high_watermark = Replica.raise_high_watermark
begin_to_lead = Leader.__init__
begin_epoch = Leader.begin
poll_leader = Leader.poll
send_elsewhere = serving._send_elsewhere
vote_request = framing.vote_request
to_record = VoterSet.to_record


def store_another_epoch(self: Node, effect: StoreQuorumState) -> None:
    state = replace(effect.state, leader_epoch=effect.state.leader_epoch % 2)
    self.world.checker.stores(self, state)
    self.disk.quorum_state = state


def sync_nothing(self: Node) -> None:
    self.later(1, lambda: self.tell(events.Durable(self.disk.end_offset)))


def write_an_earlier_epoch(values: list[bytes], *, epoch: int, **options: Any) -> bytearray:
    return data_batch(values, epoch=epoch - 1, **options)


def read_another_snapshot(data: bytes) -> Snapshot:
    return Snapshot(*pickle.loads(data))._replace(digest=1)


def vote_again(self: Unattached, replica: Replica, *_: object) -> bool:
    replica.voted = None
    return True


def claim_more(replica: Replica, voter: Voter, pre_vote: bool) -> VoteRequest:
    request = vote_request(replica, voter, pre_vote)
    (partition,) = request.topics[0].partitions
    partition.last_offset_epoch, partition.last_offset = max(0, replica.epoch - 1), 10**9
    return request


def never_stand(self: Unattached, replica: Replica) -> int | None:
    return fetch_from_anybody(replica)


def commit_without_a_record_of_its_own(self: Leader, replica: Replica) -> None:
    begin_to_lead(self, replica)
    self.start_offset = -1


def ends_of_the_leader(self: Leader, replica: Replica) -> list[int]:
    return [replica.durable_offset for _ in replica.history.voters]


def be_active_at_once(self: Leader, replica: Replica, count: Election) -> None:
    begin_epoch(self, replica, count)
    if not self.is_active:
        self.is_active = True
        replica.effects.append(BecameActive(self.epoch))


def have_a_majority(self: Leader, replica: Replica) -> int | None:
    self._check_quorum_ms = replica.now_ms + 1000
    return poll_leader(self, replica)


def let_it_go_back(self: Replica, offset: int) -> bool:
    self.high_watermark = None
    return raise_high_watermark(self, offset)


def commit_all_but_one(self: Replica, offset: int) -> bool:
    return raise_high_watermark(self, offset - 1)


def take_all_for_committed(self: Replica, offset: int) -> bool:
    return raise_high_watermark(self, self.end_offset if isinstance(self.role, Follower) else offset)


def cut_everything_off(replica: Replica, _diverging: object) -> bool:
    replica.high_watermark = None
    replica.truncate(replica.log.start_offset)
    return True


def look_at_lengths(replica: Replica, asked: events.Asked, wanted: FetchPartition) -> FetchResponse | None:
    return send_elsewhere(replica, asked, wanted) if wanted.fetch_offset > replica.end_offset else None


def record_two_fewer(self: VoterSet) -> VotersRecord:
    return to_record(VoterSet(self.voters[:-2]) if len(self) > 3 else self)


ALWAYS: Any = property(lambda self: True)
BREAKAGES = {
    "what is stored is lost": Breakage(Node, "_store_quorum_state", lambda self, effect: None, "not on disk"),
    "another epoch is stored": Breakage(
        Node, "_store_quorum_state", store_another_epoch, "epoch goes back|not on disk"
    ),
    "the log is not synced": Breakage(Node, "_sync_soon", sync_nothing, "durable"),
    "the controller writes an earlier epoch": Breakage(
        node, "data_batch", write_an_earlier_epoch, "epochs of its log go back"
    ),
    "a snapshot is of another log": Breakage(
        Snapshot, "decode", staticmethod(read_another_snapshot), "installs .* not committed"
    ),
    "one vote is enough": Breakage(Election, "is_won", ALWAYS, "two leaders"),
    "nobody stands for election": Breakage(Unattached, "poll", never_stand, "no liveness"),
    "earlier epochs are committed alone": Breakage(
        Leader, "__init__", commit_without_a_record_of_its_own, "without a record of its own epoch"
    ),
    "the leader is the majority": Breakage(Leader, "_ends", ends_of_the_leader, "durable at"),
    "active before the epoch is committed": Breakage(
        Leader, "begin", be_active_at_once, "whose start is not committed"
    ),
    "resigning is not told": Breakage(
        Leader, "end", lambda self, replica: None, "without a word|said otherwise"
    ),
    "the high watermark goes back": Breakage(Replica, "raise_high_watermark", let_it_go_back, "goes back"),
    "batches are committed in part": Breakage(
        Replica, "raise_high_watermark", commit_all_but_one, "part of a batch"
    ),
    "followers take all for committed": Breakage(
        Replica, "raise_high_watermark", take_all_for_committed, "no leader committed"
    ),
    "too much is truncated": Breakage(fetched, "_truncate", cut_everything_off, "truncates"),
    "nobody looks where logs part": Breakage(
        serving, "_send_elsewhere", look_at_lengths, "match|no leader|no liveness"
    ),
    "voters do not act when written": Breakage(
        ControlHistory, "append", lambda self, offset, record: None, "voters .* act"
    ),
    "two voters change at once": Breakage(VoterSet, "to_record", record_two_fewer, "two voters at once"),
}


# Found only where there is much of some kinds of trouble.
RARE_BREAKAGES = {
    "truncation does not undo voters": (
        Breakage(ControlHistory, "truncate", lambda self, end_offset: None, "voters .* act"),
        ("add_voter", "remove_voter", "isolate", "kill"),
    ),
    "voters change at any time": (
        Breakage(VoterChanges, "obstacle", lambda self, replica: None, "changes the voters"),
        ("add_voter", "remove_voter", "isolate", "kill"),
    ),
    "leading on without a majority": (
        Breakage(Leader, "poll", have_a_majority, "without a majority"),
        ("isolate",),
    ),
    "who is behind claims to be ahead": (
        Breakage(election, "vote_request", claim_more, "without all that is"),
        ("isolate", "kill"),
    ),
    "who has voted votes again": (
        Breakage(Unattached, "grants", vote_again, "votes twice|without all that is"),
        ("split", "kill"),
    ),
}


@pytest.mark.parametrize("name", BREAKAGES)
def test_a_broken_rule_is_found_out(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    assert_found_out(monkeypatch, BREAKAGES[name], simulate, 200)


@pytest.mark.parametrize("name", RARE_BREAKAGES)
def test_a_rule_that_is_rarely_needed_is_found_out(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    breakage, kinds = RARE_BREAKAGES[name]
    assert_found_out(monkeypatch, breakage, partial(simulate_only, kinds), 200)
