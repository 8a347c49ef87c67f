"""Mistakes in a aggregate step."""

import pytest

from tests.spark.pipeline.mistakes import base_with, mistakes


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("{aggregate: {n: 'count('}, from: orders}", "this is no SQL"),
        ("{aggregate: {n: count(*)}, window: {column: at}, from: orders}", "a window needs either a size or"),
        ("{aggregate: {id: count(*)}, by: [id], from: orders}", "there would be two columns id"),
    ],
)
def test_mistakes(step: str, message: str) -> None:
    (line,) = mistakes(base_with(step=step))
    assert message in line
