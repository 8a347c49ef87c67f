"""How Java starts for every Spark of the tests, also for those that a page or a command starts.

Most of a short run's time goes into loading classes and into an optimising compiler that it never gets
anything from. So the compiler is left out, and the classes that one run loaded are mapped into the later ones
from an archive, which this makes when it is run (`./test` does) and without which everything works, slower:

    python -m tests.support.spark_java
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

SPARK_VERSION = "4.2.0"
FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xlog:disable")
_ROOT = Path(__file__).parents[2]
_ARCHIVE = _ROOT / ".peers" / f"spark-{SPARK_VERSION}.jsa"


def java_flags() -> tuple[str, ...]:
    return (*FLAGS, f"-XX:SharedArchiveFile={_ARCHIVE}")  # goes without when there is none


def prepare_environment() -> None:
    """For this process and all that it starts: Spark adds these options to its own."""
    os.environ["SPARK_SUBMIT_OPTS"] = " ".join(java_flags())
    os.environ["SPARK_LAUNCHER_OPTS"] = " ".join(FLAGS)


@contextmanager
def pipeline_python_path() -> Iterator[None]:
    """A Spark that is started in the meantime finds modules as one of a pipeline does."""
    from mainstem.spark.pipeline.running.session import worker_environment

    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = worker_environment(_ROOT)["PYTHONPATH"]
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def _is_usable() -> bool:
    """Java refuses an archive of another Java, and of jars that have changed."""
    import pyspark

    home = Path(pyspark.__file__).parent
    options = " ".join([*java_flags(), "-Xshare:on"])
    environment = os.environ | {"SPARK_HOME": str(home), "SPARK_SUBMIT_OPTS": options}
    command = [str(home / "bin" / "spark-submit"), "--version"]
    return _ARCHIVE.exists() and not subprocess.run(command, env=environment, check=False).returncode


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
        builder = SparkSession.builder.master("local[2]").config(map=settings)
        with pipeline_python_path():
            spark = builder.getOrCreate()
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
