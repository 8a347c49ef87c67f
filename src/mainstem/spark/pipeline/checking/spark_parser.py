"""Asks Spark's own SQL parser about the texts of a pipeline. The complaints carry Spark's words and the place
in the text.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from mainstem.spark.pipeline.parts import SqlPiece
from mainstem.spark.pipeline.problems import Problem
from mainstem.spark.pipeline.sql_tokens import place_with_blanks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PLACE = re.compile(r"\(line (\d+), pos (\d+)\)")
_CONDITION = re.compile(r"\[[A-Z_.0-9]+\]\s*(.+?)\s*(?:SQLSTATE: \w+)?\s*\(line \d+, pos \d+\)", re.S)


class NoParser(Exception):
    """There is no Java here, or no Spark; it says which."""


def java() -> str:
    """The Java that Spark would use."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    if found is None:
        raise NoParser("there is no Java on this machine")
    return found


def syntax_problems(spark: SparkSession, pieces: Iterable[SqlPiece]) -> list[Problem]:
    """What Spark's grammar has against each text."""
    jvm: Any = spark._jvm
    parser = jvm.org.apache.spark.sql.catalyst.parser.CatalystSqlParser()
    return [problem for piece in pieces for problem in _complaints(parser, piece)]


def _complaints(parser: Any, piece: SqlPiece) -> Iterator[Problem]:
    try:
        if piece.is_query:
            parser.parsePlan(piece.text.strip().rstrip(";"))
        else:
            parser.parseExpression(piece.text)
    except Exception as error:  # Py4J's own, or what PySpark makes of it
        refused = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
        if refused is None:
            raise
        yield complaint(piece, str(refused.getMessage()))


def complaint(piece: SqlPiece, message: str) -> Problem:
    """Spark's message as a problem at its place."""
    said = _CONDITION.search(message)
    place = _PLACE.search(message)
    text = said[1] if said is not None else message.strip().splitlines()[0]
    inside = None
    if place is not None:
        stripped = piece.text if piece.is_query else ""
        inside = place_with_blanks(stripped, int(place[1]), int(place[2]))
    return Problem(piece.path, text.strip().rstrip("."), inside=inside)
