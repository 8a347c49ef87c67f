"""`deduplicate`: the first row of each key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar

from msgspec import Meta

from mainstem.spark.pipeline.checking.refusals import missing_columns
from mainstem.spark.pipeline.checking.rules import CheckContext, lacks_watermark
from mainstem.spark.pipeline.problems import Path, Problem
from mainstem.spark.pipeline.steps import StepOfOne

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from mainstem.spark.pipeline.running.context import BuildContext


class DeduplicateStep(StepOfOne, frozen=True, kw_only=True):
    """The first row of each key."""

    KIND: ClassVar[tuple[str, ...]] = ("deduplicate",)

    deduplicate: Annotated[list[str], Meta(description="the columns that make rows the same")]
    within_watermark: Annotated[
        bool, Meta(description="forget keys when the watermark has passed them; the state stays small")
    ] = True

    def describe(self) -> str:
        return f"first of each {', '.join(self.deduplicate)}"

    def check(self, path: Path, context: CheckContext) -> Iterator[Problem]:
        if not self.deduplicate:
            yield Problem((*path, "deduplicate"), "name at least one column")
        if self.within_watermark and lacks_watermark(self.source, context):
            message = f"{self.source} has no watermark, so no key could ever be forgotten"
            hint = "give it a watermark, or set within_watermark: false to keep every key for ever"
            yield Problem(path, message, hint, at_key=True)

    def make(self, context: BuildContext) -> DataFrame:
        view = context.view(self.source)
        if self.within_watermark:
            return view.dropDuplicatesWithinWatermark(self.deduplicate)
        return view.dropDuplicates(self.deduplicate)

    def refused_pieces(self, context: BuildContext) -> Iterator[Problem]:
        where = (*context.path, "deduplicate")
        yield from missing_columns(
            context.view(self.source), self.source, self.deduplicate, where, fields=True
        )
