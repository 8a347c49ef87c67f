"""Makes the declared classes from plain data, and finds everything in the data that does not fit them.

The data is what a YAML file holds (with its scalars wrapped in `Written`, so that their text is known) or
what a Python file built. Nothing is raised: each misfit becomes a problem with the path to it.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

import msgspec

from mainstem.nearest import nearest_name
from mainstem.spark.pipeline import sinks, sources, steps
from mainstem.spark.pipeline.model import Pipeline
from mainstem.spark.pipeline.parts import Part, Unread
from mainstem.spark.pipeline.problems import Path, Problem, did_you_mean
from mainstem.spark.pipeline.sinks import Sink
from mainstem.spark.pipeline.sources import Source
from mainstem.spark.pipeline.steps import Step


class Written(NamedTuple):
    """A scalar of a file: what YAML takes it for, and how it is written."""

    value: Any
    text: str


class _Misfit:
    """Stands for a value that was refused; its problem is in the list."""


MISFIT = _Misfit()
# The parts that others name.
_VIEWS: tuple[Path, ...] = (("sources",), ("steps",))
# The classes that may stand where one of these bases is wanted.
_KINDS: dict[type[Part], tuple[type[Part], ...]] = {
    Source: sources.KINDS,
    Step: steps.KINDS,
    Sink: sinks.KINDS,
}
_TYPE_NAMES = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}


def conform(data: Any) -> tuple[Pipeline | None, list[Problem]]:
    """The pipeline that this data describes, and every problem of its form. With problems, it is what fits
    of it, fit for further checks but not for use; None when nothing fits."""
    reader = _Conformer()
    found = reader.part(data, Pipeline, ())
    return (found if isinstance(found, Pipeline) else None), reader.problems


def plain(value: Any) -> Any:
    """The value without the wrapping of its scalars."""
    if isinstance(value, Written):
        return value.value
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [plain(item) for item in value]
    return value


class _Conformer:
    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def _refuse(self, path: Path, message: str, hint: str | None = None, *, at_key: bool = False) -> _Misfit:
        self.problems.append(Problem(path, message, hint, at_key=at_key))
        return MISFIT

    def value(self, value: Any, wanted: Any, path: Path) -> Any:
        if get_origin(wanted) is typing.Annotated:
            wanted = get_args(wanted)[0]
        origin = get_origin(wanted)
        if wanted is Any:
            return plain(value)
        if origin in (Union, types.UnionType):
            return self._union(value, get_args(wanted), path)
        if origin is Literal:
            return self._literal(value, get_args(wanted), path)
        if origin is list:
            return self._list(value, get_args(wanted)[0], path)
        if origin is dict:
            return self._dict(value, get_args(wanted)[1], path)
        if wanted in _KINDS:
            return self._one_of(value, _KINDS[wanted], path)
        if isinstance(wanted, type) and issubclass(wanted, Part):
            return self.part(value, wanted, path)
        return self._scalar(value, wanted, path)

    def _union(self, value: Any, members: tuple[Any, ...], path: Path) -> Any:
        if plain(value) is None and type(None) in members:
            return None
        members = tuple(member for member in members if member is not type(None))
        if len(members) == 1:
            return self.value(value, members[0], path)
        is_sequence = isinstance(value, Sequence) and not isinstance(value, str | bytes | Written)
        for member in members:
            if is_sequence and get_origin(member) is list:
                return self.value(value, member, path)
        if any(get_origin(member) is Callable or member is Callable for member in members) and callable(
            value
        ):
            return value
        if {int, bool} <= set(members) and not isinstance(value, Mapping) and not is_sequence:
            found = plain(value)
            return (
                found if isinstance(found, str | int | float | bool) else getattr(value, "text", str(value))
            )
        return self.value(value, members[0], path)

    def _one_of(self, value: Any, classes: tuple[type[Part], ...], path: Path) -> Any:
        """A part whose class is told by the keys that it has."""
        if isinstance(value, classes):
            return self.part(value, type(value), path)
        short = [cls for cls in classes if cls.SHORT is not None]
        if not isinstance(value, Mapping):
            if short and isinstance(plain(value), str):
                return self.part(value, short[0], path)
            return self._refuse(path, f"must be a mapping with one of {_kinds(classes)}")
        matching = [cls for cls in classes if any(key in value for key in cls.KIND)]
        if len(matching) == 1:
            return self.part(value, matching[0], path)
        if matching:
            keys = [key for cls in matching for key in cls.KIND if key in value]
            return self._refuse((*path, keys[1]), f"{' and '.join(keys)} exclude each other", at_key=True)
        for key in value:
            close = nearest_name(str(key), [kind for cls in classes for kind in cls.KIND])
            if close is not None:
                return self._refuse(
                    (*path, key), f"there is no {key!r} here", f"did you mean {close}?", at_key=True
                )
        return self._refuse(path, f"needs one of {_kinds(classes)} to say what it is")

    def _literal(self, value: Any, allowed: tuple[Any, ...], path: Path) -> Any:
        text = value.text if isinstance(value, Written) else value
        if text in allowed:
            return text
        return self._refuse(
            path,
            f"{text!r} is not one of {', '.join(allowed)}",
            did_you_mean(str(text), allowed, "use one of"),
        )

    def _list(self, value: Any, item: Any, path: Path) -> Any:
        if isinstance(value, str | Written) and plain(value) is not None:
            value = [value]  # a single one may stand without its brackets
        if not isinstance(value, Sequence) or isinstance(value, Written):
            return self._refuse(path, f"must be a list, not {_what(value)}")
        found = [self.value(entry, item, (*path, index)) for index, entry in enumerate(value)]
        return [entry for entry in found if entry is not MISFIT]

    def _dict(self, value: Any, item: Any, path: Path) -> Any:
        if not isinstance(value, Mapping):
            return self._refuse(path, f"must be a mapping of names, not {_what(value)}")
        found = {key: self.value(entry, item, (*path, key)) for key, entry in value.items()}
        if path in _VIEWS:
            return {key: Unread() if entry is MISFIT else entry for key, entry in found.items()}
        return {key: entry for key, entry in found.items() if entry is not MISFIT}

    def _scalar(self, value: Any, wanted: type, path: Path) -> Any:
        if isinstance(value, Mapping) or (
            isinstance(value, Sequence) and not isinstance(value, str | Written)
        ):
            return self._refuse(path, f"must be {_TYPE_NAMES[wanted]}, not {_what(value)}")
        found = plain(value)
        if found is None:
            return self._refuse(path, f"must be {_TYPE_NAMES[wanted]}, not nothing")
        if wanted is str:
            # A text such as 2026-01-31 or 0.1 may stand without quotes.
            return (
                value.text if isinstance(value, Written) else found if isinstance(found, str) else str(found)
            )
        if wanted is float and isinstance(found, int) and not isinstance(found, bool):
            return float(found)
        if not isinstance(found, wanted) or (wanted is int and isinstance(found, bool)):
            return self._refuse(path, f"must be {_TYPE_NAMES[wanted]}, not {_what(value)}")
        return found

    def part(self, value: Any, cls: type[Part], path: Path) -> Any:
        if isinstance(value, cls):
            value = {
                field.encode_name: getattr(value, field.name)
                for field in msgspec.structs.fields(cls)
                if getattr(value, field.name) is not None
            }
        elif not isinstance(value, Mapping):
            if cls.SHORT is None or plain(value) is None:
                return self._refuse(path, f"must be a mapping, not {_what(value)}")
            value = {cls.SHORT: value}
            return self._fields(value, cls, path, short=True)
        return self._fields(value, cls, path)

    def _fields(self, value: Mapping[Any, Any], cls: type[Part], path: Path, *, short: bool = False) -> Any:
        fields = {field.encode_name: field for field in msgspec.structs.fields(cls)}
        hints = typing.get_type_hints(cls, include_extras=True)
        found: dict[str, Any] = {}
        for key in value:
            if key not in fields:
                hint = did_you_mean(str(key), fields)
                self._refuse((*path, key), f"there is no {key!r} here", hint, at_key=True)
        for name, field in fields.items():
            here = path if short else (*path, name)
            given = value.get(name)
            if plain(given) is None:
                if field.required:
                    message = f"{name} is missing" if name not in value else f"{name} is empty"
                    where = path if name not in value else here
                    found[field.name] = self._refuse(where, message, _meaning(hints[field.name]))
                continue
            fitting = self.value(given, hints[field.name], here)
            if fitting is not MISFIT or field.required:
                found[field.name] = fitting  # otherwise its default, so that the rest is checked too
        if any(entry is MISFIT for entry in found.values()):
            return cls(**found | {"name": ""}) if cls is Pipeline else MISFIT
        return cls(**found)


def _meaning(hint: Any) -> str | None:
    for meta in getattr(hint, "__metadata__", ()):
        if isinstance(meta, msgspec.Meta) and meta.description:
            return str(meta.description)
    return None


def _kinds(classes: tuple[type[Part], ...]) -> str:
    return ", ".join(kind for cls in classes for kind in cls.KIND)


def _what(value: Any) -> str:
    if isinstance(value, Written):
        return "nothing" if value.value is None else repr(value.text)
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "a list"
    return "nothing" if value is None else repr(value)
