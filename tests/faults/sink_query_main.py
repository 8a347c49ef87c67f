"""A streaming query from one topic to another, exactly once, run as a script and killed by tests.

    python sink_query_main.py BOOTSTRAP SOURCE SINK FOLDER MASTER TRIGGER

TRIGGER is `running` (until it is killed) or `rest` (all that there is, then it ends).
"""

import os
import sys

from pyspark.sql import SparkSession


def main(bootstrap: str, source: str, sink: str, folder: str, master: str, trigger: str) -> None:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    settings: dict[str, bool | float | int | str | None] = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "512m",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": f"{folder}/spark",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.executor.memory": "1g",
        # What tests/support/spark_java.py gives to the driver's Java.
        "spark.executor.extraJavaOptions": os.environ.get("SPARK_SUBMIT_OPTS", ""),
    }
    spark = SparkSession.builder.master(master).config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    rows = (
        spark.readStream.format("mainstem")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 5_000 if trigger == "running" else 1_000_000)
        .load()
    )
    query = (
        rows.selectExpr("key", "value")
        .writeStream.format("mainstem")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", sink)
        .option("exactlyOnce", "true")
        # Some tasks stage in files, others in messages.
        .option("stagingInlineBytes", 20_000)
        .option("checkpointLocation", f"{folder}/checkpoint")
    )
    if trigger == "rest":
        query = query.trigger(availableNow=True)
    query.start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
