"""How the parts of a pipeline hang together: who reads whom, in which order, and what flows into each
sink."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from mainstem.spark.pipeline.parts import Input, View
from mainstem.spark.pipeline.problems import Problem, did_you_mean

if TYPE_CHECKING:
    from mainstem.spark.pipeline.model import Pipeline


class Graph:
    """The views of a pipeline with what they read. Names are compared as Spark does: not by their case."""

    def __init__(self, pipeline: Pipeline, folder: FilePath) -> None:
        self.pipeline = pipeline
        self._by_lower: dict[str, str] = {}
        for name in (*pipeline.sources, *pipeline.steps):
            self._by_lower.setdefault(name.lower(), name)
        self._written = {
            name: step.input_views(("steps", name), folder) for name, step in pipeline.steps.items()
        }

    def view(self, name: str) -> str | None:
        """The view of that name, in the spelling of its definition."""
        return self._by_lower.get(name.lower())

    def definition(self, name: str) -> View:
        return self.pipeline.sources.get(name) or self.pipeline.steps[name]

    def inputs(self, name: str) -> list[str]:
        """The views that a view reads, each once."""
        found = [self.view(item.view) for item in self._written.get(name, [])]
        return list(dict.fromkeys(view for view in found if view is not None))

    def problems(self) -> Iterator[Problem]:
        """Names of views that are not there, and cycles."""
        for name, inputs in self._written.items():
            for item in inputs:
                if self.view(item.view) is None:
                    yield self._unknown(item, without=name)
        for name, sink in self.pipeline.sinks.items():
            if self.view(sink.source) is None:
                yield self._unknown(Input(sink.source, ("sinks", name, "from")))
        for cycle in self._cycles():
            path = " -> ".join([*cycle, cycle[0]])
            yield Problem(("steps", cycle[0]), f"it reads itself: {path}", at_key=True)

    def _unknown(self, item: Input, without: str | None = None) -> Problem:
        known = [name for name in self._by_lower.values() if name != without]
        hint = did_you_mean(item.view, known, "views are")
        return Problem(item.path, f"there is no view {item.view!r}", hint, item.inside)

    def _cycles(self) -> list[list[str]]:
        """Each cycle once, from the step that stands first in the file."""
        found: list[list[str]] = []
        done: set[str] = set()

        def visit(name: str, trail: list[str]) -> None:
            if name in trail:
                cycle = trail[trail.index(name) :]
                if not any(set(cycle) == set(other) for other in found):
                    found.append(cycle)
                return
            if name in done:
                return
            for other in self.inputs(name):
                visit(other, [*trail, name])
            done.add(name)

        for name in self.pipeline.steps:
            visit(name, [])
        return found

    def upstream(self, name: str) -> list[str]:
        """A view and all that it is made of, inputs before what reads them."""
        order: list[str] = []

        def visit(view: str, trail: tuple[str, ...]) -> None:
            if view in order or view in trail:
                return
            for other in self.inputs(view):
                visit(other, (*trail, view))
            order.append(view)

        found = self.view(name)
        if found is not None:
            visit(found, ())
        return order

    def order(self) -> list[str]:
        """Every view, inputs before what reads them."""
        seen: dict[str, None] = {}
        for name in (*self.pipeline.sources, *self.pipeline.steps):
            seen.update(dict.fromkeys(self.upstream(name)))
        return list(seen)

    def streams(self, name: str) -> bool:
        """Whether rows keep coming into the view: a topic is among what it is made of."""
        return any(
            self.definition(view).is_stream
            or any(self.view(item.view) is None for item in self._written.get(view, ()))
            for view in self.upstream(name)
        )

    def readers(self, name: str) -> tuple[list[str], list[str]]:
        """The steps and the sinks that read a view."""
        steps = [step for step in self.pipeline.steps if name in self.inputs(step)]
        sinks = [sink for sink, part in self.pipeline.sinks.items() if self.view(part.source) == name]
        return steps, sinks

    def unused(self) -> list[str]:
        """Views that no sink is made of."""
        used = {view for sink in self.pipeline.sinks.values() for view in self.upstream(sink.source)}
        return [name for name in self.order() if name not in used]
