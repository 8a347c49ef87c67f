"""The `sasl.oauthbearer.*` options of Java's client and of librdkafka, and those of the login module: where
tokens come from.

What would come by a token in another way (Java code, assertions, a cloud's metadata service) is refused with
what to set instead. What only brokers use, to check tokens, is passed over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from mainstem.nearest import did_you_mean
from mainstem.wire.errors import InvalidOption, UnsupportedOption
from mainstem.wire.jaas import TOKEN_MODULE, parse_jaas
from mainstem.wire.options import OAuthBearerOptions, TlsOptions
from mainstem.wire.tls_options import TLS_OPTIONS, tls_options
from mainstem.wire.token_endpoint import ClientCredentials
from mainstem.wire.tokens import TokenFile, TokenSource, UnsecuredToken

OAUTH_OPTIONS = frozenset(
    {
        "enable.sasl.oauthbearer.unsecure.jwt",
        "https.ca.location",
        "https.ca.pem",
        "sasl.login.callback.handler.class",
        "sasl.login.connect.timeout.ms",
        "sasl.login.read.timeout.ms",
        "sasl.login.retry.backoff.max.ms",
        "sasl.login.retry.backoff.ms",
        "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.client.id",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.config",
        "sasl.oauthbearer.extensions",
        "sasl.oauthbearer.grant.type",
        "sasl.oauthbearer.header.urlencode",
        "sasl.oauthbearer.jwt.retriever.class",
        "sasl.oauthbearer.method",
        "sasl.oauthbearer.scope",
        "sasl.oauthbearer.token.endpoint.url",
    }
)
_FOR_BROKERS = re.compile(
    r"sasl\.oauthbearer\.(jwks\..*|expected\..*|clock\.skew\.seconds|(scope|sub)\.claim\.name|jwt\.validator\.class)"
)
_ENDPOINT_EXAMPLE = (
    "set sasl.oauthbearer.token.endpoint.url to the https: address of a token endpoint, with "
    "sasl.oauthbearer.client.credentials.client.id and .client.secret, or to the file: address of a token"
)
_NUMBERS = {
    "sasl.login.connect.timeout.ms": "connect_timeout_ms",
    "sasl.login.read.timeout.ms": "read_timeout_ms",
    "sasl.login.retry.backoff.ms": "retry_backoff_ms",
    "sasl.login.retry.backoff.max.ms": "retry_backoff_max_ms",
}
# Options that leave no choice here, and the values for which there is none to be made.
_ONLY = {
    "sasl.login.callback.handler.class": (
        "OAuthBearerLoginCallbackHandler",
        "OAuthBearerUnsecuredLoginCallbackHandler",
    ),
    "sasl.oauthbearer.grant.type": ("client_credentials",),
    "sasl.oauthbearer.jwt.retriever.class": (
        "ClientCredentialsJwtRetriever",
        "DefaultJwtRetriever",
        "FileJwtRetriever",
    ),
    "sasl.oauthbearer.method": ("default", "oidc"),
}
_EXTENSION = re.compile(r"[A-Za-z]+")
_EXTENSION_VALUE = re.compile(r"[\x21-\x7E \t\r\n]+")


class _Unsecured(NamedTuple):
    """What a token is made of, and what goes with it."""

    source: UnsecuredToken
    extensions: dict[str, str]


def oauth_options(options: Mapping[str, str]) -> OAuthBearerOptions:
    """Where the token comes from, and the extensions that are sent with it."""
    _refuse(options)
    login = parse_jaas(options["sasl.jaas.config"], (TOKEN_MODULE,)) if "sasl.jaas.config" in options else {}
    extensions = _extensions(options, login)
    if url := options.get("sasl.oauthbearer.token.endpoint.url", "").strip():
        return OAuthBearerOptions(_source(url, options, login), _checked(extensions))
    if options.get("sasl.oauthbearer.method", "").lower() == "oidc":
        raise InvalidOption(f"sasl.oauthbearer.method oidc needs a token endpoint: {_ENDPOINT_EXAMPLE}")
    unsecured = _from_login(login) or _from_config(options)
    if unsecured is None:
        raise InvalidOption(f"SASL OAUTHBEARER needs a token: {_ENDPOINT_EXAMPLE}")
    return OAuthBearerOptions(unsecured.source, _checked(extensions | unsecured.extensions))


def _refuse(options: Mapping[str, str]) -> None:
    for name in options:
        ours = name.startswith(("sasl.oauthbearer.", "enable.sasl.", "https."))
        if ours and name not in OAUTH_OPTIONS and not _FOR_BROKERS.fullmatch(name):
            raise UnsupportedOption(
                f"{name} is not supported{did_you_mean(name, OAUTH_OPTIONS)}; leave it out, and "
                f"{_ENDPOINT_EXAMPLE}"
            )
    for name, allowed in _ONLY.items():
        value = options.get(name, allowed[0]).rpartition(".")[2]
        if value.lower() not in {each.lower() for each in allowed}:
            raise UnsupportedOption(
                f"{name} is {options[name]!r}, which is not supported; leave it out, and {_ENDPOINT_EXAMPLE}"
            )


def _source(url: str, options: Mapping[str, str], login: Mapping[str, str]) -> TokenSource:
    parts = urlsplit(url)
    if parts.scheme == "file":
        return TokenFile(unquote(parts.path))
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidOption(
            "sasl.oauthbearer.token.endpoint.url has to be an address with https:, http: or file:"
        )
    client_id = login.get("clientId") or _first(options, "client.credentials.client.id", "client.id")
    secret = login.get("clientSecret") or _first(options, "client.credentials.client.secret", "client.secret")
    if not client_id or not secret:
        raise InvalidOption(
            "a token endpoint wants to know the client: set sasl.oauthbearer.client.credentials.client.id "
            "and sasl.oauthbearer.client.credentials.client.secret, or clientId and clientSecret in "
            "sasl.jaas.config"
        )
    return ClientCredentials(
        url,
        client_id,
        secret,
        login.get("scope") or _first(options, "scope"),
        _endpoint_tls(options, login),
        options.get("sasl.oauthbearer.header.urlencode", "false").strip().lower() == "true",
        **{field: _number(options, name) for name, field in _NUMBERS.items() if name in options},
    )


def _first(options: Mapping[str, str], *names: str) -> str | None:
    return next(
        (value for name in names if (value := options.get(f"sasl.oauthbearer.{name}", "").strip())), None
    )


def _number(options: Mapping[str, str], name: str) -> int:
    text = options[name].strip()
    if not text.isdecimal() or not 0 < int(text) < 2**31:
        raise InvalidOption(f"{name} is {text!r}, it has to be a number of milliseconds")
    return int(text)


def _endpoint_tls(options: Mapping[str, str], login: Mapping[str, str]) -> TlsOptions:
    """As in Java's client, the options `ssl.*` of the login module are those of the endpoint."""
    given = {name: value for name, value in login.items() if name in TLS_OPTIONS}
    for name in ("location", "pem"):
        if value := options.get(f"https.ca.{name}"):
            given[f"ssl.ca.{name}"] = value
    return tls_options(given)


def _extensions(options: Mapping[str, str], login: Mapping[str, str]) -> dict[str, str]:
    found = {
        name.removeprefix("extension_"): value
        for name, value in login.items()
        if name.startswith("extension_")
    }
    for part in filter(None, options.get("sasl.oauthbearer.extensions", "").split(",")):
        name, _, value = part.partition("=")
        found[name.strip()] = value
    return found


def _checked(extensions: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    for name, value in extensions.items():
        if not _EXTENSION.fullmatch(name) or name == "auth" or not _EXTENSION_VALUE.fullmatch(value):
            raise InvalidOption(
                f"the SASL extension {name!r} cannot be sent: its name has to be of letters and not auth, "
                "its value of printable ASCII"
            )
    return tuple(extensions.items())


def _from_login(login: Mapping[str, str]) -> _Unsecured | None:
    """Java's OAuthBearerUnsecuredLoginCallbackHandler."""
    given = {
        name.removeprefix("unsecuredLogin"): value
        for name, value in login.items()
        if name.startswith("unsecuredLogin")
    }
    if not given:
        return None
    claims: dict[str, object] = {}
    extensions: dict[str, str] = {}
    for name, value in given.items():
        kind, _, claim = name.partition("_")
        if kind == "StringClaim":
            claims[claim] = value
        elif kind == "NumberClaim":
            claims[claim] = _claimed_number(name, value)
        elif kind == "ListClaim":
            claims[claim] = value[1:].split(value[0]) if value else []
        elif kind == "Extension":
            extensions[claim] = value
    principal = given.get("PrincipalClaimName", "sub")
    if not isinstance(claims.get(principal), str):
        raise InvalidOption(
            f"an unsecured token needs its principal: set unsecuredLoginStringClaim_{principal} in "
            "sasl.jaas.config"
        )
    lifetime_s = _seconds("unsecuredLoginLifetimeSeconds", given.get("LifetimeSeconds", "3600"))
    return _Unsecured(UnsecuredToken(json.dumps(claims), lifetime_s, principal), extensions)


def _from_config(options: Mapping[str, str]) -> _Unsecured | None:
    """librdkafka's sasl.oauthbearer.config."""
    if options.get("enable.sasl.oauthbearer.unsecure.jwt", "").strip().lower() != "true":
        return None
    given: dict[str, str] = {}
    for part in options.get("sasl.oauthbearer.config", "").split():
        name, sign, value = part.partition("=")
        if not sign:
            raise InvalidOption("sasl.oauthbearer.config has to be of NAME=VALUE with blanks between them")
        given[name] = value
    principal = given.get("principalClaimName", "sub")
    if not given.get("principal"):
        raise InvalidOption("sasl.oauthbearer.config names no principal: write principal=NAME in it")
    claims: dict[str, object] = {principal: given["principal"]}
    if scope := given.get("scope"):
        claims[given.get("scopeClaimName", "scope")] = scope.split(",")
    extensions = {
        name.removeprefix("extension_"): value
        for name, value in given.items()
        if name.startswith("extension_")
    }
    lifetime_s = _seconds("lifeSeconds", given.get("lifeSeconds", "3600"))
    return _Unsecured(UnsecuredToken(json.dumps(claims), lifetime_s, principal), extensions)


def _claimed_number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidOption(f"unsecuredLogin{name} is {text!r}, it has to be a number") from None


def _seconds(name: str, text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 2**31:
        raise InvalidOption(f"{name} is {text!r}, it has to be a number of seconds")
    return int(text)
