"""The programs in docs/spark-sink.md work as they stand there."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.docs.markdown import blocks
from tests.docs.reader import ROOT
from tests.spark.sink.support import read_values
from tests.support.target import Target

PAGE = ROOT / "docs" / "spark-sink.md"


@pytest.mark.peer
@pytest.mark.timeout(600)
def test_the_programs_of_the_page_work(spark: SparkSession, mainstem: Target, tmp_path: Path) -> None:
    for topic in ("numbers", "copies", "parts"):
        mainstem.create_topic(topic, partitions=2)
    names: dict[str, Any] = {
        "spark": spark,
        "checkpoint": str(tmp_path / "checkpoint"),
        "staging": str(tmp_path / "staging"),
    }
    batch, query, each_batch = (block.text for block in blocks(PAGE.read_text()))
    for program in (batch, query, each_batch):
        exec(program.replace("localhost:9092", mainstem.bootstrap_servers), names)
    expected = sorted(b"%d" % number for number in range(1000))
    assert read_values(mainstem.bootstrap_servers, "numbers") == expected
    assert read_values(mainstem.bootstrap_servers, "copies") == expected
    for _ in range(2):
        names["write"](spark.range(10).selectExpr("cast(id as string) as value"), 3)
    assert read_values(mainstem.bootstrap_servers, "parts") == [b"%d" % number for number in range(10)]
