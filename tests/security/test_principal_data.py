"""Principals as Kafka's DefaultPrincipalData, and nothing but a protocol error for other bytes."""

import io

import pytest
from kio.schema.default_principal_data.v0.data import DefaultPrincipalData
from kio.serial import entity_writer

from mainstem.protocol.errors import ProtocolError
from mainstem.security.principal_data import decode_principal, encode_principal


def by_peer(kind: str, name: str, token_authenticated: bool = False) -> bytes:
    buffer = io.BytesIO()
    data = DefaultPrincipalData(type_=kind, name=name, token_authenticated=token_authenticated)
    entity_writer(DefaultPrincipalData)(buffer, data)
    return b"\0\0" + buffer.getvalue()


@pytest.mark.parametrize("name", ["ANONYMOUS", "CN=a,OU=b:c", "Zoë", ""])
def test_the_bytes_are_those_of_the_peer_codec(name: str) -> None:
    assert encode_principal(f"User:{name}") == by_peer("User", name)
    assert decode_principal(by_peer("User", name)) == f"User:{name}"


def test_a_principal_of_a_delegation_token_is_its_owner() -> None:
    assert decode_principal(by_peer("User", "alice", token_authenticated=True)) == "User:alice"


@pytest.mark.parametrize(
    "data",
    [b"", b"\0", b"\0\0", b"\0\1" + by_peer("User", "a")[2:], by_peer("User", "a") + b"\0", by_peer("", "a")]
    + [by_peer("User", "a")[:length] for length in range(2, 9)],
)
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_principal(data)
