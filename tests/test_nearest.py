"""A mistyped name finds the one that was meant."""

from mainstem.config.tables import BROKER_SETTINGS
from mainstem.nearest import did_you_mean, nearest_name, suggestion


def test_a_typing_error_finds_the_name() -> None:
    assert nearest_name("num.partition", BROKER_SETTINGS) == "num.partitions"
    assert nearest_name("log.retention.hour", BROKER_SETTINGS) == "log.retention.hours"
    assert did_you_mean("listners", BROKER_SETTINGS) == "; did you mean listeners?"


def test_nothing_is_suggested_when_nothing_is_near() -> None:
    assert nearest_name("zzzzzz", BROKER_SETTINGS) is None
    assert did_you_mean("zzzzzz", BROKER_SETTINGS) == ""
    assert suggestion("zzzzzz", BROKER_SETTINGS, "known are many") == "known are many"


def test_a_suggestion_is_a_sentence_with_the_name_as_it_is_written() -> None:
    assert suggestion("ORDER", ["orders", "Payments"]) == "did you mean orders?"
    assert suggestion("payment", ["orders", "Payments"]) == "did you mean Payments?"


def test_the_caller_says_how_near_it_has_to_be() -> None:
    assert nearest_name("num.io", BROKER_SETTINGS, cutoff=0.9) is None
