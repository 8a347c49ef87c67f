"""The state machine of a connection: however the bytes come, the same happens, and no bytes do harm."""

import math
import struct
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainstem.protocol import codec
from mainstem.protocol.apis.k01_fetch import FetchRequest, FetchResponse
from mainstem.protocol.apis.k03_metadata import MetadataRequest
from mainstem.protocol.apis.k11_join_group import JoinGroupRequest
from mainstem.protocol.apis.k17_sasl_handshake import SaslHandshakeResponse
from mainstem.protocol.apis.k18_api_versions import ApiVersion, ApiVersionsResponse
from mainstem.protocol.apis.k36_sasl_authenticate import SaslAuthenticateResponse
from mainstem.protocol.errors import ErrorCode, ProtocolError
from mainstem.protocol.headers import decode_request_header, encode_response_header
from mainstem.wire import ClientOptions, ConnectionLost, KafkaRefusal, NotServed, SecurityError
from mainstem.wire.backoff import Backoff
from mainstem.wire.core import Answer, Close, ConnectionCore, Effect, Ready, Send
from mainstem.wire.frames import FrameReader, framed
from mainstem.wire.mechanisms import Mechanism, Plain
from tests.wire.scripted_broker import fetch_answer, metadata, served

ADDRESS = "broker:9092"
OPTIONS = ClientOptions(answer_bytes_max=100_000, request_timeout_ms=5_000)
METADATA_VERSION, FETCH_VERSION = 13, 18


def answer(message: Any, api_key: int, version: int, correlation_id: int) -> bytes:
    payload = encode_response_header(api_key, version, correlation_id) + codec.encode(message, version)
    return struct.pack(">i", len(payload)) + payload


def core_of(mechanism: Mechanism | None = None) -> ConnectionCore:
    core = ConnectionCore(ADDRESS, OPTIONS, mechanism)
    core.connected(0.0)
    return core


def feed(core: ConnectionCore, pieces: Iterable[bytes], now: float = 0.0) -> list[Effect]:
    """What comes of these bytes, as a socket would give them: never more than there is room for."""
    effects: list[Effect] = []
    for piece in pieces:
        left = piece
        while left and not core.is_closed:
            room = core.frames.room()
            count = min(len(room), len(left))
            room[:count] = left[:count]
            effects += core.received(count, now)
            left = left[count:]
    return effects


def comparable(effects: Sequence[Effect]) -> list[Any]:
    return [(type(each), str(each.error)) if isinstance(each, Close) else each for each in effects]


def cut(data: bytes, cuts: Sequence[int]) -> list[bytes]:
    places = sorted({min(place, len(data)) for place in cuts} | {0, len(data)})
    return [data[start:end] for start, end in pairwise(places)]


def ready_core() -> ConnectionCore:
    core = core_of()
    assert feed(core, [answer(served(), 18, 3, 1)]) == [Ready()]
    return core


def asked_core(requests: Sequence[bool]) -> tuple[ConnectionCore, bytes]:
    """A core with requests under way (Fetch where True, else Metadata), and the bytes of their answers."""
    core = ready_core()
    answers = b""
    for correlation_id, is_fetch in enumerate(requests, 2):
        core.request(FetchRequest() if is_fetch else MetadataRequest(topics=[]), 0.0, 1.0)
        if is_fetch:
            records = b"r" * correlation_id * 50
            answers += answer(fetch_answer(records), 1, FETCH_VERSION, correlation_id)
        else:
            answers += answer(metadata({1: correlation_id}, 1), 3, METADATA_VERSION, correlation_id)
    return core, answers


@given(
    requests=st.lists(st.booleans(), min_size=1, max_size=6),
    cuts=st.lists(st.integers(0, 3000), max_size=40),
)
def test_any_chunking_of_the_input_gives_the_same(requests: list[bool], cuts: list[int]) -> None:
    whole, data = asked_core(requests)
    pieces, _ = asked_core(requests)
    expected = feed(whole, [data])
    assert [type(effect) for effect in expected] == [Answer] * len(requests)
    assert [
        isinstance(each.message, FetchResponse) for each in expected if isinstance(each, Answer)
    ] == requests
    assert feed(pieces, cut(data, cuts)) == expected
    assert pieces.requests_under_way == 0


@given(garbage=st.binary(max_size=300), cuts=st.lists(st.integers(0, 300), max_size=10))
def test_whatever_bytes_come_they_are_answers_or_end_the_connection(garbage: bytes, cuts: list[int]) -> None:
    whole, answers = asked_core([True, False])
    pieces, _ = asked_core([True, False])
    data = answers[: len(answers) // 2] + garbage
    expected = feed(whole, [data])
    assert comparable(feed(pieces, cut(data, cuts))) == comparable(expected)
    closed = [each for each in expected if isinstance(each, Close)]
    assert len(closed) <= 1
    if closed:
        assert expected[-1] == closed[0]
        assert isinstance(closed[0].error, ConnectionLost)
        assert whole.requests_under_way == 0
        assert whole.received(4, 0.0) == []


@given(data=st.binary(max_size=200), cuts=st.lists(st.integers(0, 200), max_size=10))
def test_whatever_answers_the_first_question_it_does_no_harm(data: bytes, cuts: list[int]) -> None:
    pieces, whole = core_of(), core_of()
    assert comparable(feed(pieces, cut(data, cuts))) == comparable(feed(whole, [data]))


@given(size=st.integers(-(2**31), 2**31 - 1))
def test_a_length_is_checked_before_memory_is_taken_for_it(size: int) -> None:
    reader = FrameReader(1_000)
    reader.room()[:] = struct.pack(">i", size)
    if 4 <= size <= 1_000:
        assert reader.received(4) is None
        assert len(reader.room()) == size
    else:
        with pytest.raises(ProtocolError, match=r"no answer of a Kafka broker|speaks TLS"):
            reader.received(4)
        assert len(reader.room()) <= 4


def test_answers_come_in_the_order_of_their_requests_or_end_the_connection() -> None:
    core, _ = asked_core([False, False])
    swapped = answer(metadata({}, 1), 3, METADATA_VERSION, 3)
    effects = feed(core, [swapped])
    assert isinstance(effects[0], Close)
    assert "an answer that was not asked for: to request 3 instead of 2, Metadata" in str(effects[0].error)
    core, answers = asked_core([False])
    effects = feed(core, [answers + swapped])
    assert isinstance(effects[0], Answer)
    assert isinstance(effects[1], Close)
    assert "an answer that was not asked for" in str(effects[1].error)


def test_a_deadline_is_told_and_kept() -> None:
    core = ready_core()
    assert core.deadline == math.inf
    assert core.time_passed(1e9) == []
    core.request(FetchRequest(), 100.0, 30.0)
    core.request(MetadataRequest(topics=[]), 100.0, 2.0)
    assert core.deadline == 102.0
    assert core.time_passed(101.9) == []
    (closed,) = core.time_passed(102.0)
    assert isinstance(closed, Close)
    assert "it did not answer Metadata in 2 s" in str(closed.error)
    assert core.time_passed(200.0) == []


def test_a_blocking_shell_counts_from_when_it_waits() -> None:
    core = ready_core()
    core.request(MetadataRequest(topics=[]), 0.0, math.inf)
    assert core.deadline == math.inf
    core.wait(50.0, 2.0)
    assert core.deadline == 52.0


def test_what_the_core_asks_by_itself_has_a_deadline_too() -> None:
    core = ConnectionCore(ADDRESS, OPTIONS, None)
    core.connected(7.0)
    assert core.deadline == 12.0
    (closed,) = core.time_passed(12.0)
    assert isinstance(closed, Close)
    assert "it did not answer ApiVersions in 5 s" in str(closed.error)


def test_a_broker_of_old_times_is_asked_in_version_0() -> None:
    core = ConnectionCore(ADDRESS, OPTIONS, None)
    assert asked(core.connected(0.0)) == (18, 3)
    refusal = struct.pack(">iihi", 10, 1, ErrorCode.UNSUPPORTED_VERSION, 0)
    assert asked(feed(core, [refusal])) == (18, 0)
    old = ApiVersionsResponse(api_keys=[ApiVersion(3, 0, 5), ApiVersion(1, 99, 100)])
    assert feed(core, [answer(old, 18, 0, 2)]) == [Ready()]
    assert core.version_of(3) == 5
    assert core.version_of(1) is None
    assert core.version_of(11) is None
    assert asked([core.request(MetadataRequest(topics=[]), 0.0, 1.0)]) == (3, 5)
    assert asked([core.request(MetadataRequest(topics=[]), 0.0, 1.0, version_max=1)]) == (3, 1)
    with pytest.raises(NotServed, match="does not serve Metadata"):
        core.request(MetadataRequest(topics=[]), 0.0, 1.0, version_min=99)
    with pytest.raises(NotServed, match="does not serve JoinGroup"):
        core.request(JoinGroupRequest(), 0.0, 1.0)
    assert not core.is_closed


def asked(effects: Sequence[Effect]) -> tuple[int, int]:
    """API key and version of the only request."""
    (effect,) = effects
    assert isinstance(effect, Send)
    header, _ = decode_request_header(effect.data, 4, len(effect.data))
    return header.api_key, header.api_version


def test_a_broker_that_refuses_to_say_what_it_serves() -> None:
    refusal = ApiVersionsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    (closed,) = feed(core_of(), [answer(refusal, 18, 3, 1)])
    assert isinstance(closed, Close)
    assert isinstance(closed.error, KafkaRefusal)


def test_a_port_that_hangs_up_on_the_first_request_may_want_sasl() -> None:
    core = ready_core()
    core.request(MetadataRequest(topics=[]), 0.0, 1.0)
    (closed,) = core.received(0, 0.0)
    assert isinstance(closed, Close)
    assert "the broker closed the connection; does this port want SASL" in str(closed.error)
    core, answers = asked_core([False])
    feed(core, [answers])
    (closed,) = core.received(0, 0.0)
    assert "SASL" not in str(closed)


def test_a_broker_that_keeps_silent_is_not_said_to_want_sasl() -> None:
    core = ready_core()
    core.request(MetadataRequest(topics=[]), 0.0, 1.0)
    (closed,) = core.time_passed(1.0)
    assert isinstance(closed, Close)
    assert str(closed.error).endswith("it did not answer Metadata in 1 s")


def sasl_core() -> ConnectionCore:
    core = core_of(Plain("alice", "hush"))
    assert asked(feed(core, [answer(served(), 18, 3, 1)])) == (17, 1)
    assert not core.is_ready
    return core


def test_a_login_comes_before_the_first_request() -> None:
    core = sasl_core()
    (login,) = feed(core, [answer(SaslHandshakeResponse(mechanisms=["PLAIN"]), 17, 1, 2)])
    assert isinstance(login, Send)
    assert b"\0alice\0hush" in login.data
    accepted = SaslAuthenticateResponse(session_lifetime_ms=100_000)
    assert feed(core, [answer(accepted, 36, 2, 3)], now=10.0) == [Ready()]
    assert core.is_ready
    assert core.expires_at == pytest.approx(95.0)


def test_a_login_that_is_refused_says_why_and_tells_no_secret() -> None:
    core = sasl_core()
    feed(core, [answer(SaslHandshakeResponse(), 17, 1, 2)])
    refused = SaslAuthenticateResponse(ErrorCode.SASL_AUTHENTICATION_FAILED, "no such user")
    (closed,) = feed(core, [answer(refused, 36, 2, 3)])
    assert isinstance(closed, Close)
    assert isinstance(closed.error, SecurityError)
    assert str(closed.error).endswith("does not accept user 'alice' with SASL PLAIN: no such user")
    assert not core.is_ready


@given(
    first=st.integers(1, 1_000),
    most=st.integers(1, 100_000),
    draws=st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=40),
)
def test_pauses_double_up_to_a_limit(first: int, most: int, draws: list[float]) -> None:
    random = iter(draws)
    backoff = Backoff(first, most, lambda: next(random))
    for failures in range(len(draws)):
        expected = min(first * 2 ** min(failures, 16), most) / 1000
        assert 0.8 * expected <= backoff.next_s() <= 1.2 * expected
    backoff.reset()
    random = iter([0.5])
    assert backoff.next_s() == pytest.approx(min(first, most) / 1000)


def test_a_frame_has_its_length_in_front() -> None:
    assert framed([b"ab", bytearray(b"c"), memoryview(b"de")]) == b"\x00\x00\x00\x05abcde"
