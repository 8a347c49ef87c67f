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
from mainstem.spark.pipeline.model import DeadLetters, Pipeline
from mainstem.spark.pipeline.problems import PipelineError, Problem
from mainstem.spark.pipeline.sinks.console import ConsoleSink
from mainstem.spark.pipeline.sinks.delta import DeltaSink
from mainstem.spark.pipeline.sinks.iceberg import IcebergSink
from mainstem.spark.pipeline.sinks.jdbc import JdbcSink
from mainstem.spark.pipeline.sinks.parquet import ParquetSink
from mainstem.spark.pipeline.sinks.python import PythonSink
from mainstem.spark.pipeline.sinks.topic import TopicSink
from mainstem.spark.pipeline.sources.decode import Decode
from mainstem.spark.pipeline.sources.file import FileSource
from mainstem.spark.pipeline.sources.topic import TopicSource, Watermark
from mainstem.spark.pipeline.steps.aggregate import AggregateStep, Window
from mainstem.spark.pipeline.steps.deduplicate import DeduplicateStep
from mainstem.spark.pipeline.steps.join import JoinStep
from mainstem.spark.pipeline.steps.python import PythonStep
from mainstem.spark.pipeline.steps.sql import SqlStep
from mainstem.spark.pipeline.steps.stateful import StatefulStep
from mainstem.spark.pipeline.steps.watermark import WatermarkStep

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
