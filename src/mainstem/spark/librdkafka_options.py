"""Java's names of client options as librdkafka's, for the mechanisms that only librdkafka speaks.

The source and the sink share it. What has no counterpart there is refused, never passed over. Values of
secrets are in no error. Nothing of librdkafka is loaded here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from mainstem.nearest import did_you_mean
from mainstem.wire import InvalidOption, UnsupportedOption

FAST_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_MECHANISMS = (*FAST_MECHANISMS, "OAUTHBEARER", "GSSAPI")

_SAME = re.compile(
    r"bootstrap\.servers|client\.id|security\.protocol|sasl\.(mechanisms?|username|password|kerberos\..*"
    r"|oauthbearer\.(method|config|client\.id|client\.secret|scope|extensions|token\.endpoint\.url))"
    r"|ssl\.(ca\.location|ca\.pem|certificate\.location|certificate\.pem|key\.location|key\.pem|key\.password"
    r"|endpoint\.identification\.algorithm|cipher\.suites)|enable\.ssl\.certificate\.verification"
    r"|enable\.sasl\.oauthbearer\.unsecure\.jwt|https\.ca\.(location|pem)"
)
_RENAMED = {
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "sasl.oauthbearer.client.credentials.client.id": "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.credentials.client.secret": "sasl.oauthbearer.client.secret",
}
# In the options of a login module of Java.
_LOGIN = {
    "clientId": "sasl.oauthbearer.client.id",
    "clientSecret": "sasl.oauthbearer.client.secret",
    "scope": "sasl.oauthbearer.scope",
    "keyTab": "sasl.kerberos.keytab",
    "principal": "sasl.kerberos.principal",
    "serviceName": "sasl.kerberos.service.name",
    "username": "sasl.username",
    "password": "sasl.password",
}
# How Java renews its tickets and reads its stores; librdkafka goes about it in its own way.
_PASSED_OVER = re.compile(
    r"sasl\.kerberos\.(ticket\.renew\..*|min\.time\.before\.relogin)|sasl\.login\..*"
    r"|ssl\.(truststore|keystore)\.type|ssl\.protocol|ssl\.enabled\.protocols"
)
SECURITY_PREFIXES = ("sasl.", "ssl.", "security.", "enable.ssl.", "enable.sasl.", "https.")
_SECRET = re.compile(r"password|secret|\.pem$|oauthbearer\.(config|extensions)")
_SETTING = re.compile(r'(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))')


def sasl_mechanism(kafka: Mapping[str, str]) -> str | None:
    """None where nobody logs in. Java takes GSSAPI where nothing is said."""
    if not kafka.get("security.protocol", "").strip().upper().startswith("SASL"):
        return None
    return (kafka.get("sasl.mechanism") or kafka.get("sasl.mechanisms") or "GSSAPI").strip().upper()


def needs_librdkafka(kafka: Mapping[str, str]) -> bool:
    """Whether the SASL mechanism is one that the fast client does not speak."""
    return sasl_mechanism(kafka) not in (None, *FAST_MECHANISMS)


def without_security(kafka: Mapping[str, str]) -> dict[str, str]:
    """What the fast client, too, can be asked about."""
    return {name: value for name, value in kafka.items() if not name.startswith(SECURITY_PREFIXES)}


def without_secrets(text: str, settings: Mapping[str, object]) -> str:
    """librdkafka quotes options that it does not understand, and token endpoints may do as they like."""
    for name, value in settings.items():
        if value and _SECRET.search(name):
            text = text.replace(str(value), "...")
    return text.partition(" beginning at:")[0]


def librdkafka_options(kafka: Mapping[str, str]) -> dict[str, str]:
    """The options of any client; of others than security only what both clients have."""
    found: dict[str, str] = {"client.id": "mainstem"}
    for name, value in kafka.items():
        if _PASSED_OVER.fullmatch(name):
            continue
        if name == "sasl.jaas.config":
            found.update(_login(value))
        elif name in ("ssl.truststore.location", "ssl.keystore.location"):
            found.update(_store(name, value))
        elif name in _RENAMED:
            found[_RENAMED[name]] = value
        elif _SAME.fullmatch(name):
            found["sasl.mechanism" if name == "sasl.mechanisms" else name] = value
        elif name.startswith(SECURITY_PREFIXES):
            raise UnsupportedOption(
                f"{name} is not supported together with the SASL mechanism of this query; leave it out, or "
                "use librdkafka's name of it"
            )
    if (mechanism := sasl_mechanism(kafka)) is not None:
        found["sasl.mechanism"] = _checked(mechanism)
    if "sasl.oauthbearer.token.endpoint.url" in found:
        found.setdefault("sasl.oauthbearer.method", "oidc")
    return found


def _checked(mechanism: str) -> str:
    if mechanism not in _MECHANISMS:
        hint = did_you_mean(mechanism, _MECHANISMS) or f", it has to be one of {', '.join(_MECHANISMS)}"
        raise InvalidOption(f"sasl.mechanism is {mechanism!r}{hint}")
    return mechanism


def _login(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for match in _SETTING.finditer(text):
        name, value = match[1], match[2] if match[2] is not None else match[3]
        if name in _LOGIN:
            found[_LOGIN[name]] = re.sub(r"\\(.)", r"\1", value)
    return found


def _store(name: str, path: str) -> dict[str, str]:
    if not path.lower().endswith((".pem", ".crt", ".cer")):
        raise UnsupportedOption(
            f"{name} is not PEM: Java's key stores are not read here. Export it with keytool or "
            "openssl, and name the .pem file"
        )
    if name == "ssl.truststore.location":
        return {"ssl.ca.location": path}
    return {"ssl.certificate.location": path, "ssl.key.location": path}
