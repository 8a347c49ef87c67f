"""A value that does not fit its schema is told why."""

import pytest

from mainstem.spark.pipeline.diagnose import Diagnosis
from mainstem.spark.pipeline.schemas import ddl

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
def test_json(value: bytes | None, reason: str | None) -> None:
    assert Diagnosis("json", SCHEMA).reason(value) == reason


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"1,2,3", "3 columns instead of 2"),
        (b"x,2026-01-01", "column id: x is not BIGINT"),
        (b"1,never", "column at: never is not TIMESTAMP"),
        (b"1,2026-01-01T00:00:00", "it does not fit the schema: 1,2026-01-01T00:00:00"),
    ],
)
def test_csv(value: bytes, reason: str) -> None:
    assert Diagnosis("csv", ddl.parse("id BIGINT, at TIMESTAMP")).reason(value) == reason
