"""The name under which Spark finds the data source: a package `pyspark_*` with a `DefaultSource`."""

from mainstem.spark.datasource import MainstemDataSource as DefaultSource

__all__ = ["DefaultSource"]
