"""The data pipeline on PySpark: `format("mainstem")` reads and writes topics of any Kafka-compatible cluster.

Spark finds the data source by itself through the package `pyspark_mainstem`. What decides (options, offsets,
plans, limits) is in files that know neither Spark nor a socket; nothing here imports the broker.
"""
