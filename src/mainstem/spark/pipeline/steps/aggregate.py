"""`aggregate`: one row per group and window."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec
from msgspec import Meta

from mainstem.durations import duration_ms
from mainstem.spark.pipeline import times
from mainstem.spark.pipeline.checking.refusals import missing_columns, refused_piece
from mainstem.spark.pipeline.checking.rules import CheckContext, bad_span
from mainstem.spark.pipeline.parts import Part, SqlPiece
from mainstem.spark.pipeline.problems import Path, Problem
from mainstem.spark.pipeline.spark_functions import F
from mainstem.spark.pipeline.steps import StepOfOne

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from mainstem.spark.pipeline.running.context import BuildContext


class Window(Part, frozen=True, kw_only=True):
    """Windows of time. Give `size` (and `slide`), or `gap` for sessions."""

    column: Annotated[str, Meta(description="the column with the time")]
    size: Annotated[str | None, Meta(description="how long a window is, such as `5 minutes`")] = None
    slide: Annotated[str | None, Meta(description="how far windows are apart, when they overlap")] = None
    gap: Annotated[str | None, Meta(description="a session ends when nothing comes for so long")] = None

    def describe(self) -> str:
        found = f"sessions {self.gap} apart" if self.gap else f"windows of {self.size}"
        return f"{found} every {self.slide}" if self.slide else found

    def check(self, path: Path, context: CheckContext) -> Iterator[Problem]:
        if (self.size is None) == (self.gap is None):
            yield Problem(path, "a window needs either a size or, for sessions, a gap", at_key=True)
        if self.slide is not None and self.gap is not None:
            yield Problem((*path, "slide"), "sessions do not slide", at_key=True)
        for key in ("size", "slide", "gap"):
            yield from bad_span(getattr(self, key), (*path, key))
        size, slide = duration_ms(self.size or ""), duration_ms(self.slide or "")
        if size is not None and slide is not None and slide > size:
            message = (
                f"windows of {self.size} that are {self.slide} apart would leave out what is between them"
            )
            yield Problem((*path, "slide"), message, f"slide by {self.size} at most")

    def of_time(self) -> Column:
        """What Spark groups by."""
        if self.gap is not None:
            return F.session_window(self.column, times.span(self.gap) or self.gap).alias("window")
        size, slide = times.span(self.size or "") or "", times.span(self.slide) if self.slide else None
        return F.window(self.column, size, slide).alias("window")

    def not_a_time(self, frame: DataFrame, path: Path) -> Iterator[Problem]:
        """Spark would make a time of a text, and find none in it when it runs."""
        kinds = {column.name.lower(): column.dataType.simpleString() for column in frame.schema.fields}
        kind = kinds.get(self.column.lower(), "timestamp")
        if not kind.startswith(("timestamp", "struct")):
            hint = "use a TIMESTAMP column; SQL can make one: `CAST(ms / 1000 AS TIMESTAMP)`"
            yield Problem((*path, "column"), f"{self.column} is {kind}, not a time", hint)


class AggregateStep(StepOfOne, frozen=True, kw_only=True):
    """One row per group and window, with `window_start` and `window_end` where there is a window."""

    KIND: ClassVar[tuple[str, ...]] = ("aggregate",)

    aggregate: Annotated[dict[str, str], Meta(description="new columns, each with its SQL expression")]
    by: Annotated[list[str], Meta(description="columns to group by")] = []
    window: Annotated[Window | None, Meta(description="windows of time to group by")] = None

    def describe(self) -> str:
        groups = [self.window.describe()] if self.window is not None else []
        return f"{', '.join(self.aggregate)} by {', '.join([*groups, *self.by]) or 'nothing'}"

    def sql_pieces(self, path: Path, folder: FilePath) -> Iterator[SqlPiece]:
        for name, expression in self.aggregate.items():
            yield SqlPiece((*path, "aggregate", name), expression)

    def check(self, path: Path, context: CheckContext) -> Iterator[Problem]:
        if not self.aggregate:
            yield Problem((*path, "aggregate"), "name at least one column, such as `total: sum(amount)`")
        names = [name.lower() for name in (*self.by, *self.aggregate)]
        for name in self.aggregate:
            if names.count(name.lower()) > 1:
                yield Problem((*path, "aggregate", name), f"there would be two columns {name}", at_key=True)
        if self.window is not None:
            yield from self.window.check((*path, "window"), context)

    def make(self, context: BuildContext) -> DataFrame:
        source = context.view(self.source)
        values = [F.expr(expression).alias(name) for name, expression in self.aggregate.items()]
        by = [F.col(name) for name in self.by]
        if self.window is None:
            return source.groupBy(*by).agg(*values)
        grouped = source.groupBy(self.window.of_time(), *by).agg(*values)
        return grouped.select(
            F.col("window.start").alias("window_start"),
            F.col("window.end").alias("window_end"),
            *self.by,
            *self.aggregate,
        )

    def analyse(self, context: BuildContext, *, is_refused: bool) -> Iterator[Problem]:
        """A step that Spark does not refuse may still never work."""
        found: list[Problem] = []
        if self.window is not None:
            found = list(self.window.not_a_time(context.view(self.source), (*context.path, "window")))
        yield from found
        if is_refused and not found:
            yield from self.refused_pieces(context)

    def refused_pieces(self, context: BuildContext) -> Iterator[Problem]:
        replace = msgspec.structs.replace
        view, path = context.view(self.source), context.path
        groups = list(missing_columns(view, self.source, self.by, (*path, "by"), fields=True))
        if self.window is not None:
            alone = replace(self, by=[], aggregate={"n": "count(*)"})
            groups += refused_piece(lambda: alone.make(context), (*path, "window"))
        yield from groups
        # Where the groups are wrong, the values are tried without any.
        bare = replace(self, by=[], window=None) if groups else self
        for name, expression in self.aggregate.items():
            one = replace(bare, aggregate={name: expression})
            where = (*path, "aggregate", name)
            yield from refused_piece(partial(one.make, context), where, expression)
