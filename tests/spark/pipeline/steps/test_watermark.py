"""Mistakes in a watermark step."""

import pytest

from tests.spark.pipeline.mistakes import base_with, mistakes


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("{watermark: at, delay: x, from: orders}", "'x' is no span of time"),
    ],
)
def test_mistakes(step: str, message: str) -> None:
    (line,) = mistakes(base_with(step=step))
    assert message in line
