"""The kinds of sinks: one module for each, which holds all that there is to it."""

from mainstem.spark.pipeline.kinds import kinds_in
from mainstem.spark.pipeline.sinks.sink import Sink

_FIRST = ("topic", "parquet", "delta", "iceberg", "jdbc", "console", "python")
KINDS = kinds_in(__name__, __path__, Sink, first=_FIRST)
