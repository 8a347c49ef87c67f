"""Mistakes in a python step."""

import pytest

from tests.spark.pipeline.mistakes import base_with, mistakes


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("{python: nothing.py:f, from: orders}", "there is no file nothing.py"),
        ("{python: json:dumpp, from: orders}", "there is no dumpp in json -> did you mean dump?"),
        ("{python: nothing_such:f, from: orders}", "there is no module nothing_such"),
        ("{python: f, from: orders}", "'f' is no function -> write file.py:function"),
        ("{python: 'json:dumps', from: odrers}", "there is no view 'odrers'"),
    ],
)
def test_mistakes(step: str, message: str) -> None:
    (line,) = mistakes(base_with(step=step))
    assert message in line
