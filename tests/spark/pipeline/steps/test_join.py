"""Mistakes in a join step."""

import pytest

from tests.spark.pipeline.mistakes import base_with, mistakes


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("{join: [orders], on: id}", "a join has two views, not 1"),
        ("{join: [orders, orders], on: id}", "a view cannot be joined with itself"),
        ("{join: [orders, plaine], on: id}", "there is no view 'plaine' -> did you mean plain?"),
    ],
)
def test_mistakes(step: str, message: str) -> None:
    (line,) = mistakes(base_with(step=step))
    assert message in line
