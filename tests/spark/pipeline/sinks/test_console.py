"""Mistakes in a console sink."""

import pytest

from tests.spark.pipeline.mistakes import base_with, mistakes


@pytest.mark.parametrize(
    ("sink", "message"),
    [
        ("{from: one, console: 0}", "show at least one row"),
    ],
)
def test_mistakes(sink: str, message: str) -> None:
    (line,) = mistakes(base_with(sink=sink))
    assert message in line
