"""A pipeline as a diagram of text: sources on the left, what is made of them below, sinks at the ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path as FilePath

from mainstem.spark.pipeline.graph import Graph
from mainstem.spark.pipeline.model import Pipeline


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
    yield f"{lead}{name}: {part.describe()}"
    steps, sinks = graph.readers(name)
    children = [(step, False) for step in steps] + [(sink, True) for sink in sinks]
    for index, (child, is_sink) in enumerate(children):
        last = index == len(children) - 1
        branch, below = ("└─ ", "   ") if last else ("├─ ", "│  ")
        if is_sink:
            yield f"{indent}{branch}{child} ==> {graph.pipeline.sinks[child].describe()}"
        else:
            yield from _branch(graph, child, indent + branch, indent + below, drawn)
