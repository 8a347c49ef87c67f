"""Mistakes in a stateful step."""

import pytest

from tests.spark.pipeline.mistakes import base_with, mistakes


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("{stateful: 'json:JSONEncoder', from: orders, by: [id], schema: n INTT}", "there is no type INTT"),
    ],
)
def test_mistakes(step: str, message: str) -> None:
    (line,) = mistakes(base_with(step=step))
    assert message in line
