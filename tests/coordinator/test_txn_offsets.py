"""Offsets in transactions: they wait for the end, they are fenced, and they go the way of other offsets."""

from typing import Any

import pytest

from mainstem.coordinator.group.single_commit import SingleCommit
from mainstem.coordinator.group.state import Client
from mainstem.protocol.apis.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from mainstem.protocol.apis.k68_consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from mainstem.protocol.errors import ErrorCode
from tests.coordinator.harness import Waiting
from tests.coordinator.txn_offset_world import TxnWorld

UNSTABLE = "UNSTABLE_OFFSET_COMMIT"


@pytest.fixture
def world() -> TxnWorld:
    return TxnWorld()


# ---- the end of a transaction


def test_offsets_count_from_the_commit_on(world: TxnWorld) -> None:
    world.commit("g", at={0: 1})
    assert world.txn_commit(7, "g", {0: 5, 1: 6}) == {0: "NONE", 1: "NONE"}
    assert world.fetch("g") == {0: 1}
    assert world.stable("g") == {0: UNSTABLE, 1: UNSTABLE}
    world.end(7, "commit")
    assert world.fetch("g") == world.stable("g") == {0: 5, 1: 6}
    assert world.open_transactions() == {}


def test_offsets_of_an_aborted_transaction_never_count(world: TxnWorld) -> None:
    world.commit("g", at={0: 1})
    world.txn_commit(7, "g", {0: 5, 1: 6})
    world.end(7, "abort")
    assert world.fetch("g") == world.stable("g") == {0: 1}
    assert world.open_transactions() == {}


def test_a_marker_of_a_producer_without_offsets_changes_nothing(world: TxnWorld) -> None:
    world.txn_commit(7, "g", {0: 5})
    world.end(8, "commit")
    assert world.stable("g") == {0: UNSTABLE}


def test_the_last_offset_of_a_transaction_counts(world: TxnWorld) -> None:
    world.txn_commit(7, "g", {0: 5})
    world.txn_commit(7, "g", {0: 3})
    world.end(7, "commit")
    assert world.fetch("g") == {0: 3}


def test_one_transaction_may_hold_offsets_of_several_groups(world: TxnWorld) -> None:
    world.txn_commit(7, "g", {0: 5})
    world.txn_commit(7, "h", {0: 6}, topic="u")
    world.end(7, "commit")
    assert world.fetch("g") == {0: 5}
    assert world.fetch("h", "u") == {0: 6}


def test_the_note_and_the_leader_epoch_are_kept(world: TxnWorld) -> None:
    world.txn_commit(7, "g", {0: 5}, metadata="note", epoch=4)
    assert world.log() == ["g t-0 at 5 'note' (version 4)"]
    world.end(7, "commit")
    stored = world.harness.machine.offsets.store.get("g", "t", 0)
    assert (stored.offset, stored.leader_epoch, stored.metadata) == (5, 4, "note")


def test_notes_that_are_too_long_are_refused_one_by_one() -> None:
    world = TxnWorld(offset_metadata_max_bytes="4")
    assert world.txn_commit(7, "g", {0: 5}, metadata="fives") == {0: "OFFSET_METADATA_TOO_LARGE"}
    assert world.log() == []
    assert world.open_transactions() == {}
    assert world.txn_commit(7, "g", {0: 5}, metadata="four") == {0: "NONE"}


# ---- who comes last


def test_a_later_plain_commit_counts_more_than_an_open_transaction(world: TxnWorld) -> None:
    world.txn_commit(7, "g", {0: 5, 1: 5})
    world.commit("g", at={0: 3})
    assert world.stable("g") == {0: UNSTABLE, 1: UNSTABLE}
    world.end(7, "commit")
    assert world.fetch("g") == {0: 3, 1: 5}


def test_a_transaction_may_commit_again_after_a_plain_commit(world: TxnWorld) -> None:
    world.txn_commit(7, "g", {0: 5})
    world.commit("g", at={0: 3})
    world.txn_commit(7, "g", {0: 6})
    world.end(7, "commit")
    assert world.fetch("g") == {0: 6}


def test_of_two_transactions_the_later_offset_counts_whichever_ends_first(world: TxnWorld) -> None:
    world.txn_commit(7, "g", {0: 5, 1: 5})
    world.txn_commit(8, "g", {0: 6})
    world.end(8, "commit")
    assert world.fetch("g") == {0: 6}
    assert world.stable("g") == {0: UNSTABLE, 1: UNSTABLE}
    world.end(7, "commit")
    assert world.fetch("g") == world.stable("g") == {0: 6, 1: 5}


def test_an_aborted_transaction_overtakes_nobody(world: TxnWorld) -> None:
    world.txn_commit(7, "g", {0: 5})
    world.txn_commit(8, "g", {0: 6})
    world.end(8, "abort")
    world.end(7, "commit")
    assert world.fetch("g") == {0: 5}


def test_the_short_way_of_a_commit_leaves_open_transactions_to_the_ordinary_one(world: TxnWorld) -> None:
    places = [OffsetCommitRequestPartition(0, 3)]
    topic_id = world.topics.by_name("t").topic_id  # type: ignore[union-attr]
    request = OffsetCommitRequest("g", topics=[OffsetCommitRequestTopic("t", topic_id, places)])
    single = SingleCommit(request, 9)
    machine = world.harness.machine

    def goes_the_short_way() -> bool:
        took = single.apply(machine.state, machine.offsets, 9, -1, Waiting(), "done", world.harness.now_ms)
        world.harness.settle()
        return took

    world.commit("g", at={0: 1})
    world.txn_commit(7, "g", {1: 5})
    assert goes_the_short_way()
    world.txn_commit(7, "g", {0: 5})
    assert not goes_the_short_way()
    world.end(7, "commit")
    assert world.fetch("g") == {0: 5, 1: 5}
    assert goes_the_short_way()


# ---- reading all


def test_all_offsets_are_those_that_were_committed(world: TxnWorld) -> None:
    world.commit("g", at={0: 1})
    world.commit("g", "u", at={0: 2})
    world.txn_commit(7, "g", {0: 5, 3: 5})
    assert world.fetch_all("g") == {"t": {0: 1}, "u": {0: 2}}
    assert world.stable_all("g") == {"t": {0: UNSTABLE}, "u": {0: 2}}


# ---- who may commit


def test_a_producer_that_knows_no_group_may_commit_to_any(world: TxnWorld) -> None:
    assert world.txn_commit(7, "new", {0: 5}, version=0) == {0: "NONE"}
    member = world.join("g", "t")
    assert world.txn_commit(7, "g", {0: 5}, version=2) == {0: "NONE"}
    world.sync("g", member)
    assert world.txn_commit(7, "g", {0: 6}, version=3) == {0: "NONE"}
    world.end(7, "commit")
    assert world.fetch("g") == {0: 6}
    assert world.fetch("new") == {0: 5}


def test_a_producer_is_fenced_with_the_member_it_works_for(world: TxnWorld) -> None:
    assert world.txn_commit(7, "none", {0: 1}, generation=1) == {0: "ILLEGAL_GENERATION"}
    assert "none" not in world.groups()
    member = world.join("g", "t")
    # A member that is not told yet what it owns may finish what it had.
    assert world.txn_commit(7, "g", {0: 1}, member=member, generation=1) == {0: "NONE"}
    world.sync("g", member)
    assert world.txn_commit(7, "g", {0: 1}, member=member, generation=1) == {0: "NONE"}
    assert world.txn_commit(7, "g", {0: 2}, member=member, generation=0) == {0: "ILLEGAL_GENERATION"}
    assert world.txn_commit(7, "g", {0: 2}, member="zombie", generation=1) == {0: "UNKNOWN_MEMBER_ID"}
    assert world.txn_commit(7, "g", {0: 2}, member=member, generation=1, instance="i") == {
        0: "UNKNOWN_MEMBER_ID"
    }
    world.end(7, "commit")
    assert world.fetch("g") == {0: 1}


def test_a_commit_in_a_transaction_is_no_sign_of_life(world: TxnWorld) -> None:
    member = world.join("g", "t")
    world.sync("g", member)
    world.harness.advance(20_000)  # of a session of 30 seconds
    world.txn_commit(7, "g", {0: 1}, member=member, generation=1)
    world.harness.advance(11_000)
    assert world.txn_commit(7, "g", {0: 1}, member=member, generation=1) == {0: "UNKNOWN_MEMBER_ID"}


def _heartbeat(world: TxnWorld, member: str, epoch: int, owned: list[int] | None = None) -> Any:
    """Of a member of the consumer protocol that is subscribed to `t`; its answer."""
    info = world.topics.by_name("t")
    assert info is not None
    request = ConsumerGroupHeartbeatRequest("g", member, epoch, None, None, 60_000, ["t"])
    if owned is not None:
        request.topic_partitions = [TopicPartitions(info.topic_id, owned)] if owned else []
    client = Client("client", "/127.0.0.1")
    answer = world.harness.send(
        lambda m, token, now: m.consumer.heartbeat(request, 1, client, token, now)
    ).answer
    assert answer.error_code == 0, answer.error_message
    return answer


def test_a_member_of_the_consumer_protocol_is_fenced_by_its_epoch(world: TxnWorld) -> None:
    epoch = _heartbeat(world, "a", 0, []).member_epoch

    def commit(*partitions: int, member: str = "a", at: int = epoch) -> set[str]:
        places = dict.fromkeys(partitions, 5)
        return {*world.txn_commit(7, "g", places, member=member, generation=at).values()}

    assert commit(0, 3) == {"NONE"}
    assert commit(0, at=epoch + 1) == {"ILLEGAL_GENERATION"}
    assert commit(0, member="b") == {"UNKNOWN_MEMBER_ID"}
    assert commit(0, member="", at=-1) == {"NONE"}
    # Another member comes; the first gives up half of what it had, and goes on in the next epoch.
    _heartbeat(world, "b", 0, [])
    world.harness.advance(5_000)
    left = _heartbeat(world, "a", epoch, [0, 1, 2, 3]).assignment.topic_partitions[0].partitions
    assert _heartbeat(world, "a", epoch, left).member_epoch > epoch
    kept, lost = left[0], min({0, 1, 2, 3} - {*left})
    assert commit(kept) == {"NONE"}
    assert commit(lost) == commit(kept, lost) == {"ILLEGAL_GENERATION"}
    world.end(7, "commit")
    assert world.fetch("g")[kept] == 5


# ---- deleting


def test_a_deleted_offset_is_deleted_for_open_transactions_too(world: TxnWorld) -> None:
    world.commit("g", at={0: 1})
    world.txn_commit(7, "g", {0: 5, 1: 6, 2: 7})
    seen = len(world.harness.log)
    assert world.delete("g", "t", 0, 1, 3) == dict.fromkeys((0, 1, 3), "NONE")
    assert world.log(seen) == ["g t-0 deleted", "g t-1 deleted"]
    assert world.stable("g") == {2: UNSTABLE}
    world.end(7, "commit")
    assert world.fetch("g") == {2: 7}


def test_a_group_is_deleted_with_what_is_open(world: TxnWorld) -> None:
    world.commit("g", at={0: 1})
    world.txn_commit(7, "g", {0: 5, 1: 6})
    world.txn_commit(8, "g", {1: 7})
    world.txn_commit(8, "other", {1: 7})
    seen = len(world.harness.log)
    assert world.delete_group("g") == "NONE"
    assert world.log(seen) == ["g t-0 deleted", "g t-1 deleted", "group g deleted"]
    assert world.open_transactions() == {8: [("other", "t", 1)]}
    world.end(7, "commit")
    world.end(8, "commit")
    assert world.groups() == {"other"}
    assert world.fetch_all("g") == {}


def test_nothing_ages_where_a_transaction_is_open(world: TxnWorld) -> None:
    world.commit("g", at={0: 1, 1: 1})
    world.txn_commit(7, "g", {0: 5})
    world.txn_commit(7, "only open", {0: 5})
    world.advance_minutes(100)
    assert world.fetch("g") == {0: 1}
    assert world.groups() == {"g", "only open"}
    world.end(7, "abort")
    world.advance_minutes(10)
    assert world.groups() == set()


def test_an_offset_that_was_committed_in_a_transaction_ages_from_its_request(world: TxnWorld) -> None:
    world.txn_commit(7, "g", {0: 5})
    world.advance_minutes(40)
    world.end(7, "commit")
    world.advance_minutes(19)
    assert world.fetch("g") == {0: 5}
    world.advance_minutes(11)
    assert world.fetch("g") == {}


def test_offsets_of_a_deleted_topic_are_gone_for_open_transactions_too(world: TxnWorld) -> None:
    world.commit("g", at={0: 1})
    world.txn_commit(7, "g", {0: 5, 1: 6})
    world.txn_commit(7, "g", {0: 5}, topic="u")
    world.txn_commit(7, "h", {2: 5})
    world.topics.delete("t")
    seen = len(world.harness.log)
    world.topics_changed()
    assert sorted(world.log(seen)) == ["g t-0 deleted", "g t-1 deleted", "h t-2 deleted"]
    assert world.open_transactions() == {7: [("g", "u", 0)]}
    world.topics.create("t", 4)
    world.topics_changed()
    world.end(7, "commit")
    assert world.fetch_all("g") == {"u": {0: 5}}


# ---- the log


def test_a_restart_finds_what_is_open(world: TxnWorld) -> None:
    world.commit("g", at={0: 1})
    for producer in (5, 6, 7, 8):
        world.txn_commit(producer, f"g{producer}", {0: producer})
    world.txn_commit(7, "g", {0: 5, 1: 6})
    world.commit("g", at={1: 3})
    world.end(5, "commit")
    world.end(6, "abort")
    world.delete("g8", "t", 0)
    open_before = world.open_transactions()
    world.harness.restart()
    assert world.open_transactions() == open_before == {7: [("g7", "t", 0), ("g", "t", 0), ("g", "t", 1)]}
    assert world.fetch("g5") == {0: 5}
    assert world.fetch("g6") == {}
    assert world.fetch("g") == {0: 1, 1: 3}
    assert world.stable("g") == {0: UNSTABLE, 1: UNSTABLE}
    world.end(7, "commit")
    assert world.fetch("g") == {0: 5, 1: 3}
    world.harness.restart()
    assert world.fetch("g") == {0: 5, 1: 3}
    assert world.fetch("g7") == {0: 7}
    assert world.open_transactions() == {}


def test_a_group_that_only_a_transaction_knows_is_there_after_a_restart(world: TxnWorld) -> None:
    world.txn_commit(7, "g", {0: 5})
    world.harness.restart()
    assert world.groups() == {"g"}
    assert world.commit("g", at={1: 2}) == {1: "NONE"}


def test_a_failed_append_is_taken_back(world: TxnWorld) -> None:
    world.commit("g", at={0: 1})
    world.txn_commit(7, "g", {0: 5})
    world.txn_commit(8, "g", {0: 6})
    before = world.open_transactions()
    world.harness.appends_fail = True
    assert world.txn_commit(7, "g", {0: 8, 1: 8}) == "NOT_COORDINATOR"
    assert world.txn_commit(9, "new", {0: 8}) == "NOT_COORDINATOR"
    assert world.commit("g", at={0: 9}) == "NOT_COORDINATOR"
    assert world.delete("g", "t", 0) == "NOT_COORDINATOR"
    assert world.delete_group("g") == "NOT_COORDINATOR"
    world.harness.appends_fail = False
    assert world.open_transactions() == before
    assert world.groups() == {"g"}
    assert world.fetch("g") == {0: 1}
    world.end(8, "commit")
    assert world.fetch("g") == {0: 6}
    world.end(7, "commit")
    assert world.fetch("g") == {0: 6}


def test_an_event_of_a_transaction_goes_with_the_turn_that_it_saw(world: TxnWorld) -> None:
    world.commit("g", at={0: 1})
    with world.harness.turn():
        world.harness.appends_fail = True
        plain = world.send_commit("new", {0: 2})
        transactional = world.send_txn_commit(7, "new", {0: 5})
        world.harness.appends_fail = False
    assert plain.answer is transactional.answer is ErrorCode.NOT_COORDINATOR
    assert world.groups() == {"g"}
    assert world.open_transactions() == {}
