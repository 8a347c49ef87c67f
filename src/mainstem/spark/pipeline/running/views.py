"""Makes the DataFrames of all views that a pipeline's sinks need, in the order of their inputs.

Spark refuses a wrong column or function here, before anything runs; its complaint becomes a problem of the
part that it is about.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from mainstem.spark.pipeline.checking.refusals import PLACE_IN_SQL, brief
from mainstem.spark.pipeline.file.functions import FunctionError
from mainstem.spark.pipeline.file.reader import Document
from mainstem.spark.pipeline.graph import Graph
from mainstem.spark.pipeline.model import Pipeline
from mainstem.spark.pipeline.parts import Part
from mainstem.spark.pipeline.places import Places
from mainstem.spark.pipeline.problems import Path, PipelineError, Problem
from mainstem.spark.pipeline.running.context import BuildContext, ReadRecords
from mainstem.spark.pipeline.schemas.definitions import Definition
from mainstem.spark.pipeline.sources import Source, SourceFrames
from mainstem.spark.pipeline.steps import Step


class Views(NamedTuple):
    """All frames of a pipeline: views by name, and the sources with their dead letters."""

    frames: dict[str, DataFrame]
    sources: dict[str, SourceFrames]


def read_topics(spark: SparkSession, options: Mapping[str, str]) -> DataFrame:
    """The stream of records."""
    return spark.readStream.format("mainstem").options(**options).load()


def path_of(name: str, pipeline: Pipeline) -> Path:
    """Where a view is declared."""
    return ("sources" if name in pipeline.sources else "steps", name)


def build(
    spark: SparkSession,
    document: Document,
    places: Places,
    definitions: Mapping[str, Definition],
    read_records: ReadRecords = read_topics,
) -> Views:
    """Every view; PipelineError with all that Spark refuses."""
    pipeline = document.pipeline
    assert pipeline is not None
    graph = Graph(pipeline, document.folder)
    views = Views({}, {})
    problems: list[Problem] = []
    for name in graph.order():
        if any(view not in views.frames for view in graph.inputs(name)):
            continue  # what it reads was refused; that is message already
        part = graph.definition(name)
        path = path_of(name, pipeline)
        inputs = {view.lower(): views.frames[view] for view in graph.inputs(name)}
        definition, folder = definitions.get(name), document.folder
        context = BuildContext(spark, path, pipeline, places, folder, inputs, read_records, definition)
        try:
            if isinstance(part, Source):
                views.sources[name] = part.read(context)
                frame = views.sources[name].view
            else:
                assert isinstance(part, Step)
                frame = part.make(context)
            frame.createOrReplaceTempView(name)
            views.frames[name] = frame
        except PipelineError as error:
            problems += error.problems
        except FunctionError as error:
            problems.append(Problem(path, str(error), error.hint))
        except PySparkException as error:
            problems.append(refusal(error, path, part))
        except Exception as error:  # a step's own function may raise anything
            problems.append(Problem(path, f"{type(error).__name__}: {error}"))
    if problems:
        raise PipelineError(problems)
    return views


def refusal(error: PySparkException, path: Path, part: Part | None) -> Problem:
    """Spark's complaint about a part as a whole: its first sentence, and its place in the SQL where that is
    known."""
    inside = None
    key = getattr(part, "sql_key", None)
    if key is not None and (match := PLACE_IN_SQL.search(str(error))) is not None:
        path, inside = (*path, key), (int(match[1]) - 1, int(match[2]))
    message = brief(error)
    for option in getattr(part, "options", None) or ():
        if re.search(rf"\b{re.escape(option)}\b", message, re.I):  # the data source names what it refuses
            return Problem((*path, "options", option), message, at_key=True)
    return Problem(path, message, inside=inside)
