"""A Spark for tests: quiet, small, and with Spark's own Kafka connector beside `format("mainstem")`.

One for each worker of the test run at most: a JVM takes seconds to start and half a gigabyte.
"""

import os
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.support import spark_java
from tests.support.kafka_peer import java
from tests.support.tool_server import PeerMissingError

_JARS = Path(__file__).parents[2] / ".peers" / f"spark-connector-{spark_java.SPARK_VERSION}"


@cache
def spark_session() -> SparkSession:
    """The session of this process; it ends with the process."""
    java()
    if not _JARS.is_dir():
        raise PeerMissingError("Spark's Kafka connector is not in .peers/: run ./test, which gets it")
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    folder = tempfile.mkdtemp(prefix="spark-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT"))
    settings: dict[str, bool | float | int | str | None] = {
        "spark.jars": ",".join(str(jar) for jar in sorted(_JARS.glob("*.jar"))),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": folder,
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.sql.streaming.stopTimeout": "30s",
        # Times for tests: nobody waits for a closed query's state.
        "spark.sql.streaming.minBatchesToRetain": "2",
    }
    builder = SparkSession.builder.master("local[2]").appName("mainstem tests")
    with spark_java.pipeline_python_path():
        session = builder.config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def completed(run: Callable[[], StreamingQuery]) -> StreamingQuery:
    """The query that `run` starts and waits for. Spark waits ten seconds for a new Python process, which a
    busy machine may take longer for: then it goes on from its checkpoint.
    """
    for _ in range(2):
        try:
            return run()
        except StreamingQueryException as error:
            if "Python worker failed to connect back" not in str(error):
                raise
    return run()


def ended(query: StreamingQuery) -> StreamingQuery:
    query.awaitTermination()
    return query
