"""TLS on a connected socket: whom to trust and who we are from PEM, files or text.

Only certificates that are trusted are accepted; there is no switch against that.
"""

from __future__ import annotations

import os
import re
import socket
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from mainstem.wire.errors import SecurityError
from mainstem.wire.options import TlsOptions

_PEM = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_LINE_LENGTH = 64


def secure(sock: socket.socket, host: str, address: str, options: TlsOptions) -> socket.socket:
    """The same socket behind TLS. Raises `SecurityError` where trying again is of no use."""
    context = context_of(options)
    try:
        return context.wrap_socket(sock, server_hostname=host)
    except ssl.SSLCertVerificationError as error:
        raise SecurityError(
            f"the certificate of the broker at {address} is not accepted: {error.verify_message}; "
            "name the certificate to trust with ssl.truststore.certificates or ssl.ca.location"
        ) from None
    except ssl.SSLEOFError:
        raise  # the broker hung up, as one does that is being stopped
    except ssl.SSLError as error:
        raise SecurityError(
            f"no TLS with the broker at {address}: {reason(error)}; "
            "is security.protocol that of the port, and does the broker want a certificate of ours?"
        ) from None


def refusal(address: str, error: OSError) -> SecurityError | None:
    """What an error on a TLS connection says of security; None when it is one of the network."""
    if isinstance(error, ssl.SSLError) and "ALERT" in (error.reason or ""):
        return SecurityError(
            f"the broker at {address} ended TLS: {reason(error)}; "
            "it may want a certificate: set ssl.keystore.certificate.chain and ssl.keystore.key"
        )
    return None


def reason(error: ssl.SSLError) -> str:
    return (error.reason or str(error)).lower().replace("_", " ")


def context_of(options: TlsOptions) -> ssl.SSLContext:
    """Whom to trust and who we are, as OpenSSL takes it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = options.check_host_name
    # As Java does, trust what is named even where it is no root.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    _trust(context, options)
    _identify(context, options)
    return context


def _trust(context: ssl.SSLContext, options: TlsOptions) -> None:
    try:
        if options.trusted is not None:
            context.load_verify_locations(cadata=normal_pem(options.trusted))
        if options.trusted_file is not None:
            folder = os.path.isdir(options.trusted_file)
            where = {"capath": options.trusted_file} if folder else {"cafile": options.trusted_file}
            context.load_verify_locations(**where)
        if options.trusted is None and options.trusted_file is None:
            context.load_default_certs()
    except OSError as error:
        where_from = options.trusted_file or "ssl.truststore.certificates"
        raise SecurityError(f"the certificates to trust in {where_from} cannot be read: {error}") from None


def _identify(context: ssl.SSLContext, options: TlsOptions) -> None:
    password = options.key_password
    try:
        if options.certificate is not None and options.key is not None:
            pem = f"{normal_pem(options.key)}\n{normal_pem(options.certificate)}"
            with _as_file(pem) as path:
                context.load_cert_chain(path, password=password or "")
        elif options.certificate_file is not None:
            key_file = options.key_file or options.certificate_file
            context.load_cert_chain(options.certificate_file, key_file, password or "")
    except (OSError, ValueError) as error:
        # Not the error's own text: it may hold more than a person should see in a log.
        kind = "cannot be read" if isinstance(error, FileNotFoundError | PermissionError) else "do not fit"
        where_from = options.certificate_file or "ssl.keystore.certificate.chain and ssl.keystore.key"
        raise SecurityError(
            f"the certificate and key in {where_from} {kind}; is it PEM, and is ssl.key.password right?"
        ) from None


def normal_pem(text: str) -> str:
    """PEM on lines of its own, also when it came as the one line of a properties file."""
    blocks: list[str] = []
    for match in _PEM.finditer(text.replace("\\n", "\n")):
        body = match[2]
        if ":" not in body:  # the older encrypted keys have headers, whose lines matter
            plain = re.sub(r"\s+", "", body)
            lines = [plain[at : at + _LINE_LENGTH] for at in range(0, len(plain), _LINE_LENGTH)]
            body = "\n" + "\n".join(lines) + "\n"
        blocks.append(f"-----BEGIN {match[1]}-----{body}-----END {match[1]}-----\n")
    if not blocks:
        raise SecurityError("the PEM text of a certificate or key is cut off")
    return "".join(blocks)


@contextmanager
def _as_file(text: str) -> Iterator[str]:
    """OpenSSL takes a key from a file only: one that nobody else can read, gone at once."""
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(text)
        file.flush()
        yield file.name
