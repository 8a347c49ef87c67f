"""Each rule accepts what Kafka accepts and says in words what is wrong with the rest."""

import pytest

from mainstem.config.validators import (
    EachOf,
    Items,
    NonEmpty,
    OffsetReset,
    OneOf,
    Range,
    ThrottledReplicas,
    Validator,
    at_least,
    between,
)

POLICIES = ("compact", "delete")


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        (at_least(0), 0),
        (at_least(0), None),
        (between(0, 1), 0.5),
        (between(0, 1), 1),
        (Range(1, 9, also=-1), -1),
        (OneOf(POLICIES), "compact"),
        (OneOf(("disabled",), ignore_case=True), "Disabled"),
        (EachOf(POLICIES), ()),
        (EachOf(POLICIES), ("delete", "compact")),
        (EachOf(POLICIES, distinct=False), ("delete", "delete")),
        (Items(), ()),
        (Items(may_be_empty=False), ("a", "b")),
        (NonEmpty(), "x"),
        (NonEmpty(), None),
        (OffsetReset(), "earliest"),
        (OffsetReset(), "latest"),
        (OffsetReset(), "by_duration:P3D"),
        (OffsetReset(), "by_duration:PT36H"),
        (OffsetReset(), "by_duration:P1DT2H30M1.5S"),
        (OffsetReset(), "by_duration:PT0S"),
        (ThrottledReplicas(), ()),
        (ThrottledReplicas(), ("*",)),
        (ThrottledReplicas(), ("0:1", "12:3")),
    ],
)
def test_good_values_pass(rule: Validator, value: object) -> None:
    assert rule.problem(value) is None


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        (at_least(0), -1),
        (between(0, 1), 1.5),
        (Range(1, 9, also=-1), 0),
        (OneOf(POLICIES), "Compact"),
        (EachOf(POLICIES), ("delete", "delete")),
        (EachOf(POLICIES), ("delete", "")),
        (EachOf(POLICIES, may_be_empty=False), ()),
        (Items(), ("a", "")),
        (Items(), ("a", "a")),
        (Items(may_be_empty=False), ()),
        (NonEmpty(), ""),
        (OffsetReset(), "none"),
        (OffsetReset(), "Earliest"),
        (OffsetReset(), ""),
        (OffsetReset(), "by_duration"),
        (OffsetReset(), "by_duration:"),
        (OffsetReset(), "by_duration:P"),
        (OffsetReset(), "by_duration:PT"),
        (OffsetReset(), "by_duration:P1DT"),
        (OffsetReset(), "by_duration:-PT1H"),
        (OffsetReset(), "by_duration:PT1"),
        (OffsetReset(), "by_duration:P1Y"),
        (ThrottledReplicas(), ("none",)),
        (ThrottledReplicas(), ("*", "0:1")),
        (ThrottledReplicas(), ("0:",)),
    ],
)
def test_bad_values_have_a_problem(rule: Validator, value: object) -> None:
    assert rule.problem(value)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (at_least(4), "4 or more"),
        (between(1, 17), "1 to 17"),
        (Range(1, 9, also=-1), "1 to 9, or -1"),
        (OneOf(POLICIES), "compact, delete"),
        (EachOf(POLICIES), "a list of compact, delete"),
    ],
)
def test_a_rule_says_what_it_allows(rule: Validator, words: str) -> None:
    assert rule.allowed == words
