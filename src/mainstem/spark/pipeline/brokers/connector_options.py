"""The options of `format("mainstem")` that sources, sinks and dead letters share. No Spark here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainstem.spark.pipeline.parts import as_text

if TYPE_CHECKING:
    from mainstem.spark.pipeline.model import Pipeline
    from mainstem.spark.pipeline.places import Places


def client_options(pipeline: Pipeline) -> dict[str, str]:
    """The client's settings of all sources and sinks."""
    return {f"kafka.{key}": value for key, value in as_text(pipeline.kafka).items()}


def writer_options(
    pipeline: Pipeline,
    topic: str,
    bootstrap: str | None,
    places: Places,
    *,
    exactly_once: bool,
    checkpoint: str,
) -> dict[str, str]:
    """Those of what writes a topic."""
    options = client_options(pipeline)
    options["kafka.bootstrap.servers"] = places.bootstrap(bootstrap)
    options["topic"] = topic
    options["checkpointLocation"] = checkpoint
    if exactly_once:
        options["exactlyOnce"] = "true"
    return options
