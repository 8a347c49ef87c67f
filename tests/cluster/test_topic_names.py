"""Topic names: what Kafka allows, and which pairs collide."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainstem.cluster.topic_names import can_collide, colliding_name, name_problem, normal_form

LEGAL = string.ascii_letters + string.digits + "._-"


@given(st.text(alphabet=LEGAL, min_size=1, max_size=249).filter(lambda name: name not in (".", "..")))
def test_any_short_text_of_legal_characters_is_a_name(name: str) -> None:
    assert name_problem(name) is None


@given(st.text(max_size=300))
def test_a_name_is_refused_exactly_when_kafka_refuses_it(name: str) -> None:
    legal = 1 <= len(name) <= 249 and name not in (".", "..") and all(c in LEGAL for c in name)
    assert (name_problem(name) is None) == legal


@pytest.mark.parametrize("name", ["", ".", "..", "a" * 250, "a b", "a/b", "ä", "a\n", "١", "a\0", "\u212a"])
def test_the_problem_is_told_in_a_sentence(name: str) -> None:
    problem = name_problem(name)
    assert problem is not None
    assert problem.endswith(".")


@given(st.text(alphabet="ab._", min_size=1, max_size=6), st.text(alphabet="ab._", min_size=1, max_size=6))
def test_names_collide_when_they_differ_only_in_dots_and_underscores(new: str, old: str) -> None:
    known = {normal_form(old): (old,)} if can_collide(old) else {}
    expected = old if new != old and new.replace("_", ".") == old.replace("_", ".") else None
    assert colliding_name(new, known) == expected
