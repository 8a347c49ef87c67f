"""`python`: a Python function that is called with each batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from mainstem.spark.pipeline.checking.rules import CheckContext, bad_function
from mainstem.spark.pipeline.file import functions
from mainstem.spark.pipeline.parts import Function, OutputMode, function_name
from mainstem.spark.pipeline.problems import Path, Problem
from mainstem.spark.pipeline.sinks import BatchSink, WriteContext

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class PythonSink(BatchSink, frozen=True, kw_only=True, rename={"source": "from", "arguments": "with"}):
    """A function of your own, called with each batch and its number."""

    KIND: ClassVar[tuple[str, ...]] = ("python",)

    python: Annotated[Function, Meta(description="`file.py:function`, called with (DataFrame, batch id)")]
    mode: Annotated[OutputMode, Meta(description="the output mode")] = "append"
    arguments: Annotated[dict[str, Any], Meta(description="keyword arguments for the function")] = {}

    def describe(self) -> str:
        return f"python {function_name(self.python)}"

    def check(self, path: Path, context: CheckContext) -> Iterator[Problem]:
        yield from bad_function(self.python, (*path, "python"), context.folder)

    def write_batch(self, frame: DataFrame, batch_id: int, context: WriteContext) -> None:
        function = functions.resolve(self.python, context.folder)
        functions.send_by_value(context.folder)
        function(frame, batch_id, **self.arguments)
