"""Writes the reference of the keys of a pipeline file from their declarations, for docs/pipelines.md.

python -m tests.spark.pipeline.reference    prints it
"""

import types
import typing
from typing import Any, Literal, Union, get_args, get_origin

import msgspec

from mainstem.spark.pipeline import model

SECTIONS: list[tuple[str, list[type[model.Part]]]] = [
    ("The pipeline", [model.Pipeline, model.DeadLetters]),
    ("Sources", [model.TopicSource, model.Decode, model.Watermark, model.FileSource]),
    (
        "Steps",
        [
            model.SqlStep,
            model.PythonStep,
            model.WatermarkStep,
            model.DeduplicateStep,
            model.AggregateStep,
            model.Window,
            model.JoinStep,
            model.StatefulStep,
        ],
    ),
    (
        "Sinks",
        [
            model.TopicSink,
            model.ParquetSink,
            model.DeltaSink,
            model.IcebergSink,
            model.JdbcSink,
            model.ConsoleSink,
            model.PythonSink,
        ],
    ),
]


def reference() -> str:
    """The section of the page, from its heading on."""
    lines = ["## Every key", ""]
    for title, classes in SECTIONS:
        lines += [f"### {title}", ""]
        for cls in classes:
            lines += [f"**`{cls.__name__}`**: {' '.join((cls.__doc__ or '').split())}", ""]
            lines += ["| key | value | default | meaning |", "| --- | --- | --- | --- |"]
            lines += [_row(field, typing.get_type_hints(cls, include_extras=True)) for field in _fields(cls)]
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _fields(cls: type[model.Part]) -> list[msgspec.structs.FieldInfo]:
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
    if isinstance(value, model.Decode):
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
        if len(members) > 1 and all(
            isinstance(each, type) and issubclass(each, model.Part) for each in members
        ):
            return "one of those below"
        return " or ".join(dict.fromkeys(_value(member) for member in members if member is not _CALLABLE))
    if origin is list:
        return f"list of {_value(get_args(kind)[0])}"
    if origin is dict:
        return f"names, each with {_value(get_args(kind)[1])}"
    if isinstance(kind, type) and issubclass(kind, model.Part):
        return f"`{kind.__name__}`"
    return {str: "text", int: "number", bool: "`true` or `false`", Any: "anything"}.get(kind, "function")


_CALLABLE = typing.get_args(model.Function)[1]

if __name__ == "__main__":
    print(reference(), end="")
