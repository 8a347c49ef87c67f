"""Finds the piece of a step that Spark refuses, by making the step of each of its pieces alone."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from pathlib import Path as FilePath

import msgspec
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from mainstem.spark.pipeline import step_views
from mainstem.spark.pipeline.checking.refusals import missing, refused
from mainstem.spark.pipeline.graph import sql_text
from mainstem.spark.pipeline.model import (
    AggregateStep,
    DeduplicateStep,
    JoinStep,
    PythonStep,
    SqlStep,
    StatefulStep,
    Step,
    WatermarkStep,
    Window,
)
from mainstem.spark.pipeline.problems import Path, Problem


class Maker:
    """Makes a step, or a part of it, of the views that it reads."""

    def __init__(
        self, spark: SparkSession, name: str, inputs: dict[str, DataFrame], folder: FilePath
    ) -> None:
        self._spark = spark
        self.path: Path = ("steps", name)
        self.inputs = inputs
        self.folder = folder

    def make(self, step: Step) -> DataFrame:
        return step_views.make(self._spark, str(self.path[1]), step, self.inputs, self.folder)

    def refusal(self, step: Step, path: Path, text: str = "") -> Iterator[Problem]:
        """What Spark has against it, said of a piece."""
        try:
            self.make(step)
        except PySparkException as error:
            yield refused(error, path, text)
        except Exception:  # it is said of the whole step already
            return

    def absent(self, view: str, columns: list[str], *where: str) -> Iterator[Problem]:
        """Columns that a view does not have; a field of a struct is Spark's to judge."""
        for index, column in enumerate(columns):
            found = missing(
                self.inputs[view.lower()], view, column.partition(".")[0], (*self.path, *where, index)
            )
            if found is not None:
                yield found


def problems(maker: Maker, step: Step, *, is_refused: bool) -> Iterator[Problem]:
    """Nothing where no piece is refused by itself. A step that is not refused may still never work."""
    if isinstance(step, AggregateStep) and step.window is not None:
        of_time = list(_not_a_time(maker, step.source, step.window))
        yield from of_time
        is_refused = is_refused and not of_time
    if not is_refused:
        return
    if isinstance(step, SqlStep):
        key = "sql" if step.sql is not None else "sql_file"
        yield from maker.refusal(step, (*maker.path, key), sql_text(step, maker.folder))
    elif isinstance(step, AggregateStep):
        yield from _aggregate(maker, step)
    elif isinstance(step, JoinStep):
        yield from _join(maker, step)
    elif isinstance(step, DeduplicateStep):
        yield from maker.absent(step.source, step.deduplicate, "deduplicate")
    elif isinstance(step, WatermarkStep):
        yield from maker.refusal(step, (*maker.path, "watermark"))
    elif isinstance(step, StatefulStep):
        yield from maker.absent(step.source, step.by, "by")
    elif isinstance(step, PythonStep):
        yield from _python(maker, step)


def _not_a_time(maker: Maker, view: str, window: Window) -> Iterator[Problem]:
    """Spark would make a time of a text, and find none in it when it runs."""
    schema = maker.inputs[view.lower()].schema
    kinds = {column.name.lower(): column.dataType.simpleString() for column in schema.fields}
    kind = kinds.get(window.column.lower(), "timestamp")
    if not kind.startswith(("timestamp", "struct")):
        hint = "use a TIMESTAMP column; SQL can make one: `CAST(ms / 1000 AS TIMESTAMP)`"
        yield Problem((*maker.path, "window", "column"), f"{window.column} is {kind}, not a time", hint)


def _aggregate(maker: Maker, step: AggregateStep) -> Iterator[Problem]:
    replace = msgspec.structs.replace
    count = {"n": "count(*)"}
    groups = list(maker.absent(step.source, step.by, "by"))
    if step.window is not None:
        alone = replace(step, by=[], aggregate=count)
        groups += maker.refusal(alone, (*maker.path, "window"))
    yield from groups
    # Where the groups are wrong, the values are tried without any.
    bare = replace(step, by=[], window=None) if groups else step
    for name, expression in step.aggregate.items():
        one = replace(bare, aggregate={name: expression})
        yield from maker.refusal(one, (*maker.path, "aggregate", name), expression)


def _join(maker: Maker, step: JoinStep) -> Iterator[Problem]:
    replace = msgspec.structs.replace
    anything = ["1"]
    if isinstance(step.on, str):
        found = list(maker.refusal(replace(step, select=anything), (*maker.path, "on"), step.on))
    else:
        found = [problem for view in step.join for problem in maker.absent(view, step.on, "on")]
    yield from found
    # Where the condition is wrong, the columns are tried without it.
    bare = replace(step, on="true", type="inner") if found else step
    for index, expression in enumerate(step.select or ()):
        one = replace(bare, select=[expression])
        yield from maker.refusal(one, (*maker.path, "select", index), expression)


def _python(maker: Maker, step: PythonStep) -> Iterator[Problem]:
    """What the function raised, with the line of the file that it stands in."""
    path: Path = (*maker.path, "python")
    try:
        maker.make(step)
    except PySparkException as error:
        found = refused(error, path)
        yield Problem(path, f"{_line(error, maker.folder)}{found.message}", found.hint)
    except Exception as error:  # it may raise anything
        yield Problem(path, f"{_line(error, maker.folder)}{type(error).__name__}: {error}")


def _line(error: BaseException, folder: FilePath) -> str:
    """`shop.py:12: `, of the last line that is the pipeline's own."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        file = FilePath(frame.filename)
        is_own = not file.is_relative_to(FilePath(__file__).parents[3]) and "site-packages" not in file.parts
        if is_own and not file.is_relative_to(sys.base_prefix):
            shown = file.relative_to(folder) if file.is_relative_to(folder) else file
            return f"{shown}:{frame.lineno}: "
    return ""
