"""What all parts of a pipeline file have in common, and what the views among them answer.

A kind of source, step, sink or format is one module in the folder of that name. There its keys are declared
as fields, each once, with its type, default and meaning: the reader of files and the reference in the
documentation take them from there. Its methods say the rest. Spark is imported only in those that need it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import msgspec

from mainstem.spark.pipeline.problems import Path, Problem

if TYPE_CHECKING:
    from mainstem.spark.pipeline.checking.rules import CheckContext
    from mainstem.spark.pipeline.running.context import BuildContext

Scalar = str | int | float | bool
Options = dict[str, Scalar]
# "module:function", "file.py:function", or in a Python file the function itself.
Function = str | Callable[..., Any]
OutputMode = Literal["append", "update", "complete"]


class Input(NamedTuple):
    """A view that a step reads, as written, and where it is written."""

    view: str
    path: Path
    inside: tuple[int, int] | None = None


class SqlPiece(NamedTuple):
    """A SQL text of a pipeline: a whole query or an expression."""

    path: Path
    text: str
    is_query: bool = False


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One mapping of a pipeline file. `SHORT` names the field that a bare value stands for; `KIND` the keys
    of which exactly one tells this part from the others that may stand in its place."""

    SHORT: ClassVar[str | None] = None
    KIND: ClassVar[tuple[str, ...]] = ()

    def describe(self) -> str:
        """What it is, in a few words."""
        raise NotImplementedError

    def check(self, path: Path, context: CheckContext) -> Iterator[Problem]:
        """What is wrong with it as far as that shows without Spark and without a broker."""
        yield from ()

    def sql_pieces(self, path: Path, folder: FilePath) -> Iterator[SqlPiece]:
        """Every SQL text in it, for Spark's parser to look at."""
        yield from ()


class View(Part, frozen=True, kw_only=True):
    """A source or a step: what sinks and steps read by its name."""

    @property
    def is_stream(self) -> bool:
        """Whether rows keep coming out of it, whatever it reads."""
        return False

    @property
    def has_watermark(self) -> bool:
        """Whether it declares one itself."""
        return False

    @property
    def may_add_watermark(self) -> bool:
        """Whether it may have one that nobody sees."""
        return False

    def input_views(self, path: Path, folder: FilePath) -> list[Input]:
        """The views that it reads; none of a query that cannot be read."""
        return []

    def analyse(self, context: BuildContext, *, is_refused: bool) -> Iterator[Problem]:
        """What Spark has against the pieces of it, each at its place; nothing where every piece by itself is
        fine. `is_refused` says whether Spark refuses the whole."""
        yield from ()


class Unread(View, frozen=True, kw_only=True):
    """Stands for a part of a file that could not be read, so that what names it is not a mistake as well."""

    @property
    def is_stream(self) -> bool:
        return True

    @property
    def may_add_watermark(self) -> bool:
        return True

    def describe(self) -> str:
        return "?"


def as_text(options: Options) -> dict[str, str]:
    """The options with their values as the text that libraries take: `true`, as everybody but Python writes
    it."""
    return {
        key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in options.items()
    }


def function_name(function: Function) -> str:
    """How a function is shown."""
    return function if isinstance(function, str) else getattr(function, "__name__", repr(function))


def shortened(text: str) -> str:
    """A text on one line, cut where it is long."""
    one_line = " ".join(text.split())
    return one_line if len(one_line) <= 60 else one_line[:57] + "..."
