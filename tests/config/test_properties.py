"""A properties file is read as Java reads it."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainstem.config.definition import ConfigError
from mainstem.config.properties import load_properties, parse_properties


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", {"a": "b"}),
        ("  a = b  ", {"a": "b  "}),
        ("a:b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("a\t:\t b", {"a": "b"}),
        ("a = = b", {"a": "= b"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("=b", {"": "b"}),
        ("# a=b\n! c=d\n\n  # e=f", {}),
        ("a=b # not a comment", {"a": "b # not a comment"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=b\r\nc=d\re=f", {"a": "b", "c": "d", "e": "f"}),
        ("a=one,\\\n    two", {"a": "one,two"}),
        ("a=one\\\n# two", {"a": "one# two"}),
        ("a=one\\\\\nb=c", {"a": "one\\", "b": "c"}),
        ("a=one\\", {"a": "one"}),
        ("\\\na=b", {"a": "b"}),
        ("a\\\nb=c", {"ab": "c"}),
        ("a\\=b\\:c\\ d=e", {"a=b:c d": "e"}),
        ("a=\\t\\n\\r\\f\\q\\\\", {"a": "\t\n\r\fq\\"}),
        ("a=\\u00e9\\u0041", {"a": "éA"}),
        ("a=\\ud83d\\ude00", {"a": "\U0001f600"}),
        ("listeners=PLAINTEXT://:9092", {"listeners": "PLAINTEXT://:9092"}),
    ],
)
def test_syntax(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\uwxyz", "x=1\na=\\u00 1"])
def test_a_broken_unicode_escape_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(ConfigError, match=f"line {len(text.splitlines())}"):
        parse_properties(text)


def _escaped(text: str) -> str:
    return "".join(f"\\u{unit:04x}" for unit in memoryview(text.encode("utf-16-le")).cast("H"))


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_whatever_is_escaped_comes_back(properties: dict[str, str]) -> None:
    text = "\n".join(f"{_escaped(name)}={_escaped(value)}" for name, value in properties.items())
    assert parse_properties(text) == properties


@given(st.text())
def test_any_text_is_read_or_refused_with_a_config_error(text: str) -> None:
    with suppress(ConfigError):
        parse_properties(text)


def test_a_file_may_be_utf8_or_latin1(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_bytes("broker.rack=café".encode())
    assert load_properties(path) == {"broker.rack": "café"}
    path.write_bytes("broker.rack=café".encode("latin-1"))
    assert load_properties(str(path)) == {"broker.rack": "café"}


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.properties: No such file"):
        load_properties(tmp_path / "nowhere.properties")


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "broken.properties"
    path.write_text("a=b\nc=\\u12")
    with pytest.raises(ConfigError, match=r"broken\.properties: line 2"):
        load_properties(path)
