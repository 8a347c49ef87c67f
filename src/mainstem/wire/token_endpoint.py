"""Tokens from an endpoint of OAuth 2: the grant of client credentials (RFC 6749, section 4.4), as Kafka's
client asks for it.

An endpoint that cannot be reached, or is in trouble itself, is asked again for a while; one that refuses is
not. The client's secret is never in an error, whatever the endpoint says.
"""

from __future__ import annotations

import base64
import json
import random
import ssl
import time
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import quote_plus, urlencode, urlsplit

from mainstem.wire.backoff import Backoff
from mainstem.wire.connection import reason
from mainstem.wire.errors import SecurityError, TokenUnavailable
from mainstem.wire.options import TlsOptions
from mainstem.wire.tls import context_of
from mainstem.wire.tokens import Token, token_of

_ANSWER_BYTES_MAX = 1024 * 1024
_ERROR_CHARACTERS_MAX = 200
# Timeout, too many requests, and whatever is wrong with the endpoint itself.
_PASSING_STATUSES = frozenset({408, 429, 500, 502, 503, 504})


@dataclass(frozen=True)
class ClientCredentials:
    """A token for whoever knows the client's id and secret."""

    url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None = None
    tls: TlsOptions = field(default_factory=TlsOptions)
    quotes_credentials: bool = False  # sasl.oauthbearer.header.urlencode
    connect_timeout_ms: int = 10_000
    read_timeout_ms: int = 10_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 10_000  # as in Kafka's client, of all pauses together

    @property
    def place(self) -> str:
        """Without what may be a secret in the address."""
        parts = urlsplit(self.url)
        return f"the token endpoint {parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    def fetch(self) -> Token:
        backoff = Backoff(self.retry_backoff_ms, self.retry_backoff_max_ms, random.random)
        deadline = time.monotonic() + self.retry_backoff_max_ms / 1000
        while True:
            try:
                return self._attempt()
            except TokenUnavailable:
                pause_s = backoff.next_s()
                if time.monotonic() + pause_s > deadline:
                    raise
                time.sleep(pause_s)

    def _attempt(self) -> Token:
        try:
            status, body = self._ask()
        except ssl.SSLCertVerificationError as error:
            raise SecurityError(
                f"the certificate of {self.place} is not accepted: {error.verify_message}; "
                "name the certificate to trust with https.ca.location"
            ) from None
        except (OSError, HTTPException) as error:
            raise TokenUnavailable(f"{self.place} does not answer: {reason(error)}") from None
        document = _document(body)
        if status == 200:
            return self._token(document)
        problem = f"{self.place} gives no token: HTTP status {status}{self._explained(document)}"
        if status in _PASSING_STATUSES:
            raise TokenUnavailable(problem)
        raise SecurityError(
            f"{problem}; check sasl.oauthbearer.token.endpoint.url, and the client's id, secret and scope"
        )

    def _ask(self) -> tuple[int, bytes]:
        parts = urlsplit(self.url)
        host, timeout_s = parts.hostname or "", self.connect_timeout_ms / 1000
        if parts.scheme == "https":
            context = context_of(self.tls)
            connection: HTTPConnection = HTTPSConnection(host, parts.port, timeout=timeout_s, context=context)
        else:
            connection = HTTPConnection(host, parts.port, timeout=timeout_s)
        try:
            connection.connect()
            connection.sock.settimeout(self.read_timeout_ms / 1000)
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            connection.request("POST", target, self._form(), self._headers())
            response = connection.getresponse()
            return response.status, response.read(_ANSWER_BYTES_MAX)
        finally:
            connection.close()

    def _form(self) -> str:
        return urlencode({"grant_type": "client_credentials"} | ({"scope": self.scope} if self.scope else {}))

    def _headers(self) -> dict[str, str]:
        return {
            "Authorization": f"Basic {self._credentials()}",
            "Accept": "application/json",
            "Cache-Control": "no-cache",
            "Content-Type": "application/x-www-form-urlencoded",
        }

    def _credentials(self) -> str:
        given = self.client_id, self.client_secret
        if self.quotes_credentials:
            given = quote_plus(self.client_id), quote_plus(self.client_secret)
        return base64.b64encode(":".join(given).encode()).decode()

    def _token(self, document: dict[str, Any]) -> Token:
        text, lifetime_s = document.get("access_token"), document.get("expires_in")
        if not isinstance(text, str) or not text:
            raise SecurityError(f"{self.place} answers without an access_token")
        return token_of(text, lifetime_s if isinstance(lifetime_s, int | float) else None)

    def _explained(self, document: dict[str, Any]) -> str:
        """What RFC 6749 has for errors, and nothing else that the endpoint says."""
        told = [
            document[name] for name in ("error", "error_description") if isinstance(document.get(name), str)
        ]
        text = ": ".join(told)
        for secret in (self.client_secret, quote_plus(self.client_secret), self._credentials()):
            text = text.replace(secret, "...") if secret else text
        return f", {text[:_ERROR_CHARACTERS_MAX]}" if text else ""


def _document(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
