"""Reads a few records of a topic, to infer a schema from or to show. No Spark here."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path as FilePath

from mainstem.spark.pipeline.brokers.source_client import source_client
from mainstem.spark.pipeline.file.reader import Document
from mainstem.spark.pipeline.model import Pipeline
from mainstem.spark.pipeline.places import Places
from mainstem.spark.pipeline.problems import PipelineError, Problem
from mainstem.spark.pipeline.schemas import ddl
from mainstem.spark.pipeline.schemas.definitions import Definition
from mainstem.spark.pipeline.schemas.inference import CannotInfer
from mainstem.spark.pipeline.sources.topic import TopicSource
from mainstem.spark.source.client import Client
from mainstem.spark.source.partitions import EARLIEST, LATEST
from mainstem.spark.source.planning import OffsetRange


def definitions(document: Document, places: Places) -> dict[str, Definition]:
    """The columns of every source of topics; those to infer are inferred once and kept with the
    checkpoint."""
    pipeline = document.pipeline
    assert pipeline is not None
    found: dict[str, Definition] = {}
    for name, source in pipeline.sources.items():
        if not isinstance(source, TopicSource):
            continue
        given = source.decode.definition(document.folder)
        found[name] = given if given is not None else _inferred(pipeline, name, source, places)
    return found


def _inferred(pipeline: Pipeline, name: str, source: TopicSource, places: Places) -> Definition:
    """A restart must see the same columns, so the first answer stays."""
    if (known := kept(places, name)) is not None:
        return known
    try:
        with source_client(pipeline, name, source, places) as client:
            values = sample(client, source, source.decode.infer or 1000)
        columns = source.decode.infer_columns(values)
    except CannotInfer as error:
        hint = "give a schema, or start again when there are records"
        raise PipelineError([Problem(("sources", name, "decode", "infer"), str(error), hint)]) from None
    if places.has_local_checkpoint:
        file = _file(places, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(ddl.render(columns), encoding="utf-8")
    return Definition(columns)


def kept(places: Places, name: str) -> Definition | None:
    """What was inferred in an earlier run."""
    file = _file(places, name)
    if not places.has_local_checkpoint or not file.is_file():
        return None
    return Definition(ddl.parse(file.read_text(encoding="utf-8")))


def _file(places: Places, name: str) -> FilePath:
    return FilePath(places.checkpoint) / "schemas" / f"{name}.ddl"


def sample(client: Client, source: TopicSource, count: int) -> list[bytes]:
    """The newest values of a source's topics, about `count` of them."""
    topics = source.names
    if source.pattern is not None:
        topics = [topic for topic in client.topics(None) if source.reads(topic)]
    return newest_values(client, topics, count)


def newest_values(client: Client, topics: Iterable[str], count: int) -> list[bytes]:
    """The last values of each partition of some topics, so many together; records without a value left
    out."""
    parts = [
        (topic, partition) for topic, numbers in client.topics(list(topics)).items() for partition in numbers
    ]
    if not parts:
        return []
    ends = client.offsets(dict.fromkeys(parts, LATEST))
    starts = client.offsets(dict.fromkeys(parts, EARLIEST))
    each = max(1, -(-count // len(parts)))
    ranges = tuple(
        OffsetRange(*part, max(starts[part], ends[part] - each), ends[part])
        for part in parts
        if ends[part] > starts[part]
    )
    values: list[bytes] = []
    for _, records in client.read(ranges):
        values += [value for value in records.value.to_pylist() if value is not None]
    return values
