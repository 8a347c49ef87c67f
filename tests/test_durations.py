"""Lengths of time are understood as people write them, the same everywhere."""

import pytest

from mainstem.durations import duration_ms, duration_parts, is_iso_duration


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("0s", 0),
        ("250ms", 250),
        ("1500us", 1),
        ("15m", 900_000),
        ("2 min", 120_000),
        (" 10 Minutes ", 600_000),
        ("1 second", 1_000),
        ("2h30m", 9_000_000),
        ("2 hours 30 minutes", 9_000_000),
        ("1d", 86_400_000),
        ("1w", 604_800_000),
        ("PT2H30M", 9_000_000),
        ("pt1h", 3_600_000),
        ("P1DT0.5S", 86_400_500),
        ("PT0.123456789S", 123),
        ("PT0S", 0),
    ],
)
def test_a_length_of_time_in_milliseconds(text: str, milliseconds: int) -> None:
    assert duration_ms(text) == milliseconds


@pytest.mark.parametrize(
    "text",
    ["", "10", "-5 s", "10x", "5 parsecs", "m10", "1.5h", "10m ago", "P", "PT", "P1H", "P1DT", "\u0665m"],
)
def test_anything_else_is_none(text: str) -> None:
    assert duration_parts(text) is None
    assert duration_ms(text) is None


def test_its_parts_have_their_units_in_full() -> None:
    assert duration_parts("2h30m") == duration_parts("PT2H30M") == [(2, "hours"), (30, "minutes")]
    assert duration_parts("PT0.5S") == [(500_000, "microseconds")]
    assert duration_parts("PT0S") == [(0, "seconds")]


def test_iso_alone_can_be_asked_for() -> None:
    assert is_iso_duration("P1DT2H30M1.5S")
    assert not is_iso_duration("2h30m")
