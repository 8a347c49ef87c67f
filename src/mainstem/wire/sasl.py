"""Proving who we are on a fresh connection: SaslHandshake, then the messages of the mechanism."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainstem.protocol.apis.k17_sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from mainstem.protocol.apis.k36_sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from mainstem.protocol.errors import ErrorCode
from mainstem.wire.errors import SecurityError, error_code
from mainstem.wire.options import SaslOptions
from mainstem.wire.scram import ScramClient

if TYPE_CHECKING:
    from mainstem.wire.connection import Connection


def authenticate(connection: Connection, options: SaslOptions) -> float | None:
    """Authenticate; for how many seconds it counts, None for as long as the connection lasts."""
    _handshake(connection, options.mechanism)
    if options.mechanism == "PLAIN":
        message = b"\0" + options.user.encode() + b"\0" + options.password.encode()
        answer = _step(connection, options, message)
    else:
        scram = ScramClient(options.mechanism, options.user, options.password)
        answer = _step(connection, options, scram.first())
        answer = _step(connection, options, scram.final(answer.auth_bytes))
        scram.check(answer.auth_bytes)
    return answer.session_lifetime_ms / 1000 if answer.session_lifetime_ms > 0 else None


def _handshake(connection: Connection, mechanism: str) -> None:
    answer: SaslHandshakeResponse = connection.call(SaslHandshakeRequest(mechanism))
    if answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        raise SecurityError(
            f"the broker at {connection.address} does not take SASL {mechanism}; "
            f"set sasl.mechanism to one of {', '.join(answer.mechanisms) or 'none'}"
        )
    if answer.error_code == ErrorCode.ILLEGAL_SASL_STATE:
        raise SecurityError(
            f"the broker at {connection.address} has no SASL on this port; "
            "set security.protocol to PLAINTEXT or SSL, or name another port"
        )
    if answer.error_code != ErrorCode.NONE:
        raise SecurityError(
            f"the broker at {connection.address} refused SASL {mechanism}: "
            f"{error_code(answer.error_code).message}"
        )


def _step(connection: Connection, options: SaslOptions, message: bytes) -> SaslAuthenticateResponse:
    answer: SaslAuthenticateResponse = connection.call(SaslAuthenticateRequest(message))
    if answer.error_code != ErrorCode.NONE:
        reason = answer.error_message or error_code(answer.error_code).message
        raise SecurityError(
            f"the broker at {connection.address} does not accept user {options.user!r} "
            f"with SASL {options.mechanism}: {reason}"
        )
    return answer
