"""Ids as bytes and as text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mainstem.protocol.errors import ProtocolError
from mainstem.protocol.uuids import (
    ONE_UUID,
    ZERO_UUID,
    is_reserved,
    random_uuid,
    uuid_from_text,
    uuid_to_text,
)


def test_the_reserved_ids_have_known_texts() -> None:
    assert uuid_to_text(ZERO_UUID) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert uuid_to_text(ONE_UUID) == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert is_reserved(ZERO_UUID)
    assert is_reserved(bytes(15) + b"\x63")
    assert not is_reserved(bytes(15) + b"\x64")


@settings(deadline=None)
@given(st.binary(min_size=16, max_size=16))
def test_ids_survive_the_way_through_text(raw: bytes) -> None:
    text = uuid_to_text(raw)
    assert len(text) == 22
    assert uuid_from_text(text) == raw
    assert uuid_from_text(text + "==") == raw


def test_random_ids_are_version_4_and_fit_on_a_command_line() -> None:
    ids = {random_uuid() for _ in range(500)}
    assert len(ids) == 500
    assert all(raw[6] >> 4 == 4 and raw[8] >> 6 == 2 for raw in ids)
    assert not any(uuid_to_text(raw).startswith("-") for raw in ids)


@pytest.mark.parametrize("text", ["", "abc", "A" * 21, "A" * 24, "A" * 100, "not/an+id", "é" * 22])
def test_texts_that_are_no_ids_are_refused(text: str) -> None:
    with pytest.raises(ProtocolError):
        uuid_from_text(text)
