"""Messages as lines of JSON: what is printed can be sent again without loss."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainstem.cli.errors import CommandError
from mainstem.cli.output import message_json
from mainstem.cli.output.message_json import Headers, OutgoingMessage

content = st.none() | st.binary(max_size=40) | st.text(max_size=20).map(str.encode)


@given(key=content, value=content, headers=st.lists(st.tuples(st.text(max_size=8), content), max_size=3))
def test_a_message_survives_the_round_trip(key: bytes | None, value: bytes | None, headers: Headers) -> None:
    line = message_json.encode({"topic": "t", "partition": 3, "timestamp": 7}, key, value, headers)
    assert "\n" not in line
    assert message_json.decode(line.encode(), 1) == OutgoingMessage(value, key, headers, timestamp_ms=7)


def test_a_value_that_is_json_itself_is_sent_as_json_text() -> None:
    assert message_json.decode(b'{"value": {"a": [1, "\xc3\xa9"]}}', 1).value == '{"a": [1, "é"]}'.encode()


@pytest.mark.parametrize("line", [b"hello", b"[]", b'{"value_base64": "%"}', b"\xff", b"[" * 100_000])
def test_a_line_that_is_no_message_is_named(line: bytes) -> None:
    with pytest.raises(CommandError, match="line 12 is not a message in JSON"):
        message_json.decode(line, 12)


def test_everything_that_is_printed_can_be_read_a_missing_timestamp_too() -> None:
    fields = {"topic": "t", "partition": 3, "offset": 9, "timestamp": None}
    line = message_json.encode(fields, b"k", None, [("h", b"\xff"), ("h", None)])
    assert message_json.decode(line.encode(), 1) == OutgoingMessage(None, b"k", [("h", b"\xff"), ("h", None)])


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"vaule": "v"}', "there is no field 'vaule'; did you mean value?"),
        ('{"key": "k"}', "value is missing"),
        ('{"value": "v", "value_base64": "dg=="}', "value and value_base64 exclude each other"),
        (
            '{"value": "v", "timestamp": 123456789012345678901234}',
            "timestamp is not a number of milliseconds",
        ),
        ('{"value": "v", "timestamp": "now"}', "timestamp is not a number of milliseconds"),
        ('{"value": "v", "headers": {"name": "h", "value": "1"}}', "headers is not a list"),
        ('{"value": "v", "headers": [1]}', "it is not an object"),
        ('{"value": "v", "headers": [{"name": "h"}]}', "value is missing"),
        ('{"value": "v", "headers": [{"value": "1"}]}', "a header has no name"),
        ('{"value": "v", "headers": [{"name": "h", "val": "1"}]}', "there is no field 'val'"),
    ],
)
def test_what_is_wrong_with_a_message_is_said(line: str, problem: str) -> None:
    with pytest.raises(CommandError) as raised:
        message_json.decode(line.encode(), 12)
    assert raised.value.message.startswith(f"line 12 is not a message in JSON: {problem}")
    assert ("headers" in str(raised.value.hint)) == ("header" in line)
