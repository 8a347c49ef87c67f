"""How a principal travels in an Envelope: Kafka's DefaultPrincipalData behind the number of its version.

A principal is a text here, its type and its name with a colon between them.
"""

from typing import ClassVar, Final

from msgspec import Struct

from mainstem.protocol import codec
from mainstem.protocol.errors import ProtocolError
from mainstem.protocol.primitives import Buffer
from mainstem.protocol.schema import DataMessage

_VERSION: Final = 0
_PREFIX: Final = _VERSION.to_bytes(2)


class DefaultPrincipalData(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(versions="0", flexible="0+")
    type: str = ""
    name: str = ""
    token_authenticated: bool = False


def encode_principal(principal: str) -> bytes:
    kind, _, name = principal.partition(":")
    return _PREFIX + codec.encode(DefaultPrincipalData(kind, name), _VERSION)


def decode_principal(data: Buffer) -> str:
    """The principal that fills `data` to its last byte; `ProtocolError` for anything else."""
    version = int.from_bytes(data[:2], signed=True)
    if len(data) < 2 or version != _VERSION:
        raise ProtocolError(f"a forwarded principal has the version {version}, known is {_VERSION}")
    principal = codec.decode(DefaultPrincipalData, _VERSION, data[2:])
    if not principal.type:
        raise ProtocolError("a forwarded principal has no type")
    return f"{principal.type}:{principal.name}"
