"""Lets Spark's analyser look at a whole pipeline before anything runs, and finds the piece that it refuses.

The views are built as they are for a run, but on streams of records that never come: no topic is asked for,
made or written. Spark names a part of a file at most by its text, so each piece is tried by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from mainstem.spark.datasource import record_schema
from mainstem.spark.pipeline.checking.refusals import brief
from mainstem.spark.pipeline.file.reader import Document
from mainstem.spark.pipeline.graph import Graph
from mainstem.spark.pipeline.model import Pipeline
from mainstem.spark.pipeline.places import Places
from mainstem.spark.pipeline.problems import PipelineError, Problem
from mainstem.spark.pipeline.running.context import BuildContext, ReadRecords
from mainstem.spark.pipeline.running.views import Views, build, path_of
from mainstem.spark.pipeline.schemas.definitions import Definition
from mainstem.spark.pipeline.sinks import Sink
from mainstem.spark.pipeline.spark_functions import F


def no_records(spark: SparkSession, options: Mapping[str, str]) -> DataFrame:
    """A stream with the columns of records, which is analysed and never read."""
    columns = (F.lit(None).cast(field.dataType).alias(field.name) for field in record_schema(headers=True))
    return spark.readStream.format("rate").load().select(*columns)


def analyse(
    spark: SparkSession,
    document: Document,
    places: Places,
    definitions: Mapping[str, Definition],
    read_records: ReadRecords = no_records,
) -> Views:
    """Every view; PipelineError with all that Spark has against the sources, the steps and the sinks."""
    built: list[Problem] = []
    views: Views | None = None
    try:
        views = build(spark, document, places, definitions, read_records)
    except PipelineError as error:
        built = error.problems
    problems = _Pieces(spark, document, places, definitions, built).problems()
    if problems or views is None:
        raise PipelineError(problems)
    return views


class _Pieces:
    """What is wrong with each part, at the piece that is wrong; `built` is what was found of whole parts."""

    def __init__(
        self,
        spark: SparkSession,
        document: Document,
        places: Places,
        definitions: Mapping[str, Definition],
        built: list[Problem],
    ) -> None:
        assert document.pipeline is not None
        self._spark = spark
        self._folder = document.folder
        self._pipeline: Pipeline = document.pipeline
        self._places = places
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
            is_known = all(view in self._frames for view in self._graph.inputs(name))
            of_view = self._of_view(name) if is_known else []
            found += of_view
            if of_view or not is_known:
                self._frames.pop(name, None)  # what is made of it is not asked about
        for name, sink in self._pipeline.sinks.items():
            view = self._graph.view(sink.source)
            if view in self._frames:
                found += sink.analyse(("sinks", name), self._frames[view], self._folder)
                found += self._of_mode(name, sink, view)
        return list(dict.fromkeys(found))

    def _of_view(self, name: str) -> list[Problem]:
        """Rather what its pieces show than what was message of the whole."""
        whole = [problem for problem in self._built if problem.path[1:2] == (name,)]
        context = BuildContext(
            self._spark,
            path_of(name, self._pipeline),
            self._pipeline,
            self._places,
            self._folder,
            {view.lower(): self._frames[view] for view in self._graph.inputs(name)},
            no_records,
            self._definitions.get(name),
        )
        return list(self._graph.definition(name).analyse(context, is_refused=bool(whole))) or whole

    def _of_mode(self, name: str, sink: Sink, view: str) -> Iterator[Problem]:
        """What a stream cannot do in an output mode, message of the first step that does it."""
        mode = sink.output_mode
        message = self._unsupported(view, mode)
        if message is None:
            return
        for step in self._graph.upstream(view):
            inputs = self._graph.inputs(step)
            if not inputs or self._unsupported(step, mode) is None:
                continue
            streams = [other for other in inputs if self._graph.streams(other)]
            if mode != "complete" and all(self._unsupported(other, mode) is None for other in streams):
                yield Problem(("steps", step), message, f"{name} writes it in {mode} mode", at_key=True)
                return
        yield Problem(("sinks", name, "mode" if hasattr(sink, "mode") else "from"), message)

    def _unsupported(self, view: str, mode: str) -> str | None:
        """What Spark would say when a query of this view is started."""
        jvm = self._spark._jvm
        assert jvm is not None
        checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
        wanted = getattr(jvm.org.apache.spark.sql.streaming.OutputMode, mode.capitalize())()
        try:
            checker.checkForStreaming(self._frames[view]._jdf.queryExecution().analyzed(), wanted)
        except PySparkException as error:
            return brief(error).rstrip(".")
        return None
