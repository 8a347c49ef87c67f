"""The columns of JSON and CSV are inferred from what a sample has in common."""

import pytest

from mainstem.spark.pipeline.schemas import ddl
from mainstem.spark.pipeline.schemas.inference import CannotInfer, infer_csv, infer_json


@pytest.mark.parametrize(
    ("values", "schema"),
    [
        ([b'{"id": 1, "name": "a"}'], "id BIGINT, name STRING"),
        ([b'{"x": 1}', b'{"x": 2.5}'], "x DOUBLE"),
        ([b'{"x": 1}', b'{"x": "a"}'], "x STRING"),
        ([b'{"x": null}', b'{"x": true}'], "x BOOLEAN"),
        ([b'{"x": null}'], "x STRING"),
        ([b'{"at": "2026-01-31T12:00:00Z"}', b'{"at": "2026-01-31"}'], "at TIMESTAMP"),
        ([b'{"day": "2026-01-31"}'], "day DATE"),
        ([b'{"day": "2026-99-31"}'], "day STRING"),
        ([b'{"a": {"b": 1}}', b'{"a": {"c": [1, 2.0]}}'], "a STRUCT<b: BIGINT, c: ARRAY<DOUBLE>>"),
        ([b'{"a": [], "b": {}}'], "a ARRAY<STRING>, b STRING"),
        ([b'{"n": 99999999999999999999}'], "n DECIMAL(38,0)"),
        ([b"broken", b"[1]", b'{"x": 1}', None, b"\xff"], "x BIGINT"),
    ],
)
def test_json(values: list[bytes | None], schema: str) -> None:
    assert ddl.render(infer_json(values)) == schema


def test_csv() -> None:
    assert ddl.render(infer_csv([b"1,a,2.5,true", b"2,,3,false"])) == (
        "_c0 BIGINT, _c1 STRING, _c2 DOUBLE, _c3 BOOLEAN"
    )
    assert ddl.render(infer_csv([b'1;"a;b"'], ";")) == "_c0 BIGINT, _c1 STRING"


def test_a_sample_that_tells_nothing() -> None:
    for values in ([], [b"x"], [None]):
        with pytest.raises(CannotInfer):
            infer_json(values)
    with pytest.raises(CannotInfer):
        infer_csv([])
