"""Schemas written as DDL are read as Spark reads them, and mistakes in them are found with their place."""

import pytest

from mainstem.spark.pipeline.schemas import ddl


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("id BIGINT", "id BIGINT"),
        ("id long NOT NULL, name string", "id BIGINT NOT NULL, name STRING"),
        ("a: int, b: integer", "a INT, b INT"),
        ("`odd name` DOUBLE COMMENT 'in euro'", "`odd name` DOUBLE"),
        ("price DECIMAL(10, 2), n decimal, m dec(5)", "price DECIMAL(10,2), n DECIMAL(10,0), m DECIMAL(5,0)"),
        ("s STRUCT<a: INT, b: ARRAY<STRING>>", "s STRUCT<a: INT, b: ARRAY<STRING>>"),
        ("m MAP<STRING, STRUCT<x: DATE NOT NULL>>", "m MAP<STRING, STRUCT<x: DATE NOT NULL>>"),
        ("at timestamp, code varchar(3)", "at TIMESTAMP, code VARCHAR(3)"),
        ("line\n  STRING,\n  n INT", "line STRING, n INT"),
    ],
)
def test_a_schema_is_read_and_written_again(text: str, written: str) -> None:
    assert ddl.render(ddl.parse(text)) == written
    assert ddl.render(ddl.parse(written)) == written


@pytest.mark.parametrize(
    ("text", "message", "position"),
    [
        ("", "no columns", 0),
        ("id", "the column id has no type", 2),
        ("id BIGNT", "there is no type BIGNT", 3),
        ("a INT b INT", "a comma is missing before 'b'", 6),
        ("a INT, A STRING", "the column A is there twice", 7),
        ("a STRUCT<b: INT", "> is missing before the end", 15),
        ("a ARRAY INT", "< is missing before 'INT'", 8),
        ("a INT NOT", "NULL is missing before the end", 9),
        ("a varchar", "varchar needs its length", 9),
        ("a DECIMAL(50, 2)", "at most 38 digits", 15),
        ("a INT, ?", "'?' does not belong into a schema", 7),
    ],
)
def test_a_mistake_is_found_at_its_place(text: str, message: str, position: int) -> None:
    with pytest.raises(ddl.DdlError) as caught:
        ddl.parse(text)
    assert message in caught.value.message
    assert caught.value.position == position


def test_the_nearest_type_is_offered() -> None:
    with pytest.raises(ddl.DdlError) as caught:
        ddl.parse("id STRNG")
    assert caught.value.hint == "did you mean string?"
