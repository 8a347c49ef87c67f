"""Writes the reference of the keys of a pipeline file from their declarations, for docs/pipelines.md.

python -m tests.spark.pipeline.reference    prints it
"""

import types
import typing
from typing import Any, Literal, Union, get_args, get_origin

import msgspec

from mainstem.spark.pipeline import Decode, Pipeline, parts, sinks, sources, steps
from mainstem.spark.pipeline.parts import Part
from mainstem.spark.pipeline.sinks import Sink
from mainstem.spark.pipeline.sources import Source
from mainstem.spark.pipeline.steps import Step

_BASES = (Source, Step, Sink)
SECTIONS: list[tuple[str, tuple[type[Part], ...]]] = [
    ("The pipeline", (Pipeline,)),
    ("Sources", sources.KINDS),
    ("Steps", steps.KINDS),
    ("Sinks", sinks.KINDS),
]


def reference() -> str:
    """The section of the page, from its heading on."""
    lines = ["## Every key", ""]
    for title, classes in SECTIONS:
        lines += [f"### {title}", ""]
        for cls in (each for kind in classes for each in (kind, *_within(kind))):
            lines += [f"**`{cls.__name__}`**: {' '.join((cls.__doc__ or '').split())}", ""]
            lines += ["| key | value | default | meaning |", "| --- | --- | --- | --- |"]
            lines += [_row(field, typing.get_type_hints(cls, include_extras=True)) for field in _fields(cls)]
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _within(kind: type[Part]) -> list[type[Part]]:
    """The mappings that stand within a part of this kind."""
    fields = [get_args(hint)[0] for hint in typing.get_type_hints(kind, include_extras=True).values()]
    members = [member for field in fields for member in (field, *get_args(field))]
    return [
        each for each in members if isinstance(each, type) and issubclass(each, Part) and each not in _BASES
    ]


def _fields(cls: type[Part]) -> list[msgspec.structs.FieldInfo]:
    kinds = list(cls.KIND)
    return sorted(
        msgspec.structs.fields(cls),
        key=lambda field: kinds.index(field.encode_name) if field.encode_name in kinds else len(kinds),
    )


def _row(field: msgspec.structs.FieldInfo, hints: dict[str, Any]) -> str:
    annotated = hints[field.name]
    meaning = annotated.__metadata__[0].description
    default = "required" if field.required else _default(field)
    return f"| `{field.encode_name}` | {_value(get_args(annotated)[0])} | {default} | {meaning} |"


def _default(field: msgspec.structs.FieldInfo) -> str:
    value = field.default
    if value is None or value is msgspec.NODEFAULT:
        return ""
    if isinstance(value, Decode):
        return f"`{value.format}`"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _value(kind: Any) -> str:
    origin = get_origin(kind)
    if origin is Literal:
        return " or ".join(f"`{choice}`" for choice in get_args(kind))
    if origin in (Union, types.UnionType):
        members = [member for member in get_args(kind) if member is not type(None)]
        if {str, int, bool} <= set(members):
            return "text or number"
        return " or ".join(dict.fromkeys(_value(member) for member in members if member is not _CALLABLE))
    if origin is list:
        return f"list of {_value(get_args(kind)[0])}"
    if origin is dict:
        return f"names, each with {_value(get_args(kind)[1])}"
    if kind in _BASES:
        return "one of those below"
    if isinstance(kind, type) and issubclass(kind, Part):
        return f"`{kind.__name__}`"
    return {str: "text", int: "number", bool: "`true` or `false`", Any: "anything"}.get(kind, "function")


_CALLABLE = typing.get_args(parts.Function)[1]

if __name__ == "__main__":
    print(reference(), end="")
