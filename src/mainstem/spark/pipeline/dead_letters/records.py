"""The records of dead letters, as Spark makes them of bad rows."""

from __future__ import annotations

from pyspark.sql import DataFrame

from mainstem.spark.pipeline.dead_letters.headers import (
    AT,
    OFFSET,
    PARTITION,
    PIPELINE,
    REASON,
    STEP,
    TIMESTAMP,
    TOPIC,
)
from mainstem.spark.pipeline.spark_functions import F


def dead_letter_records(bad: DataFrame, pipeline: str, source: str) -> DataFrame:
    """Bad records as they were, with headers that say why, where and when."""
    fields = {
        REASON: F.col("reason"),
        TOPIC: F.col("topic"),
        PARTITION: F.col("partition").cast("string"),
        OFFSET: F.col("offset").cast("string"),
        TIMESTAMP: F.unix_millis(F.col("timestamp")).cast("string"),
        PIPELINE: F.lit(pipeline),
        STEP: F.concat(F.lit(f"{source}."), F.col("failed")),
        AT: F.date_format(F.current_timestamp(), "yyyy-MM-dd'T'HH:mm:ss.SSSXXX"),
    }
    headers = F.array(
        *(
            F.struct(F.lit(name).alias("key"), value.cast("string").cast("binary").alias("value"))
            for name, value in fields.items()
        )
    )
    own = F.coalesce(F.col("headers"), F.array().cast("array<struct<key:string,value:binary>>"))
    return bad.select("key", "value", F.concat(own, headers).alias("headers"))
