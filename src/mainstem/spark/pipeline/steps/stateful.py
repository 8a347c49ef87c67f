"""`stateful`: a processor of the pipeline's own with state for each key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from msgspec import Meta

from mainstem.spark.pipeline.checking.refusals import missing_columns
from mainstem.spark.pipeline.checking.rules import CheckContext, bad_ddl, bad_function, lacks_watermark
from mainstem.spark.pipeline.file import functions
from mainstem.spark.pipeline.parts import Function, OutputMode, function_name
from mainstem.spark.pipeline.problems import Path, Problem
from mainstem.spark.pipeline.steps import StepOfOne

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from mainstem.spark.pipeline.running.context import BuildContext

_TIME_MODES = {"none": "None", "processing": "ProcessingTime", "event": "EventTime"}


class StatefulStep(StepOfOne, frozen=True, kw_only=True, rename={"source": "from", "arguments": "with"}):
    """A processor of your own with state for each key (Spark's transformWithState)."""

    KIND: ClassVar[tuple[str, ...]] = ("stateful",)
    SPARK = {
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        )
    }

    stateful: Annotated[Function, Meta(description="`file.py:Class`, a pyspark StatefulProcessor")]
    by: Annotated[list[str], Meta(description="the columns that make the key")]
    schema: Annotated[str, Meta(description="the columns that it emits, as DDL")]
    mode: Annotated[OutputMode, Meta(description="the output mode")] = "append"
    time: Annotated[Literal["none", "processing", "event"], Meta(description="which time its timers use")] = (
        "none"
    )
    arguments: Annotated[dict[str, Any], Meta(description="keyword arguments for the class")] = {}

    def describe(self) -> str:
        return f"stateful {function_name(self.stateful)} by {', '.join(self.by)}"

    def check(self, path: Path, context: CheckContext) -> Iterator[Problem]:
        yield from bad_function(self.stateful, (*path, "stateful"), context.folder)
        if not self.by:
            yield Problem((*path, "by"), "name at least one column")
        yield from bad_ddl(self.schema, (*path, "schema"))
        if self.time == "event" and lacks_watermark(self.source, context):
            message = f"timers by event time need a watermark; {self.source} has none"
            yield Problem((*path, "time"), message)

    def make(self, context: BuildContext) -> DataFrame:
        processor = functions.resolve(self.stateful, context.folder)(**self.arguments)
        functions.send_by_value(context.folder)
        return (
            context.view(self.source)
            .groupBy(*self.by)
            .transformWithState(
                statefulProcessor=processor,
                outputStructType=self.schema,
                outputMode=self.mode.capitalize(),
                timeMode=_TIME_MODES[self.time],
            )
        )

    def refused_pieces(self, context: BuildContext) -> Iterator[Problem]:
        where = (*context.path, "by")
        yield from missing_columns(context.view(self.source), self.source, self.by, where, fields=True)
