"""Spans and points of time are understood as people write them."""

import pytest

from mainstem.spark.pipeline import times


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("5 seconds", "5 seconds"),
        ("1 second", "1 seconds"),
        ("10m", "10 minutes"),
        ("10 min", "10 minutes"),
        ("2 Hours", "2 hours"),
        ("500 ms", "500 milliseconds"),
        ("3d", "3 days"),
        ("2h30m", "2 hours 30 minutes"),
        ("PT2H30M", "2 hours 30 minutes"),
        ("five seconds", None),
        ("5", None),
        ("5 parsecs", None),
        ("-5 seconds", None),
    ],
)
def test_spans(text: str, span: str | None) -> None:
    assert times.span(text) == span


def test_triggers() -> None:
    assert times.trigger("available now") == times.trigger("availableNow") == times.AVAILABLE_NOW
    assert times.trigger("once") == times.AVAILABLE_NOW
    assert times.trigger("2 seconds") == "2 seconds"
    assert times.trigger("often") is None


def test_points_of_time_are_utc_unless_they_say_otherwise() -> None:
    assert times.point_ms("1970-01-01T00:00:01Z") == 1000
    assert times.point_ms("1970-01-01T00:00:01") == 1000
    assert times.point_ms("1970-01-01T01:00:00+01:00") == 0
    assert times.point_ms("yesterday") is None
