"""Declarations that the schema language does not allow are refused when they are first used."""

from typing import Annotated, Any, ClassVar

import pytest
from msgspec import Struct, field

from mainstem.protocol.layout import layout_of
from mainstem.protocol.schema import (
    I32,
    DataMessage,
    Records,
    VersionRange,
    nullable,
    parse_versions,
    tagged,
    versions,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("3+", (3, 32767)), ("2-5", (2, 5)), ("4", (4, 4)), ("0-0", (0, 0)), ("none", (1, 0))],
)
def test_version_ranges_are_written_as_kafka_writes_them(text: str, expected: tuple[int, int]) -> None:
    assert parse_versions(text) == VersionRange(*expected)


def test_a_range_contains_its_ends_and_none_contains_nothing() -> None:
    assert [version in parse_versions("2-3") for version in range(5)] == [False, False, True, True, False]
    assert not any(version in parse_versions("none") for version in range(5))


class _Inner(Struct, gc=False):
    number: I32 = 0


class _WithUnknownType(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(versions="0", flexible="0+")
    value: complex = 0j


class _WithoutDefault(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(versions="0", flexible="0+")
    value: I32


class _WithTaggedRecords(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(versions="0", flexible="0+")
    value: Annotated[Records | None, tagged(0, "0+")] = None


class _WithTaggedNullableStruct(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(versions="0", flexible="0+")
    value: Annotated[_Inner | None, tagged(0, "0+"), nullable("0+")] = None


class _TaggedBeforeFlexible(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(versions="0-1", flexible="1+")
    value: Annotated[I32, tagged(0, "0+")] = 0


class _Recursive(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(versions="0", flexible="0+")
    children: "list[_Recursive]" = []


@pytest.mark.parametrize(
    "cls",
    [
        _Inner,
        _WithUnknownType,
        _WithoutDefault,
        _WithTaggedRecords,
        _WithTaggedNullableStruct,
        _TaggedBeforeFlexible,
        _Recursive,
    ],
)
def test_what_the_language_does_not_know_is_refused(cls: type[Any]) -> None:
    with pytest.raises(TypeError):
        layout_of(cls, 0)


class _Changing(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(versions="0-2", flexible="2+")
    old: Annotated[I32, versions("0")] = 0
    new: Annotated[str | None, versions("1+"), nullable("2+")] = None
    inner: _Inner = field(default_factory=_Inner)


def test_a_layout_is_what_one_version_has() -> None:
    def facts(version: int) -> list[tuple[str, bool]]:
        return [(item.name, item.nullable) for item in layout_of(_Changing, version).plain_fields]

    assert facts(0) == [("old", False), ("inner", False)]
    assert facts(1) == [("new", False), ("inner", False)]
    assert facts(2) == [("new", True), ("inner", False)]
    assert [layout_of(_Changing, version).flexible for version in range(3)] == [False, False, True]
