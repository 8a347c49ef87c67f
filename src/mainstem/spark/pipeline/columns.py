"""The columns of each view, as far as they are known without Spark: sources say theirs, some steps keep them.

What a query or a function makes is not known here; None stands for it, and nothing is said about it.
"""

from __future__ import annotations

from pathlib import Path as FilePath

from mainstem.spark.pipeline.graph import Graph
from mainstem.spark.pipeline.model import (
    AggregateStep,
    DeduplicateStep,
    FileSource,
    StatefulStep,
    TopicSource,
    WatermarkStep,
)
from mainstem.spark.pipeline.schemas import definitions
from mainstem.spark.pipeline.schemas.ddl import Column, DataType, DdlError, Schema, parse, simple

UNKNOWN_TYPE = DataType("unknown")


def known_columns(graph: Graph, folder: FilePath) -> dict[str, Schema | None]:
    """For each view its columns, or None."""
    found: dict[str, Schema | None] = {}
    for name in graph.order():
        found[name] = _columns(graph, name, folder, found)
    return found


def _columns(graph: Graph, name: str, folder: FilePath, found: dict[str, Schema | None]) -> Schema | None:
    part = graph.definition(name)
    try:
        if isinstance(part, TopicSource):
            given = definitions.definition(part.decode, folder)
            if given is None:
                return None
            extra = part.metadata if part.decode.format != "raw" else []
            return definitions.with_metadata(given.columns, extra)
        if isinstance(part, FileSource):
            return parse(part.schema) if part.schema is not None else None
        if isinstance(part, StatefulStep):
            return parse(part.schema)
    except (definitions.SchemaError, DdlError):
        return None
    if isinstance(part, WatermarkStep | DeduplicateStep):
        return found.get(graph.view(part.source) or "")
    if isinstance(part, AggregateStep):
        return _aggregated(part, found.get(graph.view(part.source) or ""))
    return None


def _aggregated(step: AggregateStep, source: Schema | None) -> Schema:
    types = {column.name.lower(): column.type for column in source or ()}
    window = [Column("window_start", simple("timestamp")), Column("window_end", simple("timestamp"))]
    groups = [Column(name, types.get(name.lower(), UNKNOWN_TYPE)) for name in step.by]
    values = [Column(name, UNKNOWN_TYPE) for name in step.aggregate]
    return (*(window if step.window is not None else []), *groups, *values)


def watermarked(graph: Graph, name: str) -> bool:
    """Whether some view that this one is made of has a watermark, as far as it is declared."""
    for view in graph.upstream(name):
        part = graph.definition(view)
        if isinstance(part, WatermarkStep) or (isinstance(part, TopicSource) and part.watermark is not None):
            return True
    return False
