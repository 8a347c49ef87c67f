"""Headers of requests and responses, and what happens when the API or its version is unknown."""

import io
from typing import Any

import pytest
from kio.schema.request_header.v1.header import RequestHeader as PeerHeaderV1
from kio.schema.request_header.v2.header import RequestHeader as PeerHeaderV2
from kio.serial import entity_writer

from mainstem.protocol.errors import ProtocolError
from mainstem.protocol.headers import (
    RequestHeader,
    decode_request_header,
    decode_response_header,
    encode_request_header,
    encode_response_header,
)
from mainstem.protocol.registry import API_KEYS


@pytest.mark.parametrize("client_id", ["rdkafka", "", None, "çà"])
@pytest.mark.parametrize("api_key", API_KEYS)
def test_request_headers_are_those_of_the_peer_codec(api_key: int, client_id: str | None) -> None:
    info = API_KEYS[api_key]
    for version in range(info.min_version, info.max_version + 1):
        raw = encode_request_header(api_key, version, 77, client_id)
        peer_class: Any = PeerHeaderV2 if version >= info.flexible_from else PeerHeaderV1
        buffer = io.BytesIO()
        peer = peer_class(
            request_api_key=api_key, request_api_version=version, correlation_id=77, client_id=client_id
        )
        entity_writer(peer_class)(buffer, peer)
        assert raw == buffer.getvalue()
        header, pos = decode_request_header(b"??" + raw + b"body", 2, len(raw) + 6)
        assert header == RequestHeader(api_key, version, 77, client_id)
        assert pos == len(raw) + 2


def test_known_bytes_of_a_request_header() -> None:
    raw = bytes.fromhex("0012 0003 00000007 0003 616263 00")
    assert encode_request_header(18, 3, 7, "abc") == raw
    assert decode_request_header(raw, 0, len(raw)) == (RequestHeader(18, 3, 7, "abc"), len(raw))


def test_unknown_tagged_fields_of_a_header_are_skipped() -> None:
    raw = bytes.fromhex("0012 0003 00000007 ffff 02 00 03 aabbcc 8001 00") + b"body"
    header, pos = decode_request_header(raw, 0, len(raw))
    assert header == RequestHeader(18, 3, 7, None)
    assert raw[pos:] == b"body"


@pytest.mark.parametrize(
    ("text", "client_id"),
    [
        ("0012 007f 00000007 0003 616263 00", "abc"),
        ("0012 007f 00000007", None),
        ("0012 007f 00000007 0009 61", None),
        ("0012 ffff 00000007 0001 ff", None),
        ("7fff 0000 00000007 ffff", None),
    ],
)
def test_an_unknown_api_or_version_can_still_be_answered(text: str, client_id: str | None) -> None:
    raw = bytes.fromhex(text)
    header, pos = decode_request_header(raw, 0, len(raw))
    assert header.correlation_id == 7
    assert header.client_id == client_id
    assert pos == len(raw)


def test_versions_below_the_oldest_have_the_old_header() -> None:
    raw = bytes.fromhex("0000 0000 00000007 0003 616263") + b"body"
    assert decode_request_header(raw, 0, len(raw)) == (RequestHeader(0, 0, 7, "abc"), len(raw) - 4)


@pytest.mark.parametrize("size", range(15))
def test_a_header_that_is_cut_off_is_refused(size: int) -> None:
    raw = encode_request_header(3, 12, 7, "abcd")
    assert len(raw) == 15
    with pytest.raises(ProtocolError):
        decode_request_header(raw, 0, size)


@pytest.mark.parametrize("client_id", ["0001 ff", "fffe", "7fff"])
def test_a_client_id_that_cannot_be_read_is_refused(client_id: str) -> None:
    raw = bytes.fromhex("0003 0000 00000007" + client_id)
    with pytest.raises(ProtocolError):
        decode_request_header(raw, 0, len(raw))


@pytest.mark.parametrize(
    ("api_key", "version", "text"),
    [
        (3, 8, "00000007"),
        (3, 9, "00000007 00"),
        (18, 0, "00000007"),
        (18, 4, "00000007"),
        (17, 1, "00000007"),
    ],
)
def test_response_headers_are_flexible_except_for_api_versions(api_key: int, version: int, text: str) -> None:
    raw = bytes.fromhex(text)
    assert encode_response_header(api_key, version, 7) == raw
    assert decode_response_header(api_key, version, raw, 0, len(raw)) == (7, len(raw))
    with pytest.raises(ProtocolError):
        decode_response_header(api_key, version, raw, 0, len(raw) - 1)
