"""What the sources of a pipeline ask of the connector."""

from pathlib import Path

from mainstem.spark.pipeline import Pipeline, TopicSource
from mainstem.spark.pipeline.parts import Options
from mainstem.spark.pipeline.places import Places


def _isolation(kafka: Options, options: Options) -> str:
    source = TopicSource(topic="orders", options=options)
    pipeline = Pipeline(name="p", sources={"orders": source}, kafka=kafka)
    return source.reader_options(pipeline, Places(pipeline, Path()))["kafka.isolation.level"]


def test_only_committed_records_are_read_unless_the_pipeline_says_otherwise() -> None:
    assert _isolation({}, {}) == "read_committed"
    assert _isolation({}, {"kafka.isolation.level": "read_uncommitted"}) == "read_uncommitted"
    assert _isolation({"isolation.level": "read_uncommitted"}, {}) == "read_uncommitted"
