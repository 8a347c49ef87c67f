"""A pipeline runs on a real Spark cluster, one master and two workers whose Python has none of our
packages."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest

from mainstem.testing import Broker
from tests.spark.pipeline.shop import Shop
from tests.support.kafka_peer import java

pytestmark = [pytest.mark.peer, pytest.mark.soak, pytest.mark.timeout(1800)]

HOME = Path(pyspark.__file__).parent
FILE = """\
pipeline: shop
checkpoint: ./checkpoint
sources:
  orders: {topic: orders, decode: {format: json, schema: id BIGINT}}
steps:
  told: {python: functions.py:tell, from: orders}
sinks:
  out: {from: told, topic: out, key: id}
"""
FUNCTIONS = """\
from pyspark.sql import functions as F


def tell(frame):
    def where(_):
        import sys
        import mainstem
        return f"{sys.prefix}|{mainstem.__file__}"

    return frame.withColumn("where", F.udf(where)("id"))
"""


@contextmanager
def _process(name: str, folder: Path, *arguments: str) -> Iterator[Path]:
    """A daemon of Spark; its output goes to a file."""
    log = folder / f"{name}.log"
    plain = os.pathsep.join([str(Path(sys.base_prefix) / "bin"), "/usr/bin", "/bin"])
    environment = {
        "PATH": plain,
        "HOME": str(folder),
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SCALA_VERSION": "2.13",  # what Spark's own start script sets; executors do not start without
    }
    command = [str(java()), "-Xmx256m", "-cp", f"{HOME}/jars/*", *arguments]
    with log.open("w") as stream:
        running = subprocess.Popen(command, cwd=folder, env=environment, stdout=stream, stderr=stream)
    try:
        yield log
    finally:
        running.terminate()
        running.wait(60)


def _until(log: Path, pattern: str) -> re.Match[str]:
    end = time.monotonic() + 300
    while (found := re.search(pattern, log.read_text())) is None:
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.1)
    return found


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    with ExitStack() as stack:
        package = "org.apache.spark.deploy"
        options = ["--host", "127.0.0.1", "--webui-port", "0"]
        log = stack.enter_context(
            _process("master", tmp_path, f"{package}.master.Master", *options, "--port", "0")
        )
        address = _until(log, r"Starting Spark master at (spark://\S+)")[1]
        for number in range(2):
            work = ["--cores", "1", "--memory", "1g", "--work-dir", str(tmp_path / f"work{number}")]
            stack.enter_context(
                _process(f"worker{number}", tmp_path, f"{package}.worker.Worker", *options, *work, address)
            )
            _until(tmp_path / f"worker{number}.log", "Successfully registered with master")
        yield address


def test_workers_get_our_packages_with_the_pipeline(master: str, tmp_path: Path) -> None:
    (tmp_path / "shop.yaml").write_text(FILE)
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    with Broker(config={"num.partitions": 4}) as broker, Shop(tmp_path, broker) as shop:
        shop.produce("orders", *(json.dumps({"id": number}).encode() for number in range(200)))
        code, printed = shop.run(
            "--once", "--package", "--master", master, "--conf", "spark.executor.memory=512m"
        )
        assert code == 0, printed
        rows = [json.loads(message.value() or b"") for message in shop.read("out")]
    assert sorted(row["id"] for row in rows) == list(range(200))
    for row in rows:
        prefix, _, file = row["where"].partition("|")
        assert prefix != sys.prefix
        assert "mainstem-environment" in file
