"""Spark's refusals as problems of the piece that was tried, at the place in its text."""

from __future__ import annotations

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from mainstem.nearest import nearest_name
from mainstem.spark.pipeline.problems import Path, Problem, did_you_mean
from mainstem.spark.pipeline.running.views import PLACE_IN_SQL, brief
from mainstem.spark.pipeline.sql_tokens import place_with_blanks


def refused(error: PySparkException, path: Path, text: str = "") -> Problem:
    """What Spark says of a piece. `text` is the piece, where Spark was given it without its first blanks."""
    message, hint = _said(error)
    place = PLACE_IN_SQL.search(str(error))
    if place is None:
        return Problem(path, message, hint)
    return Problem(path, message, hint, inside=place_with_blanks(text, int(place[1]), int(place[2])))


def _said(error: PySparkException) -> tuple[str, str | None]:
    condition = error.getCondition() or ""
    known = dict(error.getMessageParameters() or {})
    if condition.startswith("UNRESOLVED_COLUMN") and "objectName" in known:
        name = _plain(known["objectName"])
        columns = [_plain(column) for column in known.get("proposal", "").split(", ") if column]
        return f"there is no column {name!r}", did_you_mean(name, columns, "there are")
    if condition == "UNRESOLVED_ROUTINE":
        return f"there is no function {_plain(known['routineName'])!r}", None
    return brief(error).rstrip("."), None


def _plain(name: str) -> str:
    return name.replace("`", "")


def missing(frame: DataFrame, view: str, column: str, path: Path) -> Problem | None:
    """The problem that a view has no such column."""
    if column.lower() in (name.lower() for name in frame.columns):
        return None
    close = nearest_name(column, frame.columns)
    hint = f"did you mean {close}?" if close else f"its columns are {', '.join(frame.columns)}"
    return Problem(path, f"{view} has no column {column!r}", hint)
