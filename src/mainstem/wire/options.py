"""How to reach a cluster: addresses, security, patience. Plain values that travel to Spark's workers.

No secret is ever part of a `repr`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from mainstem.wire.errors import Address

if TYPE_CHECKING:
    from mainstem.wire.tokens import TokenSource

SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
PasswordMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


@dataclass(frozen=True)
class TlsOptions:
    """Whom to trust, and who we are. Each is PEM text or, with `_file`, the path of a PEM file.

    Without any trusted certificate the system's are trusted.
    """

    trusted: str | None = None
    trusted_file: str | None = None
    certificate: str | None = None
    certificate_file: str | None = None
    key: str | None = field(default=None, repr=False)
    key_file: str | None = None
    key_password: str | None = field(default=None, repr=False)
    check_host_name: bool = True


@dataclass(frozen=True)
class SaslOptions:
    """A user and a password, and how to prove that the one has the other."""

    mechanism: PasswordMechanism
    user: str
    password: str = field(repr=False)


@dataclass(frozen=True)
class OAuthBearerOptions:
    """Where tokens come from, and names and values that are sent with them (RFC 7628, KIP-342)."""

    source: TokenSource
    extensions: tuple[tuple[str, str], ...] = ()
    mechanism: Literal["OAUTHBEARER"] = "OAUTHBEARER"


@dataclass(frozen=True)
class ClientOptions:
    """Everything that a client of a cluster has to know."""

    bootstrap_servers: tuple[Address, ...] = ()
    client_id: str = "mainstem"
    security_protocol: SecurityProtocol = "PLAINTEXT"
    tls: TlsOptions = TlsOptions()
    sasl: SaslOptions | OAuthBearerOptions | None = None
    connect_timeout_ms: int = 10_000
    request_timeout_ms: int = 30_000  # for one answer
    api_timeout_ms: int = 60_000  # for one call with all its attempts
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    # An answer that claims to be larger is taken for garbage. A record batch has to fit.
    answer_bytes_max: int = 128 * 1024 * 1024

    @property
    def uses_tls(self) -> bool:
        return self.security_protocol in ("SSL", "SASL_SSL")

    @property
    def uses_sasl(self) -> bool:
        return self.security_protocol in ("SASL_PLAINTEXT", "SASL_SSL")
