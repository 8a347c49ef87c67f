"""What a declared message looks like on the wire in one version: the generators' input.

Reads the `Annotated` metadata of `schema` and resolves it against a version. It must never guess: a
declaration that the language does not know is a `TypeError` at first use, not a silent default.
"""

import types
from functools import cache
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec

from mainstem.protocol.errors import ProtocolError
from mainstem.protocol.registry import API_KEYS
from mainstem.protocol.schema import (
    PLAIN_TYPES,
    VERSION_MAX,
    ApiMessage,
    DataMessage,
    Nullable,
    Tagged,
    VersionRange,
    Versions,
    Wire,
    parse_versions,
)

NESTING_DEPTH_MAX = 12
_ALL_VERSIONS = VersionRange(0, VERSION_MAX)


class Array(NamedTuple):
    """A field that holds a list of `element`."""

    element: "WireType"


class Nested(NamedTuple):
    """A field that holds another struct."""

    layout: "StructLayout"


WireType = Wire | Array | Nested


class Field(NamedTuple):
    """One field as a version has it; `present` is false where the version lacks it."""

    name: str
    type: WireType
    present: bool
    nullable: bool
    tag: int | None
    default: Any


class StructLayout(NamedTuple):
    """All fields of a class in declaration order, absent ones included (they are constructor arguments)."""

    cls: type
    flexible: bool
    fields: tuple[Field, ...]

    @property
    def plain_fields(self) -> list[Field]:
        return [field for field in self.fields if field.present and field.tag is None]

    @property
    def tagged_fields(self) -> list[Field]:
        found = [field for field in self.fields if field.present and field.tag is not None]
        return sorted(found, key=lambda field: field.tag or 0)


class _Declaration(NamedTuple):
    name: str
    hint: Any
    versions: VersionRange
    nullable: VersionRange
    tagged: Tagged | None
    default: Any


def layout_of(cls: type, version: int) -> StructLayout:
    """The layout of a top-level message; `ProtocolError` when it has no such version."""
    known, flexible = _versions_of(cls)
    if version not in known:
        raise ProtocolError(f"{cls.__name__} has no version {version}, only {known.first}-{known.last}")
    return _struct_layout(cls, version, version in flexible, 0)


def layout_inside(cls: type, part: type, version: int) -> StructLayout:
    """The layout of a struct as it stands in a top-level message."""
    found = _find(layout_of(cls, version), part)
    if found is None:
        raise TypeError(f"{part.__name__} is not in {cls.__name__}")
    return found


def _find(layout: StructLayout, part: type) -> StructLayout | None:
    if layout.cls is part:
        return layout
    for field in layout.fields:
        wire_type = field.type
        while isinstance(wire_type, Array):
            wire_type = wire_type.element
        if isinstance(wire_type, Nested) and (found := _find(wire_type.layout, part)) is not None:
            return found
    return None


def _versions_of(cls: type) -> tuple[VersionRange, VersionRange]:
    """The versions of a top-level message, and those with compact types and tags."""
    schema = getattr(cls, "SCHEMA", None)
    if isinstance(schema, ApiMessage):
        info = API_KEYS[schema.api_key]
        return VersionRange(info.min_version, info.max_version), VersionRange(info.flexible_from, VERSION_MAX)
    if isinstance(schema, DataMessage):
        return parse_versions(schema.versions), parse_versions(schema.flexible)
    raise TypeError(f"{cls.__name__} is not a top-level message: it declares no SCHEMA")


def minimal_size(wire_type: WireType, flexible: bool, nullable: bool = False) -> int:
    """The fewest bytes that a value can take; the bound behind every array count check."""
    match wire_type:
        case Wire(size=size) if size:
            return size
        case Wire(name="string"):
            return 1 if flexible else 2
        case Wire() | Array():
            return 1 if flexible else 4
        case Nested(layout):
            if nullable:
                return 1
            plain = sum(minimal_size(f.type, flexible, f.nullable) for f in layout.plain_fields)
            return plain + flexible


def _struct_layout(cls: type, version: int, flexible: bool, depth: int) -> StructLayout:
    if depth > NESTING_DEPTH_MAX:
        raise TypeError(f"{cls.__name__} is nested deeper than {NESTING_DEPTH_MAX} structs")
    fields = tuple(_field(item, version, flexible, depth) for item in _declarations(cls))
    return StructLayout(cls, flexible, fields)


def _field(declared: _Declaration, version: int, flexible: bool, depth: int) -> Field:
    wire_type = _wire_type(declared.hint, version, flexible, depth)
    present = version in declared.versions
    is_tagged = declared.tagged is not None and version in declared.tagged.range
    if present and is_tagged and not flexible:
        raise TypeError(f"{declared.name} is tagged in version {version}, which is not flexible")
    is_nullable = version in declared.nullable
    if is_tagged and (wire_type == Wire("records") or (is_nullable and isinstance(wire_type, Nested))):
        raise TypeError(f"{declared.name}: records and nullable structs cannot be tagged")
    tag = declared.tagged.tag if declared.tagged is not None and is_tagged else None
    return Field(declared.name, wire_type, present, is_nullable, tag, declared.default)


def _wire_type(hint: Any, version: int, flexible: bool, depth: int) -> WireType:
    if get_origin(hint) is Annotated:
        for item in hint.__metadata__:
            if isinstance(item, Wire):
                return item
        hint = hint.__origin__
    if get_origin(hint) in (Union, types.UnionType):
        (hint,) = [arg for arg in get_args(hint) if arg is not types.NoneType]
        return _wire_type(hint, version, flexible, depth)
    if get_origin(hint) is list:
        return Array(_wire_type(get_args(hint)[0], version, flexible, depth))
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return Nested(_struct_layout(hint, version, flexible, depth + 1))
    try:
        return PLAIN_TYPES[hint]
    except KeyError:
        raise TypeError(f"{hint!r} is not a wire type") from None


@cache
def _declarations(cls: type[msgspec.Struct]) -> tuple[_Declaration, ...]:
    hints = get_type_hints(cls, include_extras=True)
    names = cls.__struct_fields__
    if len(cls.__struct_defaults__) != len(names):
        raise TypeError(f"{cls.__name__}: every field of a message has a default")
    return tuple(
        _declaration(name, hints[name], default)
        for name, default in zip(names, cls.__struct_defaults__, strict=True)
    )


def _declaration(name: str, hint: Any, default: Any) -> _Declaration:
    metadata = hint.__metadata__ if get_origin(hint) is Annotated else ()
    facts = {type(item): item for item in metadata}
    tagged: Tagged | None = facts.get(Tagged)
    in_versions: VersionRange = _ALL_VERSIONS if tagged is None else tagged.range
    if Versions in facts:
        in_versions = facts[Versions].range
    null_in = facts[Nullable].range if Nullable in facts else VersionRange(1, 0)
    return _Declaration(name, hint, in_versions, null_in, tagged, default)
