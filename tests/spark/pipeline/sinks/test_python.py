"""Mistakes in a python sink."""

import pytest

from tests.spark.pipeline.mistakes import base_with, mistakes


@pytest.mark.parametrize(
    ("sink", "message"),
    [
        ("{from: one, python: nothing.py:f}", "there is no file nothing.py"),
    ],
)
def test_mistakes(sink: str, message: str) -> None:
    (line,) = mistakes(base_with(sink=sink))
    assert message in line
