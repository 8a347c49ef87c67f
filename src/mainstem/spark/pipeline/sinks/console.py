"""`console`: rows on the screen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar

from msgspec import Meta

from mainstem.spark.pipeline.checking.rules import CheckContext
from mainstem.spark.pipeline.parts import OutputMode
from mainstem.spark.pipeline.problems import Path, Problem
from mainstem.spark.pipeline.sinks import BatchSink, WriteContext

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class ConsoleSink(BatchSink, frozen=True, kw_only=True):
    """Rows on the screen, to look at."""

    KIND: ClassVar[tuple[str, ...]] = ("console",)

    console: Annotated[int, Meta(description="how many rows of each batch")] = 20
    mode: Annotated[OutputMode, Meta(description="the output mode")] = "append"

    def describe(self) -> str:
        return f"console, {self.console} rows"

    def check(self, path: Path, context: CheckContext) -> Iterator[Problem]:
        if self.console < 1:
            yield Problem((*path, "console"), "show at least one row")

    def write_batch(self, frame: DataFrame, batch_id: int, context: WriteContext) -> None:
        context.show(context.name, frame, self.console)
