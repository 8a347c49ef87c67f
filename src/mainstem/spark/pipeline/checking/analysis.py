"""Lets Spark's analyser look at a whole pipeline before anything runs, and finds the piece that it refuses.

The views are built as they are for a run, but on streams of records that never come: no topic is asked for,
made or written. Spark names a part of a file at most by its text, so each piece is tried by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mainstem.spark.datasource import record_schema
from mainstem.spark.pipeline import analysis_sinks, analysis_steps, source_views
from mainstem.spark.pipeline.checking.refusals import refused
from mainstem.spark.pipeline.file.reader import Document
from mainstem.spark.pipeline.graph import Graph
from mainstem.spark.pipeline.model import AggregateStep, Pipeline, Step, TopicSource
from mainstem.spark.pipeline.places import Places
from mainstem.spark.pipeline.problems import PipelineError, Problem
from mainstem.spark.pipeline.running.views import Read, Views, build
from mainstem.spark.pipeline.schemas.definitions import Definition


def no_records(spark: SparkSession, options: Mapping[str, str]) -> DataFrame:
    """A stream with the columns of records, which is analysed and never read."""
    columns = (F.lit(None).cast(field.dataType).alias(field.name) for field in record_schema(headers=True))
    return spark.readStream.format("rate").load().select(*columns)


def analyse(
    spark: SparkSession,
    document: Document,
    places: Places,
    definitions: Mapping[str, Definition],
    read: Read = no_records,
) -> Views:
    """Every view; PipelineError with all that Spark has against the sources, the steps and the sinks."""
    pipeline = document.pipeline
    assert pipeline is not None
    built: list[Problem] = []
    views: Views | None = None
    try:
        views = build(spark, document, places, definitions, read)
    except PipelineError as error:
        built = error.problems
    problems = _Pieces(spark, document, definitions, built).problems()
    if problems or views is None:
        raise PipelineError(problems)
    return views


class _Pieces:
    """What is wrong with each part, at the piece that is wrong; `built` is what was found of whole parts."""

    def __init__(
        self,
        spark: SparkSession,
        document: Document,
        definitions: Mapping[str, Definition],
        built: list[Problem],
    ) -> None:
        assert document.pipeline is not None
        self._spark = spark
        self._document = document
        self._pipeline: Pipeline = document.pipeline
        self._definitions = definitions
        self._built = built
        self._graph = Graph(self._pipeline, document.folder)
        refused_names = {problem.path[1] for problem in built if len(problem.path) > 1}
        self._frames = {
            name: spark.table(name)
            for name in self._graph.order()
            if not refused_names & set(self._graph.upstream(name))
        }

    def problems(self) -> list[Problem]:
        found: list[Problem] = []
        for name in self._graph.order():
            of_view: list[Problem] = []
            if all(view in self._frames for view in self._graph.inputs(name)):
                of_view = self._of_view(name)
                found += of_view
            if of_view or any(view not in self._frames for view in self._graph.inputs(name)):
                self._frames.pop(name, None)  # what is made of it is not asked about
        for name, sink in self._pipeline.sinks.items():
            view = self._graph.view(sink.source)
            if view in self._frames:
                found += analysis_sinks.problems(
                    self._spark, name, sink, view, self._frames, self._graph, self._document.folder
                )
        return list(dict.fromkeys(found))

    def _of_view(self, name: str) -> list[Problem]:
        """Rather what its pieces show than what was said of the whole."""
        part = self._graph.definition(name)
        whole = [problem for problem in self._built if problem.path[1:2] == (name,)]
        found: list[Problem] = []
        if isinstance(part, TopicSource) and part.require:
            found = list(self._rules(name, part))
        elif isinstance(part, Step) and (whole or isinstance(part, AggregateStep)):
            inputs = {view.lower(): self._frames[view] for view in self._graph.inputs(name)}
            maker = analysis_steps.Maker(self._spark, name, inputs, self._document.folder)
            found = list(analysis_steps.problems(maker, part, is_refused=bool(whole)))
        return found or whole

    def _rules(self, name: str, source: TopicSource) -> Iterator[Problem]:
        bare = msgspec.structs.replace(source, require={})
        try:
            records = no_records(self._spark, {})
            rows = source_views.stage(records, name, bare, self._definitions[name]).staged
        except PySparkException:
            return  # it is not the rules
        for rule, condition in source.require.items():
            path = ("sources", name, "require", rule)
            try:
                kind = rows.selectExpr(condition).schema.fields[0].dataType.simpleString()
            except PySparkException as error:
                yield refused(error, path)
                continue
            if kind != "boolean":
                yield Problem(
                    path, f"this is {kind}, not a condition", "compare it, so that it is true or false"
                )
