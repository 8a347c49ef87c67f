"""A batch is written into an Iceberg table exactly once, however often it runs."""

from pathlib import Path

import pyarrow as pa
import pytest

from mainstem.spark.pipeline import IcebergSink, Pipeline
from mainstem.spark.pipeline.places import Places
from tests.spark.pipeline.mistakes import base_with, mistakes

ROWS = pa.table({"id": [1, 2], "name": ["a", None]})
PLACES = Places(Pipeline(name="p"), Path())


def test_iceberg_takes_each_batch_once(tmp_path: Path) -> None:
    catalog: dict[str, str | int | float | bool] = {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/catalog.db",
        "warehouse": f"file://{tmp_path}/house",
    }
    sink = IcebergSink(source="v", iceberg="shop.orders", catalog=catalog)
    assert sink.write_rows(ROWS, "query", 0, PLACES)
    assert not sink.write_rows(ROWS, "query", 0, PLACES)
    assert sink.write_rows(ROWS, "query", 1, PLACES)
    assert sink.write_rows(ROWS, "another", 0, PLACES)
    from pyiceberg.catalog import load_catalog

    properties = {key: str(value) for key, value in catalog.items()}
    table = load_catalog("default", **properties).load_table("shop.orders")
    assert table.scan().to_arrow().num_rows == 6


@pytest.mark.parametrize(
    ("sink", "message"),
    [
        ("{from: one, iceberg: orders}", "'orders' has no namespace -> write NAMESPACE.orders"),
    ],
)
def test_mistakes(sink: str, message: str) -> None:
    (line,) = mistakes(base_with(sink=sink))
    assert message in line
