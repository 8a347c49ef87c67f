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
from mainstem.wire.jaas import parse_jaas
from mainstem.wire.options import ClientOptions, Mechanism, SaslOptions, SecurityProtocol, TlsOptions
from mainstem.wire.tls_options import TLS_OPTIONS, tls_options

_SASL_OPTIONS = frozenset(
    {"sasl.mechanism", "sasl.mechanisms", "sasl.jaas.config", "sasl.username", "sasl.password"}
)
# Settings of mechanisms that are not used then, and of how Java logs in: nothing here depends on them.
_PASSED_OVER = re.compile(
    r"sasl\.(kerberos|oauthbearer|login\.(refresh|retry|connect|read))\..*|sasl\.login\.(connect|read)\.timeout\.ms"
)
_ADDRESS = re.compile(r"(?:[0-9a-zA-Z\-%._]*://)?(?:\[([0-9a-fA-F:.%]+)\]|([0-9a-zA-Z\-%._]+)):([0-9]+)")
_INSTEAD = {
    "GSSAPI": "set sasl.mechanism to PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512",
    "OAUTHBEARER": "set sasl.mechanism to PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512",
}
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
    _refuse_unknown(options)
    return ClientOptions(
        bootstrap_servers=parse_addresses(options.get("bootstrap.servers", "")),
        client_id=options.get("client.id", "") or "mainstem",
        security_protocol=cast("SecurityProtocol", protocol),
        tls=tls_options(options) if protocol.endswith("SSL") else TlsOptions(),
        sasl=_sasl(options) if protocol.startswith("SASL") else None,
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


def _refuse_unknown(options: Mapping[str, str]) -> None:
    for name in options:
        if not name.startswith(("sasl.", "ssl.", "enable.ssl.", "security.providers")):
            continue
        known = _SASL_OPTIONS | TLS_OPTIONS
        if name not in known and not _PASSED_OVER.fullmatch(name):
            raise UnsupportedOption(f"{name} is not supported{did_you_mean(name, known)}; leave it out")


def _number(options: Mapping[str, str], name: str) -> int:
    text = options[name].strip()
    if not text.isdecimal() or int(text) > 2**31 - 1:
        raise InvalidOption(f"{name} is {text!r}, it has to be a number of milliseconds")
    return int(text)


def _sasl(options: Mapping[str, str]) -> SaslOptions:
    # Java takes GSSAPI where nothing is said.
    mechanism = (options.get("sasl.mechanism") or options.get("sasl.mechanisms") or "GSSAPI").upper()
    if mechanism not in get_args(Mechanism):
        instead = _INSTEAD.get(mechanism, _INSTEAD["GSSAPI"])
        raise UnsupportedOption(f"the SASL mechanism {mechanism} is not supported; {instead}")
    user, password = options.get("sasl.username"), options.get("sasl.password")
    if "sasl.jaas.config" in options:
        login = parse_jaas(options["sasl.jaas.config"])
        user, password = login.user or user, login.password or password
    if not user or password is None:
        raise InvalidOption(
            f"SASL {mechanism} needs a user and a password: set sasl.jaas.config to "
            '\'...LoginModule required username="..." password="...";\', or sasl.username and sasl.password'
        )
    return SaslOptions(cast("Mechanism", mechanism), user, password)
