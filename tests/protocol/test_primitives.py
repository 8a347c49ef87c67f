"""Variable-length integers: known bytes, round trips, and refusal of what does not fit."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mainstem.protocol import primitives as p
from mainstem.protocol.errors import ProtocolError

UNSIGNED = [
    (0, "00"),
    (1, "01"),
    (127, "7f"),
    (128, "8001"),
    (300, "ac02"),
    (16383, "ff7f"),
    (16384, "808001"),
]
ZIGZAG = [(0, "00"), (-1, "01"), (1, "02"), (-64, "7f"), (64, "8001"), (-(2**31), "ffffffff0f")]


@pytest.mark.parametrize(("value", "text"), [*UNSIGNED, (2**32 - 1, "ffffffff0f")])
def test_unsigned_varints_have_known_bytes(value: int, text: str) -> None:
    raw = bytes.fromhex(text)
    assert p.write_uvarint(value) == raw
    assert p.read_uvarint(raw, 0, len(raw)) == (value, len(raw))


@pytest.mark.parametrize(("value", "text"), ZIGZAG)
def test_zigzag_varints_have_known_bytes(value: int, text: str) -> None:
    raw = bytes.fromhex(text)
    assert p.write_varint(value) == raw
    assert p.read_varint(raw, 0, len(raw)) == (value, len(raw))


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.binary(max_size=3), st.binary(max_size=3))
def test_unsigned_varints_round_trip_at_any_position(value: int, before: bytes, after: bytes) -> None:
    raw = before + p.write_uvarint(value) + after
    assert p.read_uvarint(memoryview(raw), len(before), len(raw)) == (value, len(raw) - len(after))


@settings(deadline=None)
@given(st.integers(128, 2**32 - 1), st.binary(max_size=3))
def test_a_varint_can_be_continued_after_its_first_byte(value: int, after: bytes) -> None:
    raw = p.write_uvarint(value)
    assert p.continue_uvarint(raw[0], raw + after, 1, len(raw + after)) == (value, len(raw))


@settings(deadline=None)
@given(st.integers(-(2**31), 2**31 - 1))
def test_zigzag_varints_round_trip(value: int) -> None:
    raw = p.write_varint(value)
    assert p.read_varint(raw, 0, len(raw)) == (value, len(raw))


@settings(deadline=None)
@given(st.integers(-(2**63), 2**63 - 1))
def test_zigzag_varlongs_round_trip(value: int) -> None:
    raw = p.write_varlong(value)
    assert len(raw) <= 10
    assert p.read_varlong(raw, 0, len(raw)) == (value, len(raw))


@pytest.mark.parametrize(
    "text",
    ["", "80", "ffff", "ffffffffff01", "ffffffff1f", "8080808080"],
    ids=["nothing", "cut after one", "cut after two", "six bytes", "33 bits", "no last byte"],
)
def test_unsigned_varints_that_do_not_fit_are_refused(text: str) -> None:
    raw = bytes.fromhex(text)
    with pytest.raises(ProtocolError):
        p.read_uvarint(raw, 0, len(raw))


@pytest.mark.parametrize("text", ["ffffffffffffffffff02", "ffffffffffffffffffff01"])
def test_varlongs_that_do_not_fit_are_refused(text: str) -> None:
    raw = bytes.fromhex(text)
    with pytest.raises(ProtocolError):
        p.read_varlong(raw, 0, len(raw))


def test_a_varint_does_not_reach_past_the_end() -> None:
    with pytest.raises(ProtocolError):
        p.read_uvarint(b"\x80\x01", 0, 1)
    with pytest.raises(ProtocolError):
        p.continue_uvarint(0x80, b"\x80\x01", 1, 1)


def test_an_unsigned_varint_is_not_negative() -> None:
    with pytest.raises(ValueError):
        p.write_uvarint(-1)


def test_tagged_fields_are_skipped_by_their_size() -> None:
    section = bytes.fromhex("00 02 aabb05 008001 01 cc")
    assert p.skip_tags(3, section, 0, len(section)) == len(section)
    assert p.next_tag(section, 6, len(section)) == (128, 9, 10)
    with pytest.raises(ProtocolError):
        p.skip_tags(3, section, 0, len(section) - 1)
