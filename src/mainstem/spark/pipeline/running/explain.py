"""Lets Spark analyse a pipeline without running it: the columns and the logical plan of each view."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mainstem.spark.pipeline.brokers import samples
from mainstem.spark.pipeline.checking.spark_checks import analysing_session
from mainstem.spark.pipeline.file.reader import Document
from mainstem.spark.pipeline.places import Places


class ExplainedView(NamedTuple):
    """What Spark makes of a view."""

    name: str
    columns: list[str]
    plan: str


def explained(document: Document, places: Places) -> Iterator[ExplainedView]:
    """Every view in the order of the data; PipelineError with all that Spark refuses."""
    definitions = samples.definitions(document, places)
    with analysing_session(document) as spark:
        from mainstem.spark.pipeline.running.views import build

        for name, frame in build(spark, document, places, definitions).frames.items():
            columns = [f"{field.name} {field.dataType.simpleString()}" for field in frame.schema.fields]
            plan = frame._jdf.queryExecution().analyzed().toString()
            yield ExplainedView(name, columns, str(plan))
