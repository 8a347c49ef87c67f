"""What Spark can say of a pipeline file: its parser of every SQL text, its analyser of every part that is
sound so far.

A local Spark without a port to the outside is started for it. No broker is asked: what depends on a schema
that is inferred from a topic, and was not yet, is left out and named.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from mainstem.spark.pipeline.brokers import samples
from mainstem.spark.pipeline.checking import spark_parser
from mainstem.spark.pipeline.checking.checks import sql_pieces
from mainstem.spark.pipeline.file.reader import Document
from mainstem.spark.pipeline.graph import Graph
from mainstem.spark.pipeline.model import Pipeline
from mainstem.spark.pipeline.parts import Unread, as_text
from mainstem.spark.pipeline.places import Places
from mainstem.spark.pipeline.problems import Path, PipelineError, Problem
from mainstem.spark.pipeline.running import session
from mainstem.spark.pipeline.schemas.definitions import Definition, SchemaError
from mainstem.spark.pipeline.sources.topic import TopicSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MASTER = "local[1]"
# Nothing runs for long: Java is not to optimise what it runs once.
_QUICK_START = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto",
    "spark.ui.enabled": "false",
}
_APART = frozenset(
    {"topic", "topics", "pattern", "bootstrap", "rate", "options", "trigger", "table", "driver"}
)


class SparkChecks(NamedTuple):
    """What Spark found, and the sources that it was not asked about, because their columns are not known."""

    problems: list[Problem]
    unknown: list[str]


def checked_by_spark(document: Document) -> SparkChecks:
    """NoParser where there is no Spark to ask."""
    assert document.pipeline is not None
    spark_parser.java()
    with analysing_session(document) as spark:
        return checks_of(spark, document)


def checks_of(spark: SparkSession, document: Document) -> SparkChecks:
    """The same, of a Spark that runs already."""
    pipeline = document.pipeline
    assert pipeline is not None
    reported = {problem.path for problem in document.problems}
    pieces = (piece for piece in sql_pieces(pipeline, document.folder) if piece.path not in reported)
    syntax = spark_parser.syntax_problems(spark, pieces)
    places = Places(pipeline, document.folder)
    definitions, unknown = _definitions(document, pipeline, places)
    wrong = {problem.path[:2] for problem in (*document.problems, *syntax) if not _is_apart(problem.path)}
    sound = _without(document, pipeline, {*wrong, *(("sources", name) for name in unknown)})
    from mainstem.spark.pipeline.checking.analysis import analyse

    try:
        analyse(spark, sound, places, definitions)
    except PipelineError as error:
        return SparkChecks([*syntax, *error.problems], unknown)
    return SparkChecks(syntax, unknown)


def _is_apart(path: Path) -> bool:
    """Whether a mistake there is nothing to Spark's analyser, which never reads and never writes."""
    return len(path) > 2 and (path[2] in _APART or (path[0] == "sources" and path[2] == "from"))


@contextmanager
def analysing_session(document: Document) -> Iterator[SparkSession]:
    """A local Spark without a port to the outside; NoParser where it does not start."""
    pipeline = document.pipeline
    assert pipeline is not None
    given = {key: value for key, value in as_text(pipeline.spark).items() if key != "spark.master"}
    settings = session.settings(_MASTER, _QUICK_START | given, pipeline.steps.values())
    with tempfile.TemporaryDirectory() as folder:
        log = FilePath(folder) / "spark.log"
        try:
            spark = session.start(pipeline.name or "validate", _MASTER, settings, document.folder, log)
        except Exception as error:  # Java's and Py4J's have no class in common
            reason = str(error).strip().splitlines() or [type(error).__name__]
            raise spark_parser.NoParser(f"Spark does not start: {reason[0]}") from None
        try:
            yield spark
        finally:
            spark.stop()


def _definitions(
    document: Document, pipeline: Pipeline, places: Places
) -> tuple[dict[str, Definition], list[str]]:
    """The columns of the sources, and the names of those whose columns only their topics tell."""
    found: dict[str, Definition] = {}
    unknown: list[str] = []
    for name, source in pipeline.sources.items():
        if not isinstance(source, TopicSource):
            continue
        try:
            given = source.decode.definition(document.folder) or samples.kept(places, name)
        except SchemaError:
            continue  # it is said already
        if given is None:
            unknown.append(name)
        else:
            found[name] = given
    return found, unknown


def _without(document: Document, pipeline: Pipeline, wrong: set[Path]) -> Document:
    """The document without these parts, and without whatever is made of them."""
    graph = Graph(pipeline, document.folder)
    bad = {str(path[1]) for path in wrong if path[0] in ("sources", "steps") and len(path) > 1}
    bad |= {name for name in graph.order() if isinstance(graph.definition(name), Unread)}
    views = {name for name in graph.order() if not bad & set(graph.upstream(name))}
    kept = msgspec.structs.replace(
        pipeline,
        sources={name: source for name, source in pipeline.sources.items() if name in views},
        steps={name: step for name, step in pipeline.steps.items() if name in views},
        sinks={
            name: sink
            for name, sink in pipeline.sinks.items()
            if ("sinks", name) not in wrong
            and not isinstance(sink, Unread)
            and graph.view(sink.source) in views
        },
    )
    return document._replace(pipeline=kept)
