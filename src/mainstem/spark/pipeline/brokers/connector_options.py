"""The options of `format("mainstem")` that the sources and sinks of a pipeline stand for. No Spark here."""

from __future__ import annotations

from mainstem.spark.pipeline import times
from mainstem.spark.pipeline.model import Pipeline, TopicSink, TopicSource
from mainstem.spark.pipeline.option_text import as_text
from mainstem.spark.pipeline.places import Places


def client_options(pipeline: Pipeline) -> dict[str, str]:
    """The client's settings of all sources and sinks."""
    return {f"kafka.{key}": value for key, value in as_text(pipeline.kafka).items()}


def reader_options(pipeline: Pipeline, source: TopicSource, places: Places) -> dict[str, str]:
    """The options of `format("mainstem")` for a source."""
    # What an aborted transaction left behind, such as a batch that another pipeline ran again, is no data.
    options = {"kafka.isolation.level": "read_committed"}
    options |= client_options(pipeline)
    options["kafka.bootstrap.servers"] = places.bootstrap(source.bootstrap)
    if source.pattern is not None:
        options["subscribePattern"] = source.pattern
    else:
        options["subscribe"] = ",".join(source.names)
    if source.start in ("earliest", "latest"):
        options["startingOffsets"] = source.start
    else:
        options["startingTimestamp"] = str(times.point_ms(source.start))
        # Where no record is that young, the first run starts at the end.
        options["startingOffsetsByTimestampStrategy"] = "latest"
    if source.rate is not None:
        options["maxOffsetsPerTrigger"] = str(source.rate)
    options["failOnDataLoss"] = str(source.fail_on_data_loss).lower()
    options["includeHeaders"] = "true"
    return options | as_text(source.options)


def writer_options(
    pipeline: Pipeline,
    topic: str,
    bootstrap: str | None,
    places: Places,
    *,
    exactly_once: bool,
    checkpoint: str,
) -> dict[str, str]:
    """The options of `format("mainstem")` for a sink."""
    options = client_options(pipeline)
    options["kafka.bootstrap.servers"] = places.bootstrap(bootstrap)
    options["topic"] = topic
    options["checkpointLocation"] = checkpoint
    if exactly_once:
        options["exactlyOnce"] = "true"
    return options


def sink_options(pipeline: Pipeline, sink: TopicSink, places: Places, checkpoint: str) -> dict[str, str]:
    """The same with those that the sink itself is given."""
    options = writer_options(
        pipeline,
        sink.topic,
        sink.bootstrap,
        places,
        exactly_once=sink.exactly_once,
        checkpoint=checkpoint,
    )
    return options | as_text(sink.options)
