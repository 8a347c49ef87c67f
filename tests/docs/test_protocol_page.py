"""The table of APIs in docs/protocol.md is what a running broker advertises."""

import re
import socket
import struct
from typing import BinaryIO

from mainstem.protocol import codec, headers
from mainstem.protocol.apis.k18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from mainstem.protocol.registry import API_KEYS
from mainstem.testing import Broker
from tests.docs.reader import ROOT

_ROW = re.compile(r"^\| (\d+) \| (\w+) \| (\d+)(?: to (\d+))? \|$", re.M)
_PRODUCE = 0
_API_VERSIONS = 18


def test_the_table_is_what_the_broker_advertises() -> None:
    page = (ROOT / "docs" / "protocol.md").read_text()
    written = {int(key): (name, int(low), int(high or low)) for key, name, low, high in _ROW.findall(page)}
    assert written == _advertised()


def _advertised() -> dict[int, tuple[str, int, int]]:
    with Broker() as broker, socket.create_connection((broker.host, broker.port), timeout=10) as connection:
        header = headers.encode_request_header(_API_VERSIONS, 0, 1, "docs")
        body = codec.encode(ApiVersionsRequest(), 0)
        connection.sendall(struct.pack(">i", len(header) + len(body)) + header + body)
        with connection.makefile("rb") as answer:
            response = codec.decode(ApiVersionsResponse, 0, _frame(answer)[4:])
    found = {
        api.api_key: (API_KEYS[api.api_key].name, api.min_version, api.max_version)
        for api in response.api_keys
    }
    # The page says in words that Produce is advertised from 0 and served from its real first version.
    name, _, high = found[_PRODUCE]
    return found | {_PRODUCE: (name, API_KEYS[_PRODUCE].min_version, high)}


def _frame(answer: BinaryIO) -> bytes:
    (length,) = struct.unpack(">i", answer.read(4))
    return answer.read(length)
