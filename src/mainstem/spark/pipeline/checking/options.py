"""Asks the source and the sink themselves about the options that a pipeline gives them.

Their parsers refuse one thing at a time and know nothing of files. So the option at fault is searched for:
the one without which the parser says something else. It is told, left out, and the rest is asked about again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from mainstem.spark.pipeline.brokers.connector_options import client_options, writer_options
from mainstem.spark.pipeline.checking.rules import CheckContext
from mainstem.spark.pipeline.model import Pipeline
from mainstem.spark.pipeline.parts import as_text
from mainstem.spark.pipeline.places import Places
from mainstem.spark.pipeline.problems import Path, Problem
from mainstem.spark.pipeline.sinks import topic as topic_sink
from mainstem.spark.pipeline.sinks.topic import TopicSink
from mainstem.spark.pipeline.sources import topic as topic_source
from mainstem.spark.pipeline.sources.topic import TopicSource
from mainstem.spark.sink.errors import SinkOptionError
from mainstem.spark.sink.options import parse as parse_sink
from mainstem.spark.source.errors import OptionError
from mainstem.spark.source.options import parse_options
from mainstem.wire import WireError, from_kafka_options
from mainstem.wire.kafka_options import SECURITY_PREFIXES

_PREFIX = "kafka."
# Where no option is at fault; the addresses have checks of their own.
_ANYWHERE = "localhost:9092"
_SECURITY = ("security.protocol", "sasl.mechanism", "sasl.mechanisms")
_SECURED = tuple(f"{_PREFIX}{each}" for each in SECURITY_PREFIXES)

Ask = Callable[[Mapping[str, str]], object]


def check_options(context: CheckContext) -> Iterator[Problem]:
    """Every option of a source, a sink and the clients that would be refused when the pipeline runs."""
    pipeline = context.pipeline
    # Those are said to be wrong elsewhere.
    reported: set[Path] = {("kafka", key) for key in pipeline.kafka if key.startswith(_PREFIX)}
    places = Places(pipeline, context.folder, bootstrap=_ANYWHERE)
    for name, source in pipeline.sources.items():
        if isinstance(source, TopicSource):
            path: Path = ("sources", name)
            yield from _own_keys(source.options, topic_source.OWN_KEYS, (*path, "options"), reported)
            if (given := _source_options(pipeline, source, places)) is not None:
                yield from _Refusals(given, _origins(pipeline, source.options, path), path, reported).of(
                    _read
                )
    for name, sink in pipeline.sinks.items():
        if isinstance(sink, TopicSink):
            path = ("sinks", name)
            yield from _own_keys(sink.options, topic_sink.OWN_KEYS, (*path, "options"), reported)
            given = _writer(pipeline, sink.topic, places, exactly_once=sink.exactly_once)
            given |= as_text(sink.options)
            yield from _Refusals(given, _origins(pipeline, sink.options, path), path, reported).of(_write)
    given = {"kafka.bootstrap.servers": _ANYWHERE} | client_options(pipeline)
    yield from _Refusals(given, _origins(pipeline, {}, ()), ("kafka",), reported).of(_own_client)
    if pipeline.dead_letters is not None:
        given = _writer(pipeline, pipeline.dead_letters.topic, places, exactly_once=True)
        yield from _Refusals(given, _origins(pipeline, {}, ()), ("dead_letters",), reported).of(_write)


def _source_options(pipeline: Pipeline, source: TopicSource, places: Places) -> dict[str, str] | None:
    """None where its own keys are wrong already; that is said elsewhere."""
    given = [*source.names, source.pattern]
    if not any(given) or not source.has_start or (source.rate is not None and source.rate < 1):
        return None
    try:
        re.compile(source.pattern or "")
    except re.error:
        return None
    return source.reader_options(pipeline, places) | {"kafka.bootstrap.servers": _ANYWHERE}


def _writer(pipeline: Pipeline, topic: str, places: Places, *, exactly_once: bool) -> dict[str, str]:
    return writer_options(
        pipeline, topic, _ANYWHERE, places, exactly_once=exactly_once, checkpoint=places.checkpoint
    )


def _own_keys(
    options: Mapping[str, object], own: Mapping[str, str], path: Path, reported: set[Path]
) -> Iterator[Problem]:
    for key in options:
        instead = own.get(key.lower())
        if instead is not None:
            reported.add((*path, key))
            message = f"{key} has a key of its own in a pipeline"
            yield Problem((*path, key), message, f"write {instead}", at_key=True)


def _origins(pipeline: Pipeline, options: Mapping[str, object], path: Path) -> dict[str, Path]:
    """Where each option is written."""
    found: dict[str, Path] = {f"{_PREFIX}{key}": ("kafka", key) for key in pipeline.kafka}
    return found | {key: (*path, "options", key) for key in options}


class _Refusals:
    """The options of one read or write that its parser refuses."""

    def __init__(
        self, given: Mapping[str, str], origins: Mapping[str, Path], path: Path, reported: set[Path]
    ) -> None:
        self._given = dict(given)
        self._origins = origins
        self._path = path
        self._reported = reported
        self._leave_out_reported()

    def of(self, ask: Ask) -> Iterator[Problem]:
        while (reason := _refusal(ask, self._given)) is not None:
            name = self._culprit(ask, reason)
            if name is None:
                yield Problem(self._path, reason, at_key=True)
                return
            path = self._origins[name]
            self._reported.add(path)
            yield Problem(path, *_with_hint(reason, path), at_key=_is_about_name(reason))
            self._leave_out_reported()

    def _leave_out_reported(self) -> None:
        """What is known to be wrong, and what would be judged otherwise without it."""
        names = {str(path[-1]).removeprefix(_PREFIX) for path in self._reported}
        secured = () if names.isdisjoint(_SECURITY) else _SECURED
        self._given = {
            name: value
            for name, value in self._given.items()
            if self._origins.get(name) not in self._reported and not name.lower().startswith(secured)
        }

    def _culprit(self, ask: Ask, reason: str) -> str | None:
        """The option without which this is not said; rather one that the reason names."""
        words = reason.lower()
        mine = [name for name in self._given if name in self._origins]
        mine.sort(key=lambda name: (-_names(words, name), self._origins[name][0] == "kafka"))
        for name in mine:
            others = {other: value for other, value in self._given.items() if other != name}
            if _refusal(ask, others) != reason:
                return name
        return None


def _names(words: str, name: str) -> bool:
    return name.lower().removeprefix(_PREFIX) in words


def _is_about_name(reason: str) -> bool:
    return any(mark in reason for mark in ("does not exist", "no option", "not supported", "not valid"))


def _with_hint(reason: str, path: Path) -> tuple[str, str | None]:
    """What is wrong, and what to write; `kafka:` at the top has the names without their prefix."""
    if path[0] == "kafka":
        reason = reason.replace(_PREFIX, "")
    message, mark, hint = reason.partition("; did you mean ")
    return (message, f"did you mean {hint}") if mark else (message, None)


def _refusal(ask: Ask, options: Mapping[str, str]) -> str | None:
    try:
        ask(options)
    except (OptionError, SinkOptionError, WireError) as error:
        return str(error)
    return None


def _read(options: Mapping[str, str]) -> object:
    """As a stream is read: its options, then those of the client that it opens."""
    return from_kafka_options(parse_options(options, "stream").kafka)


def _write(options: Mapping[str, str]) -> object:
    return parse_sink(options, streaming=True)


def _own_client(options: Mapping[str, str]) -> object:
    """As the pipeline itself looks at its topics and commits its offsets."""
    return from_kafka_options({name.removeprefix(_PREFIX): value for name, value in options.items()})
