"""Lets Spark analyse a pipeline without running it: the columns and the logical plan of each view."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import NamedTuple

from mainstem.spark.pipeline.brokers import samples
from mainstem.spark.pipeline.file.reader import Document
from mainstem.spark.pipeline.parts import as_text
from mainstem.spark.pipeline.places import Places
from mainstem.spark.pipeline.running import session


class ExplainedView(NamedTuple):
    """What Spark makes of a view."""

    name: str
    columns: list[str]
    plan: str


def explained(document: Document, places: Places) -> Iterator[ExplainedView]:
    """Every view in the order of the data; PipelineError with all that Spark refuses."""
    pipeline = document.pipeline
    assert pipeline is not None
    definitions = samples.definitions(document, places)
    given = as_text(pipeline.spark)
    with tempfile.TemporaryDirectory() as folder:
        spark = session.start(
            pipeline.name,
            "local[1]",
            session.settings("local[1]", given),
            document.folder,
            FilePath(folder) / "spark.log",
        )
        try:
            from mainstem.spark.pipeline.running.views import build

            for name, frame in build(spark, document, places, definitions).frames.items():
                columns = [f"{field.name} {field.dataType.simpleString()}" for field in frame.schema.fields]
                plan = frame._jdf.queryExecution().analyzed().toString()
                yield ExplainedView(name, columns, str(plan))
        finally:
            spark.stop()
