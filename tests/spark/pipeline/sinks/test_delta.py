"""A batch is written into a Delta table exactly once, however often it runs."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from mainstem.spark.pipeline import DeltaSink, Pipeline
from mainstem.spark.pipeline.places import Places

ROWS = pa.table({"id": [1, 2], "name": ["a", None]})
PLACES = Places(Pipeline(name="p"), Path())


def test_delta_takes_each_batch_once(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    sink = DeltaSink(source="v", delta=path)
    assert sink.write_rows(ROWS, "query", 0, PLACES)
    assert not sink.write_rows(ROWS, "query", 0, PLACES)
    assert sink.write_rows(ROWS, "query", 1, PLACES)
    assert sink.write_rows(ROWS, "another query", 0, PLACES)
    assert DeltaTable(path).to_pyarrow_table().num_rows == 6


def test_delta_partitions_and_new_columns(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    wider = pa.table({"id": [3], "name": ["c"], "more": [1.5]})
    sink = DeltaSink(source="v", delta=path, partition_by=["name"])
    assert sink.write_rows(ROWS, "query", 0, PLACES)
    assert DeltaTable(path).metadata().partition_columns == ["name"]
    with pytest.raises((DeltaError, ValueError)):
        sink.write_rows(wider, "query", 1, PLACES)
    merging = DeltaSink(source="v", delta=path, partition_by=["name"], schema_change="merge")
    assert merging.write_rows(wider, "query", 1, PLACES)
    assert DeltaTable(path).to_pyarrow_table().num_rows == 3
