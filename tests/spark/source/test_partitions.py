"""Offsets are written and read as Spark's own connector does."""

import json

import pytest

from mainstem.spark.source.partitions import from_json, names, parse_assignment, parse_by_partition, to_json


def test_offsets_are_the_connectors_json() -> None:
    offsets = {("topicB", 0): -2, ("topicA", 10): 5, ("topicA", 2): 23}
    text = json.dumps(to_json(offsets), separators=(",", ":"))
    assert text == '{"topicA":{"2":23,"10":5},"topicB":{"0":-2}}'
    assert parse_by_partition(text) == offsets == from_json(json.loads(text))


def test_an_assignment_is_the_connectors_json() -> None:
    assert parse_assignment('{"b":[1,0,1],"a":[]}') == (("b", 0), ("b", 1))


@pytest.mark.parametrize("text", ["", "[]", '{"a":1}', '{"a":{"x":1}}', '{"a":{"0":1.5}}'])
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_by_partition(text)


def test_names_are_short() -> None:
    assert names([("t", 1), ("t", 0)]) == "t-0, t-1"
    assert names([]) == "none"
    assert names(("t", number) for number in range(20)).endswith("t-11 and 8 more")
