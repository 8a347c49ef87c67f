"""Spark's refusals as problems: what it says in one sentence, of the piece that was tried, at the place in
its text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from mainstem.nearest import nearest_name
from mainstem.spark.pipeline.problems import Path, Problem, did_you_mean
from mainstem.spark.pipeline.sql_tokens import place_with_blanks

if TYPE_CHECKING:
    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame

# Where in a SQL text Spark found a mistake: lines from 1, positions from 0.
PLACE_IN_SQL = re.compile(r"line (\d+),? pos(?:ition)? (\d+)")


def brief(error: BaseException) -> str:
    """What Spark says, without the parts that are for a log."""
    from pyspark.errors import AnalysisException, ParseException

    from mainstem.spark.pipeline.running.failures import sentence

    text = str(error).strip()
    text = text.split("\n\nJVM stacktrace")[0]
    if "Traceback (most recent call last)" in text:  # a data source in Python; its last line is the sentence
        return sentence(text)
    if isinstance(error, AnalysisException | ParseException):
        text = re.split(r"; line \d+|\s*== SQL|\s*== SQL \(|;\n'|\n", text.strip())[0]
    text = re.sub(r"^\[([A-Z_.0-9]+)\]\s*", "", text)
    text = re.sub(r"\s*SQLSTATE: \w+", "", text)
    return text.strip() or type(error).__name__


def refused_piece(make: Callable[[], object], path: Path, text: str = "") -> Iterator[Problem]:
    """What Spark has against a piece that is made."""
    from pyspark.errors import PySparkException

    try:
        make()
    except PySparkException as error:
        yield refused(error, path, text)
    except Exception:  # it is said of the whole part already
        return


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


def missing_columns(
    frame: DataFrame, view: str, names: Sequence[str], path: Path, *, fields: bool = False
) -> Iterator[Problem]:
    """Columns in a list that a view does not have. Where `fields` of structs may be named, whether there is
    such a field is Spark's to judge."""
    there = {name.lower() for name in frame.columns}
    for index, name in enumerate(names):
        column = name.partition(".")[0] if fields else name
        if column.lower() not in there:
            close = nearest_name(column, frame.columns)
            hint = f"did you mean {close}?" if close else f"its columns are {', '.join(frame.columns)}"
            yield Problem((*path, index), f"{view} has no column {column!r}", hint)


def repeated_columns(frame: DataFrame, view: str, path: Path) -> Iterator[Problem]:
    """Names that several columns of a view have, where a table is made of it."""
    again = repeated(frame.columns)
    if again:
        yield Problem((*path, "from"), f"{view} has more than one column {again[0]!r}", "name them apart")


def repeated(names: Sequence[str]) -> list[str]:
    """The names that are there more than once, compared as Spark does: not by their case."""
    lowered = [name.lower() for name in names]
    return sorted({name for name in names if lowered.count(name.lower()) > 1})
