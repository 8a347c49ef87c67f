"""What every step answers. A kind of step is a module of this folder: a class made from Step or StepOfOne,
with its KIND, its keys as fields, and how it is checked, described and made. Nothing else has to know of
it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Annotated, ClassVar

from msgspec import Meta

from mainstem.spark.pipeline.kinds import kinds_in
from mainstem.spark.pipeline.parts import Input, View
from mainstem.spark.pipeline.problems import Path, Problem

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from mainstem.spark.pipeline.running.context import BuildContext


class Step(View, frozen=True, kw_only=True):
    """A view that is made of other views."""

    # Settings without which Spark cannot run such a step.
    SPARK: ClassVar[Mapping[str, str]] = {}

    def make(self, context: BuildContext) -> DataFrame:
        raise NotImplementedError

    def analyse(self, context: BuildContext, *, is_refused: bool) -> Iterator[Problem]:
        if is_refused:
            yield from self.refused_pieces(context)

    def refused_pieces(self, context: BuildContext) -> Iterator[Problem]:
        """The pieces that Spark refuses in a step that it refuses."""
        yield from ()


class StepOfOne(Step, frozen=True, kw_only=True, rename={"source": "from"}):
    """A step that reads one view."""

    source: Annotated[str, Meta(description="the view")]

    def input_views(self, path: Path, folder: FilePath) -> list[Input]:
        return [Input(self.source, (*path, "from"))]


_FIRST = ("sql", "python", "watermark", "deduplicate", "aggregate", "join", "stateful")
KINDS = kinds_in(__name__, __path__, Step, first=_FIRST)
