"""A classic group as offsets, listing and deletion see it, and what a heartbeat costs."""

from collections.abc import Callable
from itertools import count

import pytest

from mainstem.config import BrokerConfig
from mainstem.coordinator.effects import Effects
from mainstem.coordinator.group.classic import ClassicGroup
from mainstem.coordinator.group.classic.member import ClassicMember
from mainstem.coordinator.group.classic.phases import Phase
from mainstem.coordinator.group.embedded_protocol import subscribed_topics
from mainstem.coordinator.group.state import Client
from mainstem.protocol.apis.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from mainstem.protocol.apis.k12_heartbeat import HeartbeatRequest
from mainstem.protocol.apis.k14_sync_group import SyncGroupRequest
from mainstem.protocol.errors import ErrorCode, KafkaError, ProtocolError
from tests.coordinator.classic_transcript import ClassicMachine, subscription
from tests.coordinator.harness import Harness, Waiting
from tests.coordinator.machine_session import GROUP


def _harness() -> Harness:
    ids = count(1)
    settings = {"group.initial.rebalance.delay.ms": "0"}
    return Harness(lambda: ClassicMachine(BrokerConfig(settings), lambda: str(next(ids))))


def _join(harness: Harness, metadata: bytes, protocol_type: str = "consumer") -> str:
    """A new member of a group that it has for itself; the member's id."""
    protocols = [JoinGroupRequestProtocol("range", metadata)]
    request = JoinGroupRequest(GROUP, 10_000, 10_000, "", None, protocol_type, protocols)
    waiting = _send_join(harness, request)
    harness.advance(0)
    member_id: str = waiting.answer.member_id
    return member_id


def _send_join(
    harness: Harness, request: JoinGroupRequest, version: int = 3, client_id: str = "c"
) -> Waiting:
    client = Client(client_id, "/h")
    return harness.send(
        lambda m, token, now_ms: m.classic.join_group(request, version, client, token, now_ms)
    )


def _sync(harness: Harness, member_id: str) -> None:
    request = SyncGroupRequest(GROUP, 1, member_id)
    harness.send(lambda m, token, now_ms: m.classic.sync_group(request, 0, token, now_ms))


def _group(harness: Harness) -> ClassicGroup:
    group: ClassicGroup = harness.machine.state.groups[GROUP]
    return group


def _code(check: Callable[[], object]) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        check()
    return refused.value.code


def test_a_group_of_consumers_knows_its_topics() -> None:
    harness = _harness()
    member_id = _join(harness, subscription("orders", "payments"))
    group = _group(harness)
    assert [group.is_subscribed_to(topic) for topic in ("orders", "payments", "other")] == [True, True, False]
    _sync(harness, member_id)
    harness.restart()
    group = _group(harness)
    assert [group.is_subscribed_to(topic) for topic in ("orders", "other")] == [True, False]
    harness.advance(10_000)
    assert group.phase is Phase.EMPTY
    assert not group.is_subscribed_to("orders")


@pytest.mark.parametrize("metadata", [b"", b"\x00", b"\xff\xff\x00\x00\x00\x00", b"member", b"\x00" * 5])
def test_consumers_that_cannot_be_read_count_as_subscribed_to_everything(metadata: bytes) -> None:
    harness = _harness()
    _join(harness, metadata)
    assert _group(harness).is_subscribed_to("anything")
    with pytest.raises(ProtocolError):
        subscribed_topics(metadata)


def test_members_that_are_no_consumers_are_subscribed_to_nothing() -> None:
    harness = _harness()
    _join(harness, subscription("orders"), "connect")
    assert not _group(harness).is_subscribed_to("orders")


def test_a_subscription_of_a_newer_version_is_read_as_far_as_it_is_known() -> None:
    data = subscription("orders")
    assert subscribed_topics(data) == ["orders"]
    assert subscribed_topics(b"\x00\x03" + data[2:] + b"more of version 3") == ["orders"]
    assert subscribed_topics(data[:-4] + b"\x00\x00\x00\x02xy") == ["orders"]
    for end in range(len(data)):
        with pytest.raises(ProtocolError):
            subscribed_topics(data[:end])


def test_protocols_that_nobody_offers_any_more_are_forgotten() -> None:
    harness = _harness()
    member_id = _join(harness, subscription("orders"))
    group = _group(harness)
    for name in ("one", "two"):
        protocols = [JoinGroupRequestProtocol("range", b""), JoinGroupRequestProtocol(name, b"")]
        request = JoinGroupRequest(GROUP, 10_000, 10_000, member_id, None, "consumer", protocols)
        _send_join(harness, request)
        assert dict(group._support) == {"range": 1, name: 1}
    harness.advance(10_000)
    assert (group.phase, dict(group._support)) == (Phase.EMPTY, {})


def test_offsets_age_from_when_the_group_became_empty() -> None:
    harness = _harness()
    simple = harness.machine.classic.create_simple("simple")
    assert simple.offsets_expire_after() == -1
    member_id = _join(harness, subscription("orders"))
    group = _group(harness)
    assert group.offsets_expire_after() is None
    _sync(harness, member_id)
    assert group.offsets_expire_after() == -1  # those of topics that it is not subscribed to
    harness.advance(10_000)
    assert group.offsets_expire_after() == harness.now_ms
    harness.advance(5_000)
    harness.restart()
    assert _group(harness).offsets_expire_after() == harness.now_ms - 5_000


def test_a_group_with_members_cannot_be_deleted() -> None:
    harness = _harness()
    _join(harness, subscription("orders"), "connect")
    group = _group(harness)
    assert _code(group.check_delete) is ErrorCode.NON_EMPTY_GROUP
    assert _code(group.check_offset_delete) is ErrorCode.NON_EMPTY_GROUP
    harness.advance(10_000)
    group.check_delete()
    group.check_offset_delete()
    harness.machine.unload(ErrorCode.NOT_COORDINATOR)
    assert _code(group.check_delete) is ErrorCode.GROUP_ID_NOT_FOUND
    assert _code(group.check_offset_delete) is ErrorCode.GROUP_ID_NOT_FOUND
    assert _code(lambda: group.check_offset_fetch(None, -1)) is ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_of_consumers_can_be_deleted_one_by_one() -> None:
    harness = _harness()
    _join(harness, subscription("orders"))
    _group(harness).check_offset_delete()


def test_a_deletion_that_cannot_be_written_did_not_happen() -> None:
    harness = _harness()
    member_id = _join(harness, subscription("orders"))
    _sync(harness, member_id)
    harness.advance(10_000)
    group = _group(harness)
    harness.appends_fail = True
    group.write_tombstones()
    assert GROUP not in harness.machine.state.groups
    harness.settle()
    assert _group(harness) is group
    harness.appends_fail = False
    group.write_tombstones()
    harness.settle()
    harness.restart()
    assert GROUP not in harness.machine.state.groups


def test_a_sync_that_breaks_off_can_be_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = _harness()
    member_id = _join(harness, subscription("orders"))
    with monkeypatch.context() as patch:
        patch.setattr(Effects, "write", lambda *_: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            _sync(harness, member_id)
    harness.break_off()
    group = _group(harness)
    assert (group.phase, group.members[member_id].sync_token) == (Phase.COMPLETING_REBALANCE, None)
    _sync(harness, member_id)
    assert group.phase is Phase.STABLE


@pytest.mark.parametrize("version", [3, 5, 9])
@pytest.mark.parametrize("is_static", [False, True])
def test_whose_member_id_would_be_too_long_for_an_answer_is_not_let_in(version: int, is_static: bool) -> None:
    harness = _harness()
    _join(harness, subscription("orders"))
    protocols = [JoinGroupRequestProtocol("range", subscription("orders"))]
    request = JoinGroupRequest(GROUP, 10_000, 10_000, "", None, "consumer", protocols)
    for size, is_refused in ((32_730, False), (32_731, True)):
        name = "\N{GREEK SMALL LETTER ALPHA}" * (size // 2) + "a" * (size % 2)
        if is_static:
            request.group_instance_id = name
        before = (len(_group(harness).members), len(_group(harness).pending_joins))
        answer = _send_join(harness, request, version, "c" if is_static else name).answer
        if is_refused:
            assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
            assert (len(_group(harness).members), len(_group(harness).pending_joins)) == before
        else:
            assert answer is None or answer.error_code == ErrorCode.MEMBER_ID_REQUIRED


def test_a_commit_is_a_sign_of_life() -> None:
    harness = _harness()
    member_id = _join(harness, subscription("orders"))
    _sync(harness, member_id)
    group = _group(harness)
    harness.advance(9_000)
    group.offsets_committed(member_id, harness.now_ms)
    group.offsets_committed("", harness.now_ms)
    harness.advance(9_000)
    assert group.state_name() == "Stable"
    harness.advance(1_000)
    assert group.state_name() == "Empty"


def test_heartbeats_leave_no_trace_but_a_later_deadline() -> None:
    harness = _harness()
    member_id = _join(harness, subscription("orders"))
    _sync(harness, member_id)
    member: ClassicMember = _group(harness).members[member_id]
    timers = harness.machine.timers
    callback, queued = member.on_session_end, len(timers._heap)
    request = HeartbeatRequest(GROUP, 1, member_id)
    for _ in range(100):
        harness.advance(10)
        waiting = harness.send(lambda m, token, now_ms: m.classic.heartbeat(request, token, now_ms))
        assert waiting.answer.error_code == 0
    assert len(timers._heap) == queued
    assert member.on_session_end is callback
