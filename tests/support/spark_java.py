"""How Java starts for every Spark of the tests, also for those that a page or a command starts.

Most of a short run's time goes into loading classes and into an optimising compiler that it never gets
anything from. So the compiler is left out, and the classes that one run loaded are mapped into the later ones
from an archive, which this makes when it is run (`./test` does) and without which everything works, slower:

    python -m tests.support.spark_java
"""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

SPARK_VERSION = "4.2.0"
FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xlog:disable")
_PEERS = Path(__file__).parents[2] / ".peers"
_ARCHIVE = _PEERS / f"spark-{SPARK_VERSION}.jsa"


def java_flags() -> tuple[str, ...]:
    return (*FLAGS, f"-XX:SharedArchiveFile={_ARCHIVE}")  # goes without when there is none


def prepare_environment() -> None:
    """For this process and all that it starts: Spark adds these options to its own."""
    os.environ["SPARK_SUBMIT_OPTS"] = " ".join(java_flags())
    os.environ["SPARK_LAUNCHER_OPTS"] = " ".join(FLAGS)


def _is_usable() -> bool:
    """Java refuses an archive of another Java, and of jars that have changed."""
    import pyspark

    home = Path(pyspark.__file__).parent
    check = ("-Xshare:on", "-Xlog:disable", f"-XX:SharedArchiveFile={_ARCHIVE}", "-version")
    command = ["java", "-XX:+UseSerialGC", "-cp", f"{home}/conf:{home}/jars/*", *check]
    return _ARCHIVE.exists() and subprocess.run(command, capture_output=True, check=False).returncode == 0


def _make(part: Path, folder: Path) -> None:
    """From the classes that a query from topic to topic loads."""
    os.environ["SPARK_SUBMIT_OPTS"] = " ".join([*FLAGS, f"-XX:ArchiveClassesAtExit={part}"])
    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    from pyspark.sql import SparkSession

    from mainstem.testing import Broker

    with Broker() as broker:
        settings: dict[str, bool | float | int | str | None] = {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.shuffle.partitions": "1",
        }
        spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
        servers = {"kafka.bootstrap.servers": broker.bootstrap_servers, "includeHeaders": "true"}
        row = spark.range(1).selectExpr("'{}' as value")
        row.write.format("mainstem").mode("append").options(**servers, topic="in").save()
        stream = spark.readStream.format("mainstem").options(**servers, subscribe="in")
        rows = stream.option("startingOffsets", "earliest").load()
        rows = rows.dropDuplicates(["offset"]).selectExpr("to_json(struct(offset)) as value")
        writer = rows.writeStream.format("mainstem").option("topic", "out").options(**servers)
        writer = writer.option("checkpointLocation", str(folder)).trigger(availableNow=True)
        writer.start().awaitTermination()
        java = spark.sparkContext._gateway.proc  # type: ignore[union-attr]
        spark.stop()
    java.stdin.close()  # it ends then, and writes the archive
    java.wait()


def main() -> None:
    _ARCHIVE.unlink(missing_ok=True)
    part = _ARCHIVE.with_suffix(f".part.{os.getpid()}")
    try:
        with TemporaryDirectory() as folder:
            _make(part, Path(folder))
        part.rename(_ARCHIVE)
    finally:
        part.unlink(missing_ok=True)


if __name__ == "__main__" and not _is_usable():
    main()
