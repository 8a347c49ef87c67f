"""CSV: its columns are inferred from what a sample has in common, and a value that does not fit them is told
why."""

import pytest

from mainstem.spark.pipeline import Decode
from mainstem.spark.pipeline.formats.csv import CsvDiagnosis
from mainstem.spark.pipeline.schemas import ddl
from mainstem.spark.pipeline.schemas.inference import CannotInfer

DECODE = Decode(format="csv")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"1,2,3", "3 columns instead of 2"),
        (b"x,2026-01-01", "column id: x is not BIGINT"),
        (b"1,never", "column at: never is not TIMESTAMP"),
        (b"1,2026-01-01T00:00:00", "it does not fit the schema: 1,2026-01-01T00:00:00"),
    ],
)
def test_the_reason_why_a_value_does_not_fit(value: bytes, reason: str) -> None:
    assert CsvDiagnosis(ddl.parse("id BIGINT, at TIMESTAMP")).reason(value) == reason


def test_columns_are_inferred() -> None:
    assert ddl.render(DECODE.infer_columns([b"1,a,2.5,true", b"2,,3,false"])) == (
        "_c0 BIGINT, _c1 STRING, _c2 DOUBLE, _c3 BOOLEAN"
    )
    semicolons = Decode(format="csv", options={"sep": ";"})
    assert ddl.render(semicolons.infer_columns([b'1;"a;b"'])) == "_c0 BIGINT, _c1 STRING"


def test_a_sample_that_tells_nothing() -> None:
    with pytest.raises(CannotInfer):
        DECODE.infer_columns([])
