"""Checks that kinds of parts share: topics, addresses, spans of time, schemas, functions, packages."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, NamedTuple

from mainstem.spark.pipeline import times
from mainstem.spark.pipeline.file import functions
from mainstem.spark.pipeline.parts import Function
from mainstem.spark.pipeline.problems import Path, Problem
from mainstem.spark.pipeline.schemas import definitions

if TYPE_CHECKING:
    from mainstem.spark.pipeline.graph import Graph
    from mainstem.spark.pipeline.model import Pipeline

_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_ADDRESS = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\s:,\[\]]+):(\d{1,5})")


class CheckContext(NamedTuple):
    """What a check may look at."""

    pipeline: Pipeline
    folder: FilePath
    graph: Graph


def bad_topic(name: str, path: Path) -> Iterator[Problem]:
    if not _TOPIC.fullmatch(name) or name in (".", ".."):
        hint = "use up to 249 letters, digits, '.', '_' and '-'"
        yield Problem(path, f"{name!r} is no name for a topic", hint)


def bad_bootstrap(text: str | None, path: Path) -> Iterator[Problem]:
    for address in text.split(",") if text is not None else ():
        match = _ADDRESS.fullmatch(address.strip())
        if match is None or not 0 < int(match[2]) < 65536:
            yield Problem(path, f"{address.strip()!r} is not HOST:PORT", "for example localhost:9092")


def bad_span(text: str | None, path: Path) -> Iterator[Problem]:
    if text is not None and times.span(text) is None:
        yield Problem(path, f"{text!r} is no span of time", "for example 30 seconds, 10 minutes or 2 hours")


def bad_trigger(text: str | None, path: Path) -> Iterator[Problem]:
    if text is not None and times.trigger(text) is None:
        hint = "use a time between batches such as `5 seconds`, or `available now`"
        yield Problem(path, f"{text!r} is no trigger", hint)


def bad_ddl(text: str | None, path: Path) -> Iterator[Problem]:
    """A key `schema` with columns as DDL."""
    try:
        if text is not None:
            definitions.parse_ddl(text, "schema")
    except definitions.SchemaError as error:
        yield Problem(path, str(error), error.hint, error.inside)


def bad_function(function: Function, path: Path, folder: FilePath) -> Iterator[Problem]:
    try:
        functions.resolve(function, folder)
    except functions.FunctionError as error:
        yield Problem(path, str(error), error.hint)


def needs_package(module: str, path: Path) -> Iterator[Problem]:
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        found = None
    if found is None:
        yield Problem(path, f"this needs the Python package {module}", f"pip install {module}")


def lacks_watermark(view: str, context: CheckContext) -> bool:
    """A stream that has certainly none: a function may add one where nobody sees it."""
    parts = [context.graph.definition(name) for name in context.graph.upstream(view)]
    if not parts or any(part.has_watermark or part.may_add_watermark for part in parts):
        return False
    return context.graph.streams(view)
