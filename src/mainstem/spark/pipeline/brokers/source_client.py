"""The brokers as a source of a pipeline reaches them, with the login that the source itself is given.

No Spark here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mainstem.spark.pipeline.model import Pipeline
from mainstem.spark.pipeline.places import Places
from mainstem.spark.pipeline.problems import Path, PipelineError, Problem
from mainstem.spark.pipeline.sources.topic import TopicSource
from mainstem.spark.source.client import Client, open_client
from mainstem.spark.source.errors import OptionError, ReadError
from mainstem.spark.source.options import ReadOptions, parse_options
from mainstem.wire import WireError


def read_options(pipeline: Pipeline, source: TopicSource, places: Places) -> ReadOptions:
    """As the source's stream has them."""
    return parse_options(source.reader_options(pipeline, places), "stream")


@contextmanager
def source_client(pipeline: Pipeline, name: str, source: TopicSource, places: Places) -> Iterator[Client]:
    """An option that the client does not take is a mistake in the file; no broker would change that."""
    try:
        with open_client(read_options(pipeline, source, places)) as client:
            yield client
    except OptionError as error:
        raise PipelineError([Problem(_origin(pipeline, name, source, str(error)), str(error))]) from None
    except ReadError as error:
        raise WireError(str(error)) from None


def _origin(pipeline: Pipeline, name: str, source: TopicSource, reason: str) -> Path:
    """Where the option is written that a refusal names."""
    for key in source.options:
        if key in reason:
            return ("sources", name, "options", key)
    named = next((key for key in pipeline.kafka if key in reason), None)
    return ("kafka", named) if named is not None else ("sources", name)
