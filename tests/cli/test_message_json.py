"""Messages as lines of JSON: what is printed can be sent again without loss."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainstem.cli import message_json
from mainstem.cli.errors import CommandError
from mainstem.cli.message_json import Headers, OutgoingMessage

content = st.none() | st.binary(max_size=40) | st.text(max_size=20).map(str.encode)


@given(key=content, value=content, headers=st.lists(st.tuples(st.text(max_size=8), content), max_size=3))
def test_a_message_survives_the_round_trip(key: bytes | None, value: bytes | None, headers: Headers) -> None:
    line = message_json.encode({"topic": "t", "partition": 3, "timestamp": 7}, key, value, headers)
    assert "\n" not in line
    assert message_json.decode(line.encode(), 1) == OutgoingMessage(value, key, headers, 3, 7)


def test_a_value_that_is_json_itself_is_sent_as_json_text() -> None:
    assert message_json.decode(b'{"value": {"a": [1, "\xc3\xa9"]}}', 1).value == '{"a": [1, "é"]}'.encode()


@pytest.mark.parametrize(
    "line", [b"hello", b"[]", b'{"value_base64": "%"}', b'{"headers": [1]}', b'{"partition": "x"}', b"\xff"]
)
def test_a_line_that_is_no_message_is_named(line: bytes) -> None:
    with pytest.raises(CommandError, match="line 12 is not a message in JSON"):
        message_json.decode(line, 12)
