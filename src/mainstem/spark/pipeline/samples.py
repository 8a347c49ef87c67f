"""Reads a few records of a topic, to infer a schema from or to show. No Spark here."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path as FilePath

from mainstem.records.columnar import decode
from mainstem.spark.pipeline import ddl
from mainstem.spark.pipeline.cluster_view import cluster
from mainstem.spark.pipeline.infer import CannotInfer, infer_csv, infer_json
from mainstem.spark.pipeline.model import Pipeline, TopicSource
from mainstem.spark.pipeline.places import Places
from mainstem.spark.pipeline.problems import PipelineError, Problem
from mainstem.spark.pipeline.reader import Document
from mainstem.spark.pipeline.schemas import Definition, definition
from mainstem.spark.source.patterns import matches
from mainstem.wire import EARLIEST, LATEST, READ_COMMITTED, Cluster


def definitions(document: Document, places: Places) -> dict[str, Definition]:
    """The columns of every source of topics; those to infer are inferred once and kept with the
    checkpoint."""
    pipeline = document.pipeline
    assert pipeline is not None
    found: dict[str, Definition] = {}
    for name, source in pipeline.sources.items():
        if not isinstance(source, TopicSource):
            continue
        given = definition(source.decode, document.folder)
        found[name] = given if given is not None else _inferred(pipeline, name, source, places)
    return found


def _inferred(pipeline: Pipeline, name: str, source: TopicSource, places: Places) -> Definition:
    """A restart must see the same columns, so the first answer stays."""
    if (known := kept(places, name)) is not None:
        return known
    try:
        with cluster(pipeline, places.bootstrap(source.bootstrap)) as client:
            values = sample(client, source, source.decode.infer or 1000)
        if source.decode.framing == "confluent":
            values = [value[5:] for value in values]
        delimiter = str(source.decode.options.get("sep", source.decode.options.get("delimiter", ",")))
        columns = infer_json(values) if source.decode.format == "json" else infer_csv(values, delimiter)
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


def sample(client: Cluster, source: TopicSource, count: int) -> list[bytes]:
    """The newest values of a source's topics, about `count` of them."""
    topics = source.names
    if source.pattern is not None:
        topics = [topic for topic in client.metadata(None) if matches(source.pattern, topic)]
    return newest_values(client, topics, count)


def newest_values(client: Cluster, topics: Iterable[str], count: int) -> list[bytes]:
    """The last values of each partition of some topics, so many together; records without a value left
    out."""
    found = client.metadata(list(topics))
    parts = [(topic, partition) for topic in found for partition in found[topic].partitions]
    if not parts:
        return []
    ends = client.list_offsets(dict.fromkeys(parts, LATEST), READ_COMMITTED)
    starts = client.list_offsets(dict.fromkeys(parts, EARLIEST), READ_COMMITTED)
    each = max(1, -(-count // len(parts)))
    ranges = {
        part: (max(starts[part].offset, ends[part].offset - each), ends[part].offset)
        for part in parts
        if ends[part].offset > starts[part].offset
    }
    values: list[bytes] = []
    if not ranges:
        return values
    with client.stream(ranges, isolation=READ_COMMITTED) as stream:
        for part, fetched in stream:
            decoded = decode(fetched.records, *ranges[part], aborted=fetched.aborted or ())
            values += [value for value in decoded.value.to_pylist() if value is not None]
    return values
