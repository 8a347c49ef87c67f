"""Mistakes in a sql step."""

import pytest

from tests.spark.pipeline.mistakes import base_with, mistakes


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("{sql: SELECT * FROM ordrs}", "there is no view 'ordrs' -> did you mean orders?"),
        ("{sql: DELETE FROM orders}", "a step's SQL is a query, not DELETE"),
        ("{sql: SELECT 1; SELECT 2}", "a step has one query"),
        ("{sql: 'SELECT (1'}", "this is no SQL: '(' is not closed"),
        ("{sql_file: nothing.sql}", "nothing.sql cannot be read: no such file or directory"),
        ("{sql: SELECT * FROM made}", "it reads itself: made -> made"),
    ],
)
def test_mistakes(step: str, message: str) -> None:
    (line,) = mistakes(base_with(step=step))
    assert message in line
