"""Asks Spark's own SQL parser about the texts of a pipeline, without starting Spark.

A bare Java process with Spark's jars parses them: no session, no cluster, no port but the one between
Python and it. The complaints carry Spark's words and the place in the text.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from mainstem.spark.pipeline.problems import Problem
from mainstem.spark.pipeline.validate import SqlPiece

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


def syntax_problems(pieces: Iterable[SqlPiece]) -> list[Problem]:
    """What Spark's grammar has against each text; NoParser where it cannot be asked."""
    wanted = list(pieces)
    if not wanted:
        return []
    with _Parser() as parser:
        return [problem for piece in wanted for problem in parser.problems(piece)]


def session_problems(spark: SparkSession, pieces: Iterable[SqlPiece]) -> list[Problem]:
    """The same, of a Spark that runs already."""
    jvm: Any = spark._jvm
    parser = jvm.org.apache.spark.sql.catalyst.parser.CatalystSqlParser()
    return [problem for piece in pieces for problem in _complaints(parser, piece)]


class _Parser:
    def __enter__(self) -> _Parser:
        spec = importlib.util.find_spec("pyspark")
        if spec is None or spec.origin is None:
            raise NoParser("PySpark is not installed")
        java_gateway: Any = importlib.import_module("py4j.java_gateway")

        jars = FilePath(spec.origin).parent / "jars"
        try:
            port, token = java_gateway.launch_gateway(
                classpath=f"{jars}/*",
                javaopts=["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"],
                die_on_exit=True,
                enable_auth=True,
                java_path=java(),
            )
        except OSError as error:
            raise NoParser(f"Java does not start: {error}") from None
        self._gateway: Any = java_gateway.JavaGateway(
            gateway_parameters=java_gateway.GatewayParameters(port=port, auth_token=token)
        )
        self._parser = self._gateway.jvm.org.apache.spark.sql.catalyst.parser.CatalystSqlParser()
        return self

    def __exit__(self, *_: object) -> None:
        self._gateway.shutdown()

    def problems(self, piece: SqlPiece) -> Iterator[Problem]:
        return _complaints(self._parser, piece)


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
    skipped = len(piece.text) - len(piece.text.lstrip()) if piece.is_query else 0
    inside = None
    if place is not None and piece.path[-1] != "sql_file":
        before = piece.text[:skipped]
        line, column = int(place[1]) - 1, int(place[2])
        if line == 0:
            column += skipped - (before.rfind("\n") + 1)
        inside = (line + before.count("\n"), column)
    return Problem(piece.path, text.strip().rstrip("."), inside=inside)
