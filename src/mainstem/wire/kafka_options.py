"""Kafka's client options, as Java's client and librdkafka spell them, as the options of this client.

What changes who is trusted or who we are is honoured or refused, never passed over; options of other things
(polling, batching) are the business of whoever reads and writes. No value of a secret is ever in an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast, get_args

from mainstem.nearest import did_you_mean
from mainstem.wire.errors import Address, InvalidOption, UnsupportedOption
from mainstem.wire.jaas import PASSWORD_MODULES, parse_jaas
from mainstem.wire.options import (
    ClientOptions,
    OAuthBearerOptions,
    PasswordMechanism,
    SaslOptions,
    SecurityProtocol,
    TlsOptions,
)
from mainstem.wire.tls_options import TLS_OPTIONS, tls_options

_PASSWORD_OPTIONS = frozenset(
    {"sasl.mechanism", "sasl.mechanisms", "sasl.jaas.config", "sasl.username", "sasl.password"}
)
# Settings of mechanisms that are not used then, and of how Java logs in: nothing here depends on them.
_PASSED_OVER = re.compile(
    r"(enable\.)?sasl\.(kerberos|oauthbearer)\..*|https\..*"
    r"|sasl\.login\.((refresh|retry|connect|read)\..*|(connect|read)\.timeout\.ms)"
)
# Of all options that this client honours or refuses.
SECURITY_PREFIXES = ("sasl.", "ssl.", "security.", "enable.ssl.", "enable.sasl.", "https.")
_ADDRESS = re.compile(r"(?:[0-9a-zA-Z\-%._]*://)?(?:\[([0-9a-fA-F:.%]+)\]|([0-9a-zA-Z\-%._]+)):([0-9]+)")
_NUMBERS = {
    "request.timeout.ms": "request_timeout_ms",
    "default.api.timeout.ms": "api_timeout_ms",
    "retry.backoff.ms": "retry_backoff_ms",
    "retry.backoff.max.ms": "retry_backoff_max_ms",
    "socket.connection.setup.timeout.ms": "connect_timeout_ms",
}


def from_kafka_options(options: Mapping[str, str]) -> ClientOptions:
    """The options of a client; `options` has Kafka's names, without the prefix `kafka.`."""
    protocol = options.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in get_args(SecurityProtocol):
        known = ", ".join(get_args(SecurityProtocol))
        raise InvalidOption(f"security.protocol is {protocol!r}, it has to be one of {known}")
    is_oauth = protocol.startswith("SASL") and _mechanism(options) == "OAUTHBEARER"
    _refuse_unknown(options, is_oauth=is_oauth)
    return ClientOptions(
        bootstrap_servers=parse_addresses(options.get("bootstrap.servers", "")),
        client_id=options.get("client.id", "") or "mainstem",
        security_protocol=cast("SecurityProtocol", protocol),
        tls=tls_options(options) if protocol.endswith("SSL") else TlsOptions(),
        sasl=_sasl(options, _mechanism(options)) if protocol.startswith("SASL") else None,
        **{field: _number(options, name) for name, field in _NUMBERS.items() if name in options},
    )


def parse_addresses(text: str) -> tuple[Address, ...]:
    """`HOST:PORT,HOST:PORT` as Kafka reads it."""
    found: list[Address] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        match = _ADDRESS.fullmatch(part)
        if match is None or not 0 < int(match[3]) < 65536:
            raise InvalidOption(f"bootstrap.servers has {part!r}, which is not HOST:PORT")
        found.append((match[1] or match[2], int(match[3])))
    if not found:
        raise InvalidOption("bootstrap.servers is empty: name at least one broker as HOST:PORT")
    return tuple(dict.fromkeys(found))


def _refuse_unknown(options: Mapping[str, str], *, is_oauth: bool) -> None:
    known = _PASSWORD_OPTIONS | TLS_OPTIONS | {"security.protocol"}
    if is_oauth:
        from mainstem.wire.oauth_options import OAUTH_OPTIONS

        known |= OAUTH_OPTIONS
    for name in options:
        if name.startswith(SECURITY_PREFIXES) and name not in known and not _PASSED_OVER.fullmatch(name):
            raise UnsupportedOption(f"{name} is not supported{did_you_mean(name, known)}; leave it out")


def _number(options: Mapping[str, str], name: str) -> int:
    text = options[name].strip()
    if not text.isdecimal() or int(text) > 2**31 - 1:
        raise InvalidOption(f"{name} is {text!r}, it has to be a number of milliseconds")
    return int(text)


def _mechanism(options: Mapping[str, str]) -> str:
    # Java takes GSSAPI where nothing is said.
    return (options.get("sasl.mechanism") or options.get("sasl.mechanisms") or "GSSAPI").strip().upper()


def _sasl(options: Mapping[str, str], mechanism: str) -> SaslOptions | OAuthBearerOptions:
    if mechanism == "OAUTHBEARER":
        from mainstem.wire.oauth_options import oauth_options  # not at import: it needs HTTP and TLS

        return oauth_options(options)
    if mechanism not in get_args(PasswordMechanism):
        known = ", ".join(get_args(PasswordMechanism))
        raise UnsupportedOption(
            f"the SASL mechanism {mechanism} is not supported; set sasl.mechanism to {known} or OAUTHBEARER"
        )
    user, password = options.get("sasl.username"), options.get("sasl.password")
    if "sasl.jaas.config" in options:
        login = parse_jaas(options["sasl.jaas.config"], PASSWORD_MODULES)
        user, password = login.get("username") or user, login.get("password") or password
    if not user or password is None:
        raise InvalidOption(
            f"SASL {mechanism} needs a user and a password: set sasl.jaas.config to "
            '\'...LoginModule required username="..." password="...";\', or sasl.username and sasl.password'
        )
    return SaslOptions(cast("PasswordMechanism", mechanism), user, password)
