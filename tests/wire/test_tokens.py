"""Where tokens come from, how long they count, and that nobody but the broker sees them."""

import json
import logging
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mainstem.wire import SecurityError
from mainstem.wire.errors import TokenUnavailable
from mainstem.wire.mechanisms import OAuthBearer
from mainstem.wire.tokens import Token, TokenFile, TokenLogin, token_of
from tests.wire.token_logins import token_text


class Source:
    """Gives what a test wants, one after the other."""

    place = "a test"

    def __init__(self, *outcomes: Token | Exception) -> None:
        self._outcomes: Iterator[Token | Exception] = iter(outcomes)

    def fetch(self) -> Token:
        outcome = next(self._outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


class Clock:
    """Set by the test."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def login_of(*outcomes: Token | Exception) -> tuple[TokenLogin, Clock]:
    clock = Clock()
    return TokenLogin(Source(*outcomes), clock), clock


def test_a_token_is_used_again_and_renewed_before_it_runs_out() -> None:
    login, clock = login_of(Token("first", 100.0), Token("second", 200.0))
    assert login.token().text == "first"
    clock.now = 79.9
    assert login.token().text == "first"
    clock.now = 80.0
    assert login.token().text == "second"


def test_a_token_of_unknown_length_of_life_is_used_once() -> None:
    login, _ = login_of(Token("first", None), Token("second", None))
    assert [login.token().text, login.token().text] == ["first", "second"]


def test_a_refused_token_is_not_shown_again() -> None:
    login, _ = login_of(Token("first", 100.0), Token("second", 100.0))
    assert login.token().text == "first"
    login.forget()
    assert login.token().text == "second"


def test_a_token_that_cannot_be_renewed_is_used_to_its_end(caplog: pytest.LogCaptureFixture) -> None:
    trouble = TokenUnavailable("the endpoint is being restarted")
    login, clock = login_of(Token("first", 100.0), trouble, trouble, Token("second", 300.0))
    assert login.token().text == "first"
    clock.now = 90.0
    with caplog.at_level(logging.WARNING):
        assert login.token().text == "first"
    assert "the token is not renewed yet: the endpoint is being restarted" in caplog.text
    clock.now = 100.0
    with pytest.raises(TokenUnavailable):
        login.token()
    assert login.token().text == "second"


def test_a_token_that_has_expired_is_named_and_not_sent() -> None:
    login, clock = login_of(Token("hush", 86_400.0, "alice"))
    clock.now = 86_400.0
    with pytest.raises(SecurityError) as raised:
        login.token()
    assert str(raised.value) == (
        "the token of 'alice' from a test has expired at 1970-01-02 00:00:00 UTC: renew it, "
        "and check this machine's clock"
    )


def test_what_a_token_tells_of_itself() -> None:
    token = token_of(token_text(subject="bob"), 5)
    assert token.subject == "bob"
    assert token.expires_at is not None
    assert token.expires_at > time.time() + 3000
    assert token.text not in repr(token)
    opaque = token_of("0123-abc", 5)
    assert opaque.expires_at is not None
    assert opaque.expires_at <= time.time() + 5
    assert token_of("0123-abc").expires_at is None
    for text in ("a.b.c", "a.e30.c", "a.W10.c", "...", "a.!.c"):
        assert token_of(text) == Token(text, None)


@pytest.mark.parametrize("text", ["two words", "line\nbreak", "ümlaut", "zero\x01one"])
def test_what_cannot_be_a_token_is_not_sent(text: str) -> None:
    with pytest.raises(SecurityError, match="that is no token") as raised:
        token_of(text)
    assert text not in str(raised.value)


def test_a_file_is_read_again_when_its_token_is_to_be_renewed(tmp_path: Path) -> None:
    path = tmp_path / "token"
    login = TokenLogin(TokenFile(str(path)))
    with pytest.raises(SecurityError, match=r"no token can be read from the file .*: No such file"):
        login.token()
    path.write_text(" \n")
    with pytest.raises(SecurityError, match="it is empty"):
        login.token()
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(SecurityError, match="it is no text of a token"):
        login.token()
    path.write_text(f"{token_text(subject='first')}\n")
    assert login.token().subject == "first"
    path.write_text(token_text(subject="second"))
    assert login.token().subject == "first"
    login.forget()
    assert login.token().subject == "second"


def test_the_messages_of_the_mechanism() -> None:
    mechanism = OAuthBearer(Token("abc", None, "alice"), (("pool", "p 1"),))
    assert mechanism.first() == b"n,,\x01auth=Bearer abc\x01pool=p 1\x01\x01"
    assert mechanism.next(b"") is None
    assert mechanism.next(json.dumps({"status": "invalid_token"}).encode()) == b"\x01"
    with pytest.raises(SecurityError, match="the broker refused the token of 'alice'"):
        mechanism.next(b"")
