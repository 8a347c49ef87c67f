"""Encoders and decoders for declared messages, compiled per class and version on first use.

`decoder` and `encoder` give the compiled function itself, for callers that keep it; `decode` and `encode` are
the one-call forms. Whatever the bytes are, a decoder returns a message or raises `ProtocolError`, and it
allocates no more than the bytes it was given can fill. Compilation happens here only, never at import.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from mainstem.protocol.decoder_source import Decoder, compile_decoder
from mainstem.protocol.encoder_source import Chunk, Encoder, compile_encoder
from mainstem.protocol.errors import ProtocolError
from mainstem.protocol.layout import layout_inside, layout_of
from mainstem.protocol.primitives import Buffer

Message = TypeVar("Message")

# Compiled code depends on nothing but its key, so that sharing it in one process shares no state.
_decoders: dict[tuple[type, int], Decoder] = {}
_encoders: dict[tuple[type, int], Encoder] = {}


def decoder(cls: type[Message], version: int) -> Callable[[Buffer, int, int], tuple[Message, int]]:
    """A function `(buf, pos, end) -> (message, position after it)`."""
    compiled = _decoders.get((cls, version))
    if compiled is None:
        compiled = _decoders[cls, version] = compile_decoder(layout_of(cls, version), version)
    return compiled


def encoder(cls: type[Message], version: int) -> Callable[[Message], list[Chunk]]:
    """A function `(message) -> chunks`; records are chunks of their own and are not copied."""
    compiled = _encoders.get((cls, version))
    if compiled is None:
        compiled = _encoders[cls, version] = compile_encoder(layout_of(cls, version), version)
    return compiled


def part_encoder(cls: type, part: type[Message], version: int) -> Callable[[Message], list[Chunk]]:
    """The same for a struct that stands in a message, for callers that put messages together from parts."""
    return compile_encoder(layout_inside(cls, part, version), version)


def decode(cls: type[Message], version: int, data: Buffer) -> Message:
    """Decode a message that fills `data` to the last byte."""
    message, pos = decoder(cls, version)(data, 0, len(data))
    if pos != len(data):
        raise ProtocolError(f"{cls.__name__} v{version} is followed by {len(data) - pos} bytes")
    return message


def encode(message: Any, version: int) -> bytes:
    """Encode a message whose records, if it has any, are in memory."""
    chunks: list[Any] = encoder(type(message), version)(message)
    return b"".join(chunks)
