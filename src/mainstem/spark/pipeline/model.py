"""A whole pipeline: what a YAML file is read into, and what a Python file builds itself."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from mainstem.spark.pipeline.parts import Options, Part
from mainstem.spark.pipeline.sinks import Sink
from mainstem.spark.pipeline.sources import Source
from mainstem.spark.pipeline.steps import Step


class DeadLetters(Part, frozen=True, kw_only=True):
    """Where records go that cannot be decoded or break a rule."""

    SHORT: ClassVar[str | None] = "topic"

    topic: Annotated[str, Meta(description="the topic; it is created when it is missing")]
    bootstrap: Annotated[str | None, Meta(description="another cluster than the pipeline's")] = None


class Pipeline(Part, frozen=True, kw_only=True, rename={"name": "pipeline"}):
    """A whole pipeline."""

    name: Annotated[str, Meta(description="its name: in status, metrics and dead letters")]
    sources: Annotated[dict[str, Source], Meta(description="the views that come from topics and files")] = {}
    sinks: Annotated[dict[str, Sink], Meta(description="where views are written")] = {}
    steps: Annotated[dict[str, Step], Meta(description="the views that are made of other views")] = {}
    bootstrap: Annotated[
        str | None, Meta(description="the cluster; MAINSTEM_BOOTSTRAP or `localhost:9092` otherwise")
    ] = None
    kafka: Annotated[
        Options, Meta(description="client settings for every topic, such as `security.protocol`")
    ] = {}
    dead_letters: Annotated[DeadLetters | None, Meta(description="where bad records go")] = None
    checkpoint: Annotated[
        str | None, Meta(description="the folder of its progress; in your state home otherwise")
    ] = None
    group: Annotated[
        str | None, Meta(description="the group that its offsets are committed to; its name otherwise")
    ] = None
    trigger: Annotated[
        str | None,
        Meta(description="`5 seconds` between batches, or `available now`; at once otherwise"),
    ] = None
    spark: Annotated[Options, Meta(description="Spark's configuration")] = {}
