"""Points in time as people type them."""

from datetime import UTC, datetime

import pytest

from mainstem.cli.errors import CommandError
from mainstem.cli.typed.times import iso_time, parse_time_ms

NOW_MS = 1_800_000_000_000


@pytest.mark.parametrize(
    ("text", "before_ms"),
    [
        ("0s", 0),
        ("250ms", 250),
        ("10m", 600_000),
        ("2h30m", 9_000_000),
        ("1d", 86_400_000),
        ("1w", 604_800_000),
        ("PT2H30M", 9_000_000),
        ("P1DT0.5S", 86_400_500),
    ],
)
def test_a_duration_means_that_long_ago(text: str, before_ms: int) -> None:
    assert parse_time_ms(text, NOW_MS) == NOW_MS - before_ms


def test_a_long_number_is_milliseconds() -> None:
    assert parse_time_ms("1794769320354", NOW_MS) == 1794769320354


@pytest.mark.parametrize(
    "text", ["2026-01-31T12:00:00+00:00", "2026-01-31T12:00:00Z", "2026-01-31T14:00+02:00"]
)
def test_an_iso_date_with_its_offset(text: str) -> None:
    expected = datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert parse_time_ms(text, NOW_MS) == int(expected.timestamp() * 1000)


def test_an_iso_date_without_offset_is_local_time() -> None:
    assert parse_time_ms("2026-01-31T12:00:00", NOW_MS) == int(datetime(2026, 1, 31, 12).timestamp() * 1000)


@pytest.mark.parametrize("text", ["", "soon", "10", "10x", "m10", "2026-13-01", "10m ago", "P", "PT", "P1H"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(CommandError, match="is not a time"):
        parse_time_ms(text, NOW_MS)


def test_what_is_printed_can_be_read_again() -> None:
    assert parse_time_ms(iso_time(NOW_MS + 123), 0) == NOW_MS + 123
