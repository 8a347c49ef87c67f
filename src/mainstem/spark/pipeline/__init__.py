"""Pipelines on Spark, declared in a YAML or Python file: topics in, transformed, out to topics and tables.

    from mainstem.spark.pipeline import Decode, Pipeline, SqlStep, TopicSink, TopicSource

    pipeline = Pipeline(
        name="orders",
        sources={"orders": TopicSource(topic="orders", decode=Decode(schema="id BIGINT, amount DOUBLE"))},
        steps={"big": SqlStep(sql="SELECT * FROM orders WHERE amount > 100")},
        sinks={"out": TopicSink(source="big", topic="big-orders", key="id")},
    )

Nothing here imports Spark until a pipeline is explained with Spark or run.
"""

from mainstem.spark.pipeline.checking.validate import validate
from mainstem.spark.pipeline.model import (
    AggregateStep,
    ConsoleSink,
    DeadLetters,
    Decode,
    DeduplicateStep,
    DeltaSink,
    FileSource,
    IcebergSink,
    JdbcSink,
    JoinStep,
    ParquetSink,
    Pipeline,
    PythonSink,
    PythonStep,
    SqlStep,
    StatefulStep,
    TopicSink,
    TopicSource,
    Watermark,
    WatermarkStep,
    Window,
)
from mainstem.spark.pipeline.problems import PipelineError, Problem

__all__ = [
    "AggregateStep",
    "ConsoleSink",
    "DeadLetters",
    "Decode",
    "DeduplicateStep",
    "DeltaSink",
    "FileSource",
    "IcebergSink",
    "JdbcSink",
    "JoinStep",
    "ParquetSink",
    "Pipeline",
    "PipelineError",
    "Problem",
    "PythonSink",
    "PythonStep",
    "SqlStep",
    "StatefulStep",
    "TopicSink",
    "TopicSource",
    "Watermark",
    "WatermarkStep",
    "Window",
    "validate",
]
