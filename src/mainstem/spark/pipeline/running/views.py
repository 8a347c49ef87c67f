"""Makes the DataFrames of all views that a pipeline's sinks need, in the order of their inputs.

Spark refuses a wrong column or function here, before anything runs; its complaint becomes a problem of the
step that it is about.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from mainstem.spark.pipeline import source_views, step_views
from mainstem.spark.pipeline.brokers.connector_options import reader_options
from mainstem.spark.pipeline.file.functions import FunctionError
from mainstem.spark.pipeline.file.reader import Document
from mainstem.spark.pipeline.graph import Graph
from mainstem.spark.pipeline.model import FileSource, Pipeline, SqlStep, Step, TopicSource
from mainstem.spark.pipeline.places import Places
from mainstem.spark.pipeline.problems import Path, PipelineError, Problem
from mainstem.spark.pipeline.running.failures import sentence
from mainstem.spark.pipeline.schemas.definitions import Definition
from mainstem.spark.pipeline.source_views import SourceFrame


class Views(NamedTuple):
    """All frames of a pipeline: views by name, and the sources with their bad rows."""

    frames: dict[str, DataFrame]
    sources: dict[str, SourceFrame]


Read = Callable[[SparkSession, dict[str, str]], DataFrame]


def build(
    spark: SparkSession,
    document: Document,
    places: Places,
    definitions: Mapping[str, Definition],
    read: Read = source_views.read_topics,
) -> Views:
    """Every view; PipelineError with all that Spark refuses. `read` makes the stream of records."""
    pipeline = document.pipeline
    assert pipeline is not None
    graph = Graph(pipeline, document.folder)
    views = Views({}, {})
    problems: list[Problem] = []
    for name in graph.order():
        if any(view not in views.frames for view in graph.inputs(name)):
            continue  # what it reads was refused; that is said already
        part = graph.definition(name)
        section = "sources" if name in pipeline.sources else "steps"
        try:
            if isinstance(part, TopicSource):
                records = read(spark, reader_options(pipeline, part, places))
                views.sources[name] = source_views.stage(records, name, part, definitions[name])
                fail = error_policy(pipeline, part) == "fail"
                frame = source_views.good_rows(views.sources[name], fail=fail)
            elif isinstance(part, FileSource):
                frame = source_views.read_file(spark, part, places)
            else:
                frame = _step(spark, document, name, part, graph, views)
            frame.createOrReplaceTempView(name)
            views.frames[name] = frame
        except PipelineError as error:
            problems += error.problems
        except FunctionError as error:
            problems.append(Problem((section, name), str(error), error.hint))
        except PySparkException as error:
            problems.append(refusal(error, (section, name), part))
        except Exception as error:  # a step's own function may raise anything
            problems.append(Problem((section, name), f"{type(error).__name__}: {error}"))
    if problems:
        raise PipelineError(problems)
    return views


def error_policy(pipeline: Pipeline, source: TopicSource) -> str:
    """What becomes of a bad record: `dead_letter`, `fail` or `drop`."""
    return source.on_error or ("dead_letter" if pipeline.dead_letters is not None else "fail")


def _step(
    spark: SparkSession, document: Document, name: str, step: object, graph: Graph, views: Views
) -> DataFrame:
    assert isinstance(step, Step)
    inputs = {view.lower(): views.frames[view] for view in graph.inputs(name)}
    return step_views.make(spark, name, step, inputs, document.folder)


# Where in a SQL text Spark found a mistake: lines from 1, positions from 0.
PLACE_IN_SQL = re.compile(r"line (\d+),? pos(?:ition)? (\d+)")


def refusal(error: PySparkException, path: Path, part: object) -> Problem:
    """Spark's complaint as a problem: its first sentence, and its place in the SQL where that is known."""
    inside = None
    text = str(error)
    if (match := PLACE_IN_SQL.search(text)) is not None and isinstance(part, SqlStep):
        key = "sql" if part.sql is not None else "sql_file"
        path, inside = (*path, key), (int(match[1]) - 1, int(match[2]))
    said = brief(error)
    for option in getattr(part, "options", None) or ():
        if re.search(rf"\b{re.escape(option)}\b", said, re.I):  # the data source names what it refuses
            return Problem((*path, "options", option), said, at_key=True)
    return Problem(path, said, inside=inside)


def brief(error: BaseException) -> str:
    """What Spark says, without the parts that are for a log."""
    text = str(error).strip()
    text = text.split("\n\nJVM stacktrace")[0]
    if "Traceback (most recent call last)" in text:  # a data source in Python; its last line is the sentence
        return sentence(text)
    if isinstance(error, AnalysisException | ParseException):
        text = re.split(r"; line \d+|\s*== SQL|\s*== SQL \(|;\n'|\n", text.strip())[0]
    text = re.sub(r"^\[([A-Z_.0-9]+)\]\s*", "", text)
    text = re.sub(r"\s*SQLSTATE: \w+", "", text)
    return text.strip() or type(error).__name__
