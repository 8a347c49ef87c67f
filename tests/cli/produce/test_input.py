"""How the input of `mainstem produce` becomes messages."""

import io
from typing import Any

import pytest

from mainstem.cli.errors import CommandError
from mainstem.cli.output.message_json import OutgoingMessage
from mainstem.cli.produce.input import InputRules, read_messages
from mainstem.cli.typed.pairs import parse_pairs, unescape


def read(data: bytes, **changes: Any) -> list[OutgoingMessage]:
    rules = InputRules("text", None, None, None, [], -1)._replace(**changes)
    return list(read_messages(io.BytesIO(data), rules))


def test_each_line_is_a_message() -> None:
    assert [message.value for message in read(b"a\r\n\nlast")] == [b"a", b"", b"last"]


def test_a_separator_splits_key_and_value_once() -> None:
    assert [(m.key, m.value) for m in read(b"k:v:w\n:\n", key_separator=b":")] == [(b"k", b"v:w"), (b"", b"")]


def test_a_line_without_the_separator_is_an_error_that_names_it() -> None:
    with pytest.raises(CommandError, match="line 2 holds no key: ':' is not in it"):
        read(b"k:v\nplain\n", key_separator=b":")


def test_the_null_marker_makes_nulls() -> None:
    assert [(m.key, m.value) for m in read(b"-\n", null_marker=b"-")] == [(None, None)]
    assert [(m.key, m.value) for m in read(b"k:-\n", null_marker=b"-", key_separator=b":")] == [(b"k", None)]


def test_key_headers_and_partition_go_on_every_message() -> None:
    assert read(b"v\n", key=b"k", headers=[("h", b"1")], partition=2) == [
        OutgoingMessage(b"v", b"k", [("h", b"1")], 2)
    ]


def test_raw_input_is_one_message() -> None:
    assert [message.value for message in read(b"a\nb\0\n", format="raw")] == [b"a\nb\0\n"]
    assert read(b"", format="raw") == []


def test_json_input_is_a_message_per_line_and_forgets_where_it_came_from() -> None:
    messages = read(b'{"value": "v", "partition": 5}\n\n{"key": "k", "value": null}\n', format="json")
    assert messages == [OutgoingMessage(b"v"), OutgoingMessage(None, b"k")]


def test_pairs_keep_further_equals_signs_and_repetitions() -> None:
    assert parse_pairs(["a=b=c", "d=", "a=1"], "--header") == [("a", "b=c"), ("d", ""), ("a", "1")]
    with pytest.raises(CommandError, match="--header 'x' is not NAME=VALUE"):
        parse_pairs(["x"], "--header")


def test_separators_may_be_written_with_escapes() -> None:
    assert unescape(r"\t") == "\t"
    assert unescape("::") == "::"
