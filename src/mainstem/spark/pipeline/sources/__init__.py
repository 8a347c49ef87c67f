"""What every source answers. A kind of source is a module of this folder: a class made from Source, with
its KIND, its keys as fields, and how it is checked, described and read. Nothing else has to know of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from mainstem.spark.pipeline.kinds import kinds_in
from mainstem.spark.pipeline.parts import View

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from mainstem.spark.pipeline.running.context import BuildContext


class SourceFrames(NamedTuple):
    """What is read: the view, and what makes the dead letters of a source that has some."""

    view: DataFrame
    dead_letters: Callable[[], DataFrame] | None = None


class Source(View, frozen=True, kw_only=True):
    """A view of something that is read."""

    def read(self, context: BuildContext) -> SourceFrames:
        raise NotImplementedError


KINDS = kinds_in(__name__, __path__, Source, first=("topic", "file"))
