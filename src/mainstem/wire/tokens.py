"""Tokens for SASL OAUTHBEARER: where they come from, how long they count, and one of each in a process.

A source is a plain value that travels to Spark's workers; whoever has a way of their own to come by tokens
writes another class with `place` and `fetch`. A token is never in a `repr`, an error or a log.
"""

from __future__ import annotations

import base64
import binascii
import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

from mainstem.wire.errors import SecurityError, TokenUnavailable

logger = logging.getLogger(__name__)

# Kafka's sasl.login.refresh.window.factor: a token is renewed when so much of its time has passed.
_LIFETIME_USED = 0.8
_LOGINS_MAX = 64


@dataclass(frozen=True)
class Token:
    """As it goes to the broker. `expires_at` is in seconds since 1970, None where nobody knows."""

    text: str = field(repr=False)
    expires_at: float | None
    subject: str | None = None

    @property
    def who(self) -> str:
        return f"the token of {self.subject!r}" if self.subject else "the token"


class TokenSource(Protocol):
    """Where tokens come from. Equal sources share their token."""

    def __hash__(self) -> int: ...

    @property
    def place(self) -> str:
        """For a sentence."""

    def fetch(self) -> Token:
        """A new token; `TokenUnavailable` where another attempt may do, else `SecurityError`."""


@dataclass(frozen=True)
class TokenFile:
    """A file that somebody else keeps up to date."""

    path: str

    @property
    def place(self) -> str:
        return f"the file {self.path}"

    def fetch(self) -> Token:
        try:
            text = Path(self.path).read_text("ascii").strip()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it is no text of a token"
            raise SecurityError(f"no token can be read from {self.place}: {reason}") from None
        if not text:
            raise SecurityError(f"no token can be read from {self.place}: it is empty")
        return token_of(text)


@dataclass(frozen=True)
class UnsecuredToken:
    """A token that nobody signs, of these claims in JSON: for tests, with brokers that take such ones."""

    claims: str
    lifetime_s: int = 3600
    principal_claim: str = "sub"

    @property
    def place(self) -> str:
        return "the options of the unsecured token"

    def fetch(self) -> Token:
        now = time.time()
        claims = json.loads(self.claims) | {"iat": now, "exp": now + self.lifetime_s}
        text = ".".join(_encoded(part) for part in ({"alg": "none"}, claims)) + "."
        return Token(text, now + self.lifetime_s, claims.get(self.principal_claim))


def token_of(text: str, lifetime_s: float | None = None) -> Token:
    """A token with what its claims tell; where they cannot be read, it counts for `lifetime_s` from now."""
    claims = _claims(text)
    expires_at, subject = claims.get("exp"), claims.get("sub")
    if not isinstance(expires_at, int | float):
        expires_at = None if lifetime_s is None else time.time() + lifetime_s
    if not text.isascii() or not text.isprintable() or " " in text:
        raise SecurityError("that is no token: it has to be printable ASCII without blanks")
    return Token(text, expires_at, subject if isinstance(subject, str) else None)


class TokenLogin:
    """The newest token of a source, renewed before it runs out. For all threads."""

    def __init__(self, source: TokenSource, clock: Callable[[], float] = time.time) -> None:
        self._source = source
        self._clock = clock
        self._lock = Lock()
        self._token: Token | None = None
        self._renew_at = 0.0

    def token(self) -> Token:
        with self._lock:
            now = self._clock()
            if self._token is None or now >= self._renew_at:
                self._token = self._renewed(now)
            return self._token

    def forget(self) -> None:
        """A broker refused the token: the next connection shows another one."""
        with self._lock:
            self._token = None

    def _renewed(self, now: float) -> Token:
        try:
            token = self._source.fetch()
        except TokenUnavailable as error:
            former = self._token
            if former is None or former.expires_at is None or former.expires_at <= now:
                raise
            logger.warning("the token is not renewed yet: %s", error)
            return former
        if token.expires_at is None:
            self._renew_at = now
        elif token.expires_at <= now:
            when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(token.expires_at))
            raise SecurityError(
                f"{token.who} from {self._source.place} has expired at {when}: renew it, "
                "and check this machine's clock"
            )
        else:
            self._renew_at = now + (token.expires_at - now) * _LIFETIME_USED
        return token


@lru_cache(_LOGINS_MAX)
def login_of(source: TokenSource) -> TokenLogin:
    """The login that all connections of this process with such a source share."""
    return TokenLogin(source)


def _claims(text: str) -> dict[str, Any]:
    """Those of a JWT, unchecked: the broker checks them."""
    parts = text.split(".")
    if len(parts) != 3:
        return {}
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        return {}
    return claims if isinstance(claims, dict) else {}


def _encoded(part: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
