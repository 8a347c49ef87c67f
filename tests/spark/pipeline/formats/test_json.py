"""JSON: its columns are inferred from what a sample has in common, and a value that does not fit them is told
why."""

import pytest

from mainstem.spark.pipeline import Decode
from mainstem.spark.pipeline.formats.json import JsonDiagnosis
from mainstem.spark.pipeline.schemas import ddl
from mainstem.spark.pipeline.schemas.inference import CannotInfer

DECODE = Decode(format="json")
SCHEMA = ddl.parse(
    "id BIGINT NOT NULL, small INT, ok BOOLEAN, price DECIMAL(10,2), at TIMESTAMP, "
    "tags ARRAY<STRING>, inner STRUCT<x: INT>, m MAP<STRING, DOUBLE>"
)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"{bad", "not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        (b"\xff\xfe", "not text: byte 0 is not UTF-8"),
        (b'{"id": 1} {"id": 2}', 'more than one JSON value: after the first comes {"id": 2}'),
        (b"[1]", "not a JSON object but an array"),
        (b"{}", "field id is missing, and the schema says NOT NULL"),
        (b'{"id": "x"}', 'field id is "x", not BIGINT'),
        (b'{"id": 1, "small": 3000000000}', "field small is 3000000000, not INT"),
        (b'{"id": 1, "ok": "yes"}', 'field ok is "yes", not BOOLEAN'),
        (b'{"id": 1, "price": "cheap"}', 'field price is "cheap", not DECIMAL(10,2)'),
        (b'{"id": 1, "at": "yesterday"}', 'field at is "yesterday", not TIMESTAMP'),
        (b'{"id": 1, "tags": "a"}', 'field tags is "a", not an array'),
        (b'{"id": 1, "inner": {"x": true}}', "field inner.x is true, not INT"),
        (b'{"id": 1, "inner": 5}', "field inner is 5, not an object"),
        (b'{"id": 1, "m": {"k": "v"}}', 'field m.k is "v", not DOUBLE'),
        (b'{"id": 1}', 'it does not fit the schema: {"id": 1}'),
        (None, None),
    ],
)
def test_the_reason_why_a_value_does_not_fit(value: bytes | None, reason: str | None) -> None:
    assert JsonDiagnosis(SCHEMA).reason(value) == reason


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
        ([b"broken", b"[1]", b'{"x": 1}', b"\xff"], "x BIGINT"),
    ],
)
def test_columns_are_inferred(values: list[bytes], schema: str) -> None:
    assert ddl.render(DECODE.infer_columns(values)) == schema


@pytest.mark.parametrize("values", [[], [b"x"]])
def test_a_sample_that_tells_nothing(values: list[bytes]) -> None:
    with pytest.raises(CannotInfer):
        DECODE.infer_columns(values)
