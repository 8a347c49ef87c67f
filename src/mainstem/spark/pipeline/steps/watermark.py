"""`watermark`: the same view with a watermark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar

from msgspec import Meta

from mainstem.spark.pipeline import times
from mainstem.spark.pipeline.checking.refusals import refused_piece
from mainstem.spark.pipeline.checking.rules import CheckContext, bad_span
from mainstem.spark.pipeline.problems import Path, Problem
from mainstem.spark.pipeline.steps import StepOfOne

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from mainstem.spark.pipeline.running.context import BuildContext


class WatermarkStep(StepOfOne, frozen=True, kw_only=True):
    """The same view with a watermark."""

    KIND: ClassVar[tuple[str, ...]] = ("watermark",)

    watermark: Annotated[str, Meta(description="the column with the time of the event")]
    delay: Annotated[str, Meta(description="how late a row may come, such as `10 minutes`")]

    def describe(self) -> str:
        return f"watermark {self.watermark}, {times.span(self.delay)} late"

    @property
    def has_watermark(self) -> bool:
        return True

    def check(self, path: Path, context: CheckContext) -> Iterator[Problem]:
        yield from bad_span(self.delay, (*path, "delay"))

    def make(self, context: BuildContext) -> DataFrame:
        return context.view(self.source).withWatermark(self.watermark, times.span(self.delay) or self.delay)

    def refused_pieces(self, context: BuildContext) -> Iterator[Problem]:
        yield from refused_piece(lambda: self.make(context), (*context.path, "watermark"))
