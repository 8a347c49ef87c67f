"""Java's and librdkafka's `ssl.*` options as the trusted certificates, the own certificate and its key.

Only PEM is read: Java's key stores are refused with the command that turns them into PEM.
"""

from __future__ import annotations

from collections.abc import Mapping

from mainstem.wire.errors import InvalidOption, UnsupportedOption
from mainstem.wire.options import TlsOptions

TLS_OPTIONS = frozenset(
    {
        "ssl.truststore.type",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.certificates",
        "ssl.keystore.type",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.key",
        "ssl.keystore.certificate.chain",
        "ssl.key.password",
        "ssl.ca.location",
        "ssl.ca.pem",
        "ssl.certificate.location",
        "ssl.certificate.pem",
        "ssl.key.location",
        "ssl.key.pem",
        "ssl.endpoint.identification.algorithm",
        "ssl.protocol",
        "ssl.enabled.protocols",
        "enable.ssl.certificate.verification",
    }
)
_PEM_SUFFIXES = (".pem", ".crt", ".cer", ".key")
_MODERN = frozenset({"TLS", "TLSV1.2", "TLSV1.3"})
_TO_PEM = {
    "ssl.truststore": (
        "keytool -list -rfc -keystore STORE > trusted.pem, then set ssl.truststore.type to PEM and "
        "ssl.truststore.location to trusted.pem"
    ),
    "ssl.keystore": (
        "keytool -importkeystore -srckeystore STORE -destkeystore store.p12 -deststoretype PKCS12 and "
        "openssl pkcs12 -in store.p12 -out own.pem -nodes, then set ssl.keystore.type to PEM and "
        "ssl.keystore.location to own.pem"
    ),
}


def tls_options(options: Mapping[str, str]) -> TlsOptions:
    """What TLS needs; files are named here and read where the connection is made."""
    if options.get("enable.ssl.certificate.verification", "true").strip().lower() != "true":
        raise UnsupportedOption(
            "certificates are always verified: leave enable.ssl.certificate.verification out, and name the "
            "certificate to trust with ssl.ca.location"
        )
    versions = f"{options.get('ssl.protocol', 'TLS')},{options.get('ssl.enabled.protocols', 'TLS')}"
    if not any(version.strip().upper() in _MODERN for version in versions.split(",")):
        raise UnsupportedOption(
            "TLS 1.2 and 1.3 are spoken: leave ssl.protocol and ssl.enabled.protocols out"
        )
    own = _pem_store(options, "ssl.keystore")
    certificate, key = _own_pem(options)
    return TlsOptions(
        trusted=_text(options, "ssl.truststore.certificates", "ssl.ca.pem"),
        trusted_file=_pem_store(options, "ssl.truststore") or options.get("ssl.ca.location"),
        certificate=certificate,
        certificate_file=own or options.get("ssl.certificate.location"),
        key=key,
        key_file=own or options.get("ssl.key.location"),
        key_password=options.get("ssl.key.password") or None,
        check_host_name=_checks_host_name(options),
    )


def _own_pem(options: Mapping[str, str]) -> tuple[str | None, str | None]:
    certificate = _text(options, "ssl.keystore.certificate.chain", "ssl.certificate.pem")
    key = _text(options, "ssl.keystore.key", "ssl.key.pem")
    if (certificate is None) != (key is None):
        raise InvalidOption(
            "a certificate needs its key and a key its certificate: set both ssl.keystore.certificate.chain "
            "and ssl.keystore.key"
        )
    return certificate, key


def _text(options: Mapping[str, str], *names: str) -> str | None:
    for name in names:
        if text := options.get(name, "").strip():
            if "-----BEGIN" not in text:
                raise InvalidOption(f"{name} is not PEM: it has to begin with -----BEGIN")
            return text
    return None


def _pem_store(options: Mapping[str, str], store: str) -> str | None:
    """The location of a store, which has to be PEM."""
    location = options.get(f"{store}.location")
    if not location:
        return None
    kind = options.get(f"{store}.type", "").upper()
    if kind == "PEM" or (not kind and location.lower().endswith(_PEM_SUFFIXES)):
        return location
    raise UnsupportedOption(
        f"{store}.location is a {kind or 'JKS'} store, which only Java reads; turn it into PEM: "
        f"{_TO_PEM[store]}"
    )


def _checks_host_name(options: Mapping[str, str]) -> bool:
    algorithm = options.get("ssl.endpoint.identification.algorithm", "https").strip().lower()
    if algorithm not in ("https", "none", ""):
        raise InvalidOption("ssl.endpoint.identification.algorithm has to be https, or empty for no check")
    return algorithm == "https"
