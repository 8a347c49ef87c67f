"""Subscriptions by regular expression: what matches, and what Kafka says of a pattern that is none."""

import subprocess
import sys

import pytest

from mainstem.coordinator.group.regex import compile_pattern
from mainstem.protocol.errors import ErrorCode, KafkaError

_NAMES = ("orders", "orders-eu", "payments", "__consumer_offsets")


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("orders", {"orders"}),
        ("orders.*", {"orders", "orders-eu"}),
        ("rders", set()),
        ("orders|payments", {"orders", "payments"}),
        ("(?i)PAYMENTS", {"payments"}),
        (".*", set(_NAMES)),
        ("[^_].*", {"orders", "orders-eu", "payments"}),
    ],
)
def test_a_pattern_matches_whole_names(pattern: str, expected: set[str]) -> None:
    assert {name for name in _NAMES if compile_pattern(pattern).matches(name)} == expected


# The words on the right are those of Apache Kafka 4.3 for the same pattern.
@pytest.mark.parametrize(
    ("pattern", "description"),
    [
        ("(", "missing closing )"),
        ("a)", "regexp/syntax: internal error"),
        ("[a", "missing closing ]"),
        ("[b-a]", "invalid character class range"),
        ("*", "missing argument to repetition operator"),
        ("a**", "invalid nested repetition operator"),
        ("a{1001}", "invalid repeat count"),
        ("a(?!b)", "invalid or unsupported Perl syntax"),
        ("(?P<a", "invalid named capture"),
        ("\\1", "invalid escape sequence"),
        ("\\", "trailing backslash at end of expression"),
    ],
)
def test_what_is_no_pattern(pattern: str, description: str) -> None:
    with pytest.raises(KafkaError) as refused:
        compile_pattern(pattern)
    assert refused.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert refused.value.message == (
        f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {description}."
    )


def test_a_pattern_that_would_stall_other_engines_is_quick() -> None:
    assert not compile_pattern("(a*)*b").matches("a" * 249)


@pytest.mark.parametrize(
    "pattern",
    [
        "a" * 32_768,
        "\u00e4" * 16_384,
        "\\pL" * 101,
        "\\PL" * 101,
        "a{2}" * 1001,
        "\\pL{900}",
        "(((a|b){1,30}x){1,30}.*)" * 40,
    ],
)
def test_a_pattern_too_large_for_any_subscription_is_refused(pattern: str) -> None:
    with pytest.raises(KafkaError) as refused:
        compile_pattern(pattern)
    assert refused.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("|".join(f"orders-{number}" for number in range(2500)), "orders-2499"),
        ("[a-zA-Z0-9._-]{1,249}", "a" * 249),
        (".{0,249}", "." * 249),
        ("a" * 249, "a" * 249),
        ("|".join(f"v{number}-[0-9]{{4}}" for number in range(900)), "v899-1234"),
    ],
)
def test_a_large_pattern_that_makes_sense_is_not(pattern: str, name: str) -> None:
    assert compile_pattern(pattern).matches(name)


def test_a_bad_pattern_says_nothing_on_its_own() -> None:
    script = (
        "from mainstem.coordinator.group.regex import compile_pattern\n"
        "try:\n    compile_pattern('(')\nexcept Exception as failure:\n    assert 'missing' in str(failure)\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout + result.stderr == ""


def test_the_library_is_loaded_at_the_first_pattern() -> None:
    script = "import sys, mainstem.coordinator.group.regex\nprint('re2' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout == "False\n"
