"""Proving who we are: SASL's mechanisms as messages to send and answers to take, without any I/O, and what a
broker's refusal means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from mainstem.protocol.apis.k17_sasl_handshake import SaslHandshakeResponse
from mainstem.protocol.apis.k36_sasl_authenticate import SaslAuthenticateResponse
from mainstem.protocol.errors import ErrorCode
from mainstem.wire.errors import SecurityError, error_code
from mainstem.wire.options import OAuthBearerOptions, SaslOptions

if TYPE_CHECKING:
    from mainstem.wire.tokens import Token


class Mechanism(Protocol):
    """One authentication on one connection."""

    name: str
    who: str  # for errors, and without a secret

    def first(self) -> bytes: ...

    def next(self, answer: bytes) -> bytes | None:
        """The message that follows an answer of the broker; None when it is done. `SecurityError` where the
        broker is not to be trusted.
        """


class Plain:
    """RFC 4616."""

    name = "PLAIN"

    def __init__(self, user: str, password: str) -> None:
        self.who = f"user {user!r}"
        self._message = b"\0" + user.encode() + b"\0" + password.encode()

    def first(self) -> bytes:
        return self._message

    def next(self, answer: bytes) -> None:
        return None


class OAuthBearer:
    """RFC 7628: a token, which the broker takes, or refuses with a status in JSON."""

    name = "OAUTHBEARER"

    def __init__(self, token: Token, extensions: tuple[tuple[str, str], ...]) -> None:
        self.who = token.who
        parts = [f"auth=Bearer {token.text}", *(f"{name}={value}" for name, value in extensions)]
        self._message = "".join(("n,,\x01", *(f"{part}\x01" for part in parts), "\x01")).encode()
        self._is_refused = False

    def first(self) -> bytes:
        return self._message

    def next(self, answer: bytes) -> bytes | None:
        """A broker that refuses wants its status acknowledged before it says so in its own error."""
        if self._is_refused:
            raise SecurityError(f"the broker refused {self.who}, and then did not say so")
        if not answer:
            return None
        self._is_refused = True
        return b"\x01"


def mechanism_of(options: SaslOptions | OAuthBearerOptions) -> Mechanism:
    """What these options want, for one connection. A token may have to be asked for, which takes time."""
    if isinstance(options, OAuthBearerOptions):
        from mainstem.wire.tokens import login_of

        return OAuthBearer(login_of(options.source).token(), options.extensions)
    if options.mechanism == "PLAIN":
        return Plain(options.user, options.password)
    from mainstem.wire.scram import ScramClient  # not at import: few connections need its hashes

    return ScramClient(options.mechanism, options.user, options.password)


def refused_handshake(address: str, mechanism: Mechanism, answer: SaslHandshakeResponse) -> str:
    if answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        return (
            f"the broker at {address} does not take SASL {mechanism.name}; "
            f"set sasl.mechanism to one of {', '.join(answer.mechanisms) or 'none'}"
        )
    if answer.error_code == ErrorCode.ILLEGAL_SASL_STATE:
        return (
            f"the broker at {address} has no SASL on this port; "
            "set security.protocol to PLAINTEXT or SSL, or name another port"
        )
    return f"the broker at {address} refused SASL {mechanism.name}: {error_code(answer.error_code).message}"


def refused_authentication(address: str, mechanism: Mechanism, answer: SaslAuthenticateResponse) -> str:
    reason = answer.error_message or error_code(answer.error_code).message
    return f"the broker at {address} does not accept {mechanism.who} with SASL {mechanism.name}: {reason}"
