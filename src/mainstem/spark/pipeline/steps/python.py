"""`python`: a view that a Python function makes of others."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

import mainstem
from mainstem.spark.pipeline.checking.refusals import refused
from mainstem.spark.pipeline.checking.rules import CheckContext, bad_function
from mainstem.spark.pipeline.file import functions
from mainstem.spark.pipeline.parts import Function, Input, function_name
from mainstem.spark.pipeline.problems import Path, PipelineError, Problem
from mainstem.spark.pipeline.steps import Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from mainstem.spark.pipeline.running.context import BuildContext


class PythonStep(Step, frozen=True, kw_only=True, rename={"inputs": "from", "arguments": "with"}):
    """A view that a Python function makes of other views."""

    KIND: ClassVar[tuple[str, ...]] = ("python",)

    python: Annotated[Function, Meta(description="`file.py:function` or `module:function`, on DataFrames")]
    inputs: Annotated[str | list[str], Meta(description="the views that the function is called with")]
    arguments: Annotated[dict[str, Any], Meta(description="keyword arguments for the function")] = {}

    def describe(self) -> str:
        return f"python {function_name(self.python)}"

    @property
    def may_add_watermark(self) -> bool:
        return True

    def input_views(self, path: Path, folder: FilePath) -> list[Input]:
        if isinstance(self.inputs, str):
            return [Input(self.inputs, (*path, "from"))]
        return [Input(view, (*path, "from", index)) for index, view in enumerate(self.inputs)]

    def check(self, path: Path, context: CheckContext) -> Iterator[Problem]:
        yield from bad_function(self.python, (*path, "python"), context.folder)
        if self.inputs == []:
            yield Problem((*path, "from"), "the function needs at least one view")

    def make(self, context: BuildContext) -> DataFrame:
        from pyspark.sql import DataFrame

        function = functions.resolve(self.python, context.folder)
        functions.send_by_value(context.folder)
        views = [self.inputs] if isinstance(self.inputs, str) else self.inputs
        found = function(*map(context.view, views), **self.arguments)
        if not isinstance(found, DataFrame):
            message = f"the function gave {type(found).__name__}, not a DataFrame"
            raise PipelineError([Problem((*context.path, "python"), message)])
        return found

    def refused_pieces(self, context: BuildContext) -> Iterator[Problem]:
        """What the function raised, with the line of the file that it stands in."""
        from pyspark.errors import PySparkException

        path: Path = (*context.path, "python")
        try:
            self.make(context)
        except PySparkException as error:
            found = refused(error, path)
            yield Problem(path, f"{_line(error, context.folder)}{found.message}", found.hint)
        except Exception as error:  # it may raise anything
            yield Problem(path, f"{_line(error, context.folder)}{type(error).__name__}: {error}")


def _line(error: BaseException, folder: FilePath) -> str:
    """`shop.py:12: `, of the last line that is the pipeline's own."""
    installed = FilePath(mainstem.__file__).parent
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        file = FilePath(frame.filename)
        is_own = not file.is_relative_to(installed) and "site-packages" not in file.parts
        if is_own and not file.is_relative_to(sys.base_prefix):
            shown = file.relative_to(folder) if file.is_relative_to(folder) else file
            return f"{shown}:{frame.lineno}: "
    return ""
