"""A pipeline as a diagram of text: sources on the left, what is made of them below, sinks at the ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path as FilePath

from mainstem.spark.pipeline import times
from mainstem.spark.pipeline.addresses import hidden
from mainstem.spark.pipeline.graph import Graph
from mainstem.spark.pipeline.model import (
    AggregateStep,
    ConsoleSink,
    DeduplicateStep,
    DeltaSink,
    FileSource,
    IcebergSink,
    JdbcSink,
    JoinStep,
    ParquetSink,
    Part,
    Pipeline,
    PythonSink,
    PythonStep,
    Sink,
    StatefulStep,
    TopicSink,
    TopicSource,
    Unread,
    WatermarkStep,
)


def draw(pipeline: Pipeline, folder: FilePath) -> str:
    """The tree of each source; a view that reads several stands under the first, and is named under the
    others."""
    graph = Graph(pipeline, folder)
    lines = [f"{pipeline.name}"]
    drawn: set[str] = set()
    for name in pipeline.sources:
        lines += _branch(graph, name, "", "", drawn)
    if pipeline.dead_letters is not None:
        lines.append(f"bad records ==> topic {pipeline.dead_letters.topic}")
    unused = graph.unused()
    if unused:
        lines.append(f"not written anywhere: {', '.join(unused)}")
    return "\n".join(lines)


def _branch(graph: Graph, name: str, lead: str, indent: str, drawn: set[str]) -> Iterator[str]:
    part = graph.definition(name)
    if name in drawn:
        yield f"{lead}{name} (see above)"
        return
    drawn.add(name)
    yield f"{lead}{name}: {describe(part)}"
    steps, sinks = graph.readers(name)
    children = [(step, False) for step in steps] + [(sink, True) for sink in sinks]
    for index, (child, is_sink) in enumerate(children):
        last = index == len(children) - 1
        branch, below = ("└─ ", "   ") if last else ("├─ ", "│  ")
        if is_sink:
            yield f"{indent}{branch}{child} ==> {describe_sink(graph.pipeline.sinks[child])}"
        else:
            yield from _branch(graph, child, indent + branch, indent + below, drawn)


def describe(part: Part) -> str:
    """What a source or step is, in a few words."""
    if isinstance(part, TopicSource):
        return _describe_topics(part)
    if isinstance(part, FileSource):
        return f"file {part.file}"
    if isinstance(part, PythonStep):
        return f"python {_function(part.python)}"
    if isinstance(part, WatermarkStep):
        return f"watermark {part.watermark}, {times.span(part.delay)} late"
    if isinstance(part, DeduplicateStep):
        return f"first of each {', '.join(part.deduplicate)}"
    if isinstance(part, AggregateStep):
        return _describe_aggregate(part)
    if isinstance(part, JoinStep):
        on = part.on if isinstance(part.on, str) else ", ".join(part.on)
        return f"{part.type} join of {' and '.join(part.join)} on {_short(on)}"
    if isinstance(part, StatefulStep):
        return f"stateful {_function(part.stateful)} by {', '.join(part.by)}"
    if isinstance(part, Unread):
        return "?"
    return f"sql {_short(getattr(part, 'sql', None) or getattr(part, 'sql_file', None) or '')}"


def _describe_topics(source: TopicSource) -> str:
    if source.pattern is not None:
        what = f"topics like {source.pattern}"
    else:
        what = f"topic{'s' if len(source.names) > 1 else ''} {', '.join(source.names)}"
    words = [what, source.decode.format]
    if source.rate is not None:
        words.append(f"at most {source.rate} a batch")
    if source.watermark is not None:
        words.append(f"watermark {source.watermark.column}, {times.span(source.watermark.delay)} late")
    words += [f"requires {rule}" for rule in source.require]
    return ", ".join(words)


def _describe_aggregate(step: AggregateStep) -> str:
    words = list(step.by)
    if step.window is not None:
        window = step.window
        words.insert(0, f"sessions {window.gap} apart" if window.gap else f"windows of {window.size}")
        if window.slide:
            words[0] += f" every {window.slide}"
    return f"{', '.join(step.aggregate)} by {', '.join(words) or 'nothing'}"


def describe_sink(sink: Sink) -> str:
    """Where a sink writes, in a few words."""
    if isinstance(sink, TopicSink):
        return f"topic {sink.topic}, {sink.encode}, {'exactly' if sink.exactly_once else 'at least'} once"
    if isinstance(sink, ParquetSink):
        return f"parquet {sink.parquet}"
    if isinstance(sink, DeltaSink):
        return f"delta {sink.delta}"
    if isinstance(sink, IcebergSink):
        return f"iceberg {sink.iceberg}"
    if isinstance(sink, JdbcSink):
        return f"table {sink.table} in {hidden(sink.jdbc)}"
    if isinstance(sink, ConsoleSink):
        return f"console, {sink.console} rows"
    assert isinstance(sink, PythonSink)
    return f"python {_function(sink.python)}"


def _function(function: object) -> str:
    return function if isinstance(function, str) else getattr(function, "__name__", repr(function))


def _short(text: str) -> str:
    one_line = " ".join(text.split())
    return one_line if len(one_line) <= 60 else one_line[:57] + "..."
