"""Orders from a topic into a table, and the large ones out to another topic, exactly once."""

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.active()
broker = os.environ.get("MAINSTEM_BOOTSTRAP", "localhost:9092")


@dp.table
def orders() -> DataFrame:
    """A streaming table: each run adds what came into the topic since the last one."""
    records = (
        spark.readStream.format("mainstem")
        .option("kafka.bootstrap.servers", broker)
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .load()
    )
    schema = "id BIGINT, product STRING, amount DOUBLE"
    return records.selectExpr(f"from_json(CAST(value AS STRING), '{schema}') AS o").select("o.*")


dp.create_sink(
    "large_orders",
    "mainstem",
    {"kafka.bootstrap.servers": broker, "topic": "large-orders", "exactlyOnce": "true"},
)


@dp.append_flow(target="large_orders")
def find_large_orders() -> DataFrame:
    """What goes to the sink: a key and a value for each record."""
    large = spark.readStream.table("orders").where("amount >= 100")
    return large.selectExpr("CAST(id AS STRING) AS key", "to_json(struct(*)) AS value")
