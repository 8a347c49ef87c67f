"""`join`: two views joined."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from mainstem.spark.pipeline.checking.refusals import missing_columns, refused_piece, repeated
from mainstem.spark.pipeline.checking.rules import CheckContext
from mainstem.spark.pipeline.parts import Input, SqlPiece, shortened
from mainstem.spark.pipeline.problems import Path, PipelineError, Problem
from mainstem.spark.pipeline.spark_functions import F
from mainstem.spark.pipeline.steps import Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from mainstem.spark.pipeline.running.context import BuildContext


class JoinStep(Step, frozen=True, kw_only=True):
    """Two views joined; views of topics need watermarks and a condition on time to forget old rows."""

    KIND: ClassVar[tuple[str, ...]] = ("join",)

    join: Annotated[list[str], Meta(description="the two views: left, right")]
    on: Annotated[
        str | list[str],
        Meta(description="a SQL condition in which the views' names are aliases, or common columns"),
    ]
    type: Annotated[
        Literal["inner", "left", "right", "full", "left_semi", "left_anti"],
        Meta(description="the kind of join"),
    ] = "inner"
    select: Annotated[
        list[str] | None, Meta(description="the columns of the result, as SQL; all otherwise")
    ] = None

    def describe(self) -> str:
        on = self.on if isinstance(self.on, str) else ", ".join(self.on)
        return f"{self.type} join of {' and '.join(self.join)} on {shortened(on)}"

    def input_views(self, path: Path, folder: FilePath) -> list[Input]:
        return [Input(view, (*path, "join", index)) for index, view in enumerate(self.join)]

    def sql_pieces(self, path: Path, folder: FilePath) -> Iterator[SqlPiece]:
        if isinstance(self.on, str):
            yield SqlPiece((*path, "on"), self.on)
        for index, expression in enumerate(self.select or ()):
            yield SqlPiece((*path, "select", index), expression)

    def check(self, path: Path, context: CheckContext) -> Iterator[Problem]:
        if len(self.join) != 2:
            message = f"a join has two views, not {len(self.join)}"
            yield Problem((*path, "join"), message, "chain several joins")
        elif self.join[0].lower() == self.join[1].lower():
            message = "a view cannot be joined with itself"
            yield Problem((*path, "join", 1), message, "make a second view of it")

    def make(self, context: BuildContext) -> DataFrame:
        left, right = (context.view(view).alias(view) for view in self.join)
        if isinstance(self.on, str):
            joined = left.join(right, F.expr(self.on), self.type)
        else:
            joined = left.join(right, list(self.on), self.type)
        if self.select is not None:
            return joined.selectExpr(*self.select)
        common = repeated(joined.columns)
        if common:
            left_name, right_name = self.join
            hint = f"add select, for example: select: [{left_name}.{common[0]}, ...]"
            message = f"{left_name} and {right_name} both have {', '.join(common)}"
            raise PipelineError([Problem((*context.path, "join"), message, hint)])
        return joined

    def refused_pieces(self, context: BuildContext) -> Iterator[Problem]:
        replace = msgspec.structs.replace
        where = (*context.path, "on")
        found: list[Problem] = []
        if isinstance(self.on, str):
            alone = replace(self, select=["1"])
            found += refused_piece(lambda: alone.make(context), where, self.on)
        else:
            for view in self.join:
                found += missing_columns(context.view(view), view, self.on, where, fields=True)
        yield from found
        # Where the condition is wrong, the columns are tried without it.
        bare = replace(self, on="true", type="inner") if found else self
        for index, expression in enumerate(self.select or ()):
            one = replace(bare, select=[expression])
            path = (*context.path, "select", index)
            yield from refused_piece(partial(one.make, context), path, expression)
