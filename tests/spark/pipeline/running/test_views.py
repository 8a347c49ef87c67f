"""What Spark refuses when a pipeline's views are made is told at its place in the file."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mainstem.spark.pipeline.brokers import samples
from mainstem.spark.pipeline.file import reader
from mainstem.spark.pipeline.places import Places
from mainstem.spark.pipeline.problems import PipelineError
from mainstem.spark.pipeline.running.views import build

pytestmark = pytest.mark.peer

FILE = """\
pipeline: shop
bootstrap: localhost:1
sources:
  orders:
    topic: orders
    decode: raw
    options:
      kafka.client.id: shop
      minPartitons: 3
sinks:
  out: {from: orders, topic: out}
"""


def test_an_option_that_the_data_source_does_not_know(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "shop.yaml").write_text(FILE)
    document = reader.load(tmp_path / "shop.yaml")
    assert document.pipeline is not None
    places = Places(document.pipeline, tmp_path)
    with pytest.raises(PipelineError) as refused:
        build(spark, document, places, samples.definitions(document, places))
    (problem,) = refused.value.problems
    assert problem.message == "the option 'minpartitons' does not exist; did you mean minPartitions?"
    assert document.locate(problem) == (9, 7)
