"""The schema language: how a Kafka message is declared, once, for all its versions.

A message is a `msgspec.Struct` whose fields carry their wire type and their version facts as `Annotated`
metadata; `layout` reads them and the generators compile them. A field is in every version unless `versions`
says otherwise, and its default is what a reader sees in a version that lacks it. Example::

    class DeletableTopic(Struct, gc=False):
        name: Annotated[str | None, versions("6+"), nullable("6+")] = None

    class DeleteTopicsRequest(Struct, gc=False):
        SCHEMA: ClassVar = ApiMessage(api_key=20, kind="request")
        topics: Annotated[list[DeletableTopic], versions("6+")] = []
        timeout_ms: I32 = 0

Two conventions. A tagged struct that is not nullable is declared `X | None`: None stands for "not sent",
which on the wire means the struct of defaults. `gc=False` is safe because messages are trees: nothing in a
message refers back to its owner.
"""

from typing import Annotated, Literal, NamedTuple, Protocol


class RecordsLike(Protocol):
    """Records that are not in memory, such as a range of a segment file; only the length is known here."""

    @property
    def length(self) -> int: ...


class Wire(NamedTuple):
    """The wire type of a Python type; `struct_format` is empty where the size is not fixed."""

    name: str
    struct_format: str = ""
    size: int = 0


I8 = Annotated[int, Wire("int8", "b", 1)]
I16 = Annotated[int, Wire("int16", "h", 2)]
U16 = Annotated[int, Wire("uint16", "H", 2)]
I32 = Annotated[int, Wire("int32", "i", 4)]
I64 = Annotated[int, Wire("int64", "q", 8)]
F64 = Annotated[float, Wire("float64", "d", 8)]
Uuid = Annotated[bytes, Wire("uuid", "16s", 16)]
Records = Annotated[bytes | bytearray | memoryview | RecordsLike, Wire("records")]

PLAIN_TYPES = {bool: Wire("bool", "?", 1), str: Wire("string"), bytes: Wire("bytes")}


class VersionRange(NamedTuple):
    """An inclusive range of versions; an empty one has `first` above `last`."""

    first: int
    last: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last


VERSION_MAX = 32767


def parse_versions(text: str) -> VersionRange:
    """Read Kafka's notation: `3+`, `2-5`, `4`, `none`."""
    if text == "none":
        return VersionRange(1, 0)
    if text.endswith("+"):
        return VersionRange(int(text[:-1]), VERSION_MAX)
    first, _, last = text.partition("-")
    return VersionRange(int(first), int(last or first))


class Versions(NamedTuple):
    """The versions that have the field."""

    range: VersionRange


class Nullable(NamedTuple):
    """The versions in which the field may be null."""

    range: VersionRange


class Tagged(NamedTuple):
    """The versions in which the field is sent as a tagged field, and its tag."""

    tag: int
    range: VersionRange


def versions(text: str) -> Versions:
    return Versions(parse_versions(text))


def nullable(text: str) -> Nullable:
    return Nullable(parse_versions(text))


def tagged(tag: int, text: str) -> Tagged:
    return Tagged(tag, parse_versions(text))


class ApiMessage(NamedTuple):
    """What the top-level struct of a request or a response says about itself; the registry has the rest."""

    api_key: int
    kind: Literal["request", "response"]


class DataMessage(NamedTuple):
    """The same for a message that is stored rather than sent (a metadata record), and its versions."""

    versions: str
    flexible: str = "none"
    record_api_key: int | None = None
