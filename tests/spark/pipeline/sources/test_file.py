"""Mistakes in a file source."""

import pytest

from tests.spark.pipeline.mistakes import base_with, mistakes


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{file: nothing.csv}", "there is no nothing.csv"),
    ],
)
def test_mistakes(source: str, message: str) -> None:
    (line,) = mistakes(base_with(source=source))
    assert message in line
