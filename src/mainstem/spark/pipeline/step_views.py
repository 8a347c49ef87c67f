"""Makes the DataFrame of a step from those of the views that it reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path as FilePath
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mainstem.spark.pipeline import times
from mainstem.spark.pipeline.file import functions
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
from mainstem.spark.pipeline.problems import PipelineError, Problem


def make(
    spark: SparkSession, name: str, step: Step, views: dict[str, DataFrame], folder: FilePath
) -> DataFrame:
    """The view of a step. `views` holds what it reads, by lower-case name."""
    if isinstance(step, SqlStep):
        return spark.sql(sql_text(step, folder).strip().rstrip(";"))
    if isinstance(step, PythonStep):
        return _python(name, step, views, folder)
    if isinstance(step, JoinStep):
        return _join(name, step, views)
    source = views[step.source.lower()]
    if isinstance(step, WatermarkStep):
        return source.withWatermark(step.watermark, times.span(step.delay) or step.delay)
    if isinstance(step, DeduplicateStep):
        if step.within_watermark:
            return source.dropDuplicatesWithinWatermark(step.deduplicate)
        return source.dropDuplicates(step.deduplicate)
    if isinstance(step, AggregateStep):
        return _aggregate(step, source)
    return _stateful(step, source, folder)


def _python(name: str, step: PythonStep, views: dict[str, DataFrame], folder: FilePath) -> DataFrame:
    function = functions.resolve(step.python, folder)
    functions.send_by_value(folder)
    inputs = [step.inputs] if isinstance(step.inputs, str) else step.inputs
    found = function(*(views[view.lower()] for view in inputs), **step.arguments)
    if not isinstance(found, DataFrame):
        message = f"the function gave {type(found).__name__}, not a DataFrame"
        raise PipelineError([Problem(("steps", name, "python"), message)])
    return found


def _join(name: str, step: JoinStep, views: dict[str, DataFrame]) -> DataFrame:
    left_name, right_name = step.join
    left, right = (views[view.lower()].alias(view) for view in step.join)
    if isinstance(step.on, str):
        joined = left.join(right, F.expr(step.on), step.type)
    else:
        joined = left.join(right, list(step.on), step.type)
    if step.select is not None:
        return joined.selectExpr(*step.select)
    common = _twice(joined.columns)
    if common:
        hint = f"add select, for example: select: [{left_name}.{common[0]}, ...]"
        message = f"{left_name} and {right_name} both have {', '.join(common)}"
        raise PipelineError([Problem(("steps", name, "join"), message, hint)])
    return joined


def _twice(names: Sequence[str]) -> list[str]:
    lowered = [name.lower() for name in names]
    return sorted({name for name in names if lowered.count(name.lower()) > 1})


def _aggregate(step: AggregateStep, source: DataFrame) -> DataFrame:
    values = [F.expr(expression).alias(name) for name, expression in step.aggregate.items()]
    by = [F.col(name) for name in step.by]
    if step.window is None:
        return source.groupBy(*by).agg(*values)
    grouped = source.groupBy(_window(step.window), *by).agg(*values)
    return grouped.select(
        F.col("window.start").alias("window_start"),
        F.col("window.end").alias("window_end"),
        *step.by,
        *step.aggregate,
    )


def _window(window: Window) -> Any:
    if window.gap is not None:
        return F.session_window(window.column, times.span(window.gap) or window.gap).alias("window")
    size = times.span(window.size or "") or ""
    return F.window(window.column, size, times.span(window.slide) if window.slide else None).alias("window")


def _stateful(step: StatefulStep, source: DataFrame, folder: FilePath) -> DataFrame:
    processor = functions.resolve(step.stateful, folder)(**step.arguments)
    functions.send_by_value(folder)
    mode = {"none": "None", "processing": "ProcessingTime", "event": "EventTime"}[step.time]
    grouped = source.groupBy(*step.by)
    return grouped.transformWithState(
        statefulProcessor=processor,
        outputStructType=step.schema,
        outputMode=step.mode.capitalize(),
        timeMode=mode,
    )
